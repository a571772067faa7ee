"""Factorizations hold the identities that define them, with their derivatives; failures give NaN."""

import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def make(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.startswith("c") else 0)
    return np.asarray(x).astype(dtype)


def close(x, y, dtype="complex128"):
    np.testing.assert_allclose(x, y, atol=3e-5 if dtype in ("float32", "complex64") else 1e-10)


def adjoint(x):
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["host", "compiled"])
def test_products_of_the_factors(wrap, shape, dtype):
    x = make(shape, dtype)
    u, s, vh = map(np.asarray, wrap(lambda v: lax.linalg.svd(v, full_matrices=False))(x))
    close((u * s[..., None, :]) @ vh, x, dtype)
    q, r = map(np.asarray, wrap(lax.linalg.qr)(x))
    close(q @ r, x, dtype)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape), dtype)
    q, r, order = map(np.asarray, wrap(lambda v: lax.linalg.qr(v, pivoting=True))(x))
    close(q @ r, np.take_along_axis(x, order[..., None, :].astype(int), -1), dtype)
    factors, _, order = map(np.asarray, wrap(lax.linalg.lu)(x))
    k = min(shape[-2:])
    lower = np.tril(factors[..., :k], -1) + np.eye(shape[-2], k)
    close(lower @ np.triu(factors[..., :k, :]), np.take_along_axis(x, order[..., None].astype(int), -2), dtype)
    if shape[-1] == shape[-2]:
        h = x + adjoint(x)
        v, w = map(np.asarray, wrap(lax.linalg.eigh)(h))
        close(h @ v, v * w[..., None, :], dtype)
        w, left, right = map(np.asarray, wrap(lax.linalg.eig)(x))
        close(x @ right, right * w[..., None, :], dtype)
        close(adjoint(left) @ x, w[..., :, None] * adjoint(left), dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_tangents_keep_the_identities(shape, dtype):
    x, t = make(shape, dtype), make(shape, dtype, 1)
    (u, s, vh), (du, ds, dvh) = gradix.jvp(lambda v: lax.linalg.svd(v, full_matrices=False), (x,), (t,))
    s, ds = s[..., None, :], ds[..., None, :]
    close((du * s) @ vh + (u * ds) @ vh + (u * s) @ dvh, t)
    for turn in (adjoint(u) @ np.asarray(du), np.asarray(vh) @ adjoint(dvh)):
        close(turn, -adjoint(turn))
    for full in (False, True):
        (q, r), (dq, dr) = gradix.jvp(lambda v, full=full: lax.linalg.qr(v, full_matrices=full), (x,), (t,))
        close(dq @ r + q @ dr, t)
        turn = adjoint(q) @ np.asarray(dq)
        close(turn, -adjoint(turn))
    if shape[-1] == shape[-2]:
        (w, v), (dw, dv) = gradix.jvp(
            lambda m: lax.linalg.eig(m, compute_left_eigenvectors=False, enable_eigvec_derivs=True), (x,), (t,)
        )
        close(t @ v + x @ dv, dv * w[..., None, :] + v * dw[..., None, :])


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["host", "compiled"])
def test_failure_is_nan_for_that_matrix_alone(wrap):
    good = np.eye(2)
    out = np.asarray(wrap(lax.linalg.cholesky)(np.stack([good, -good])))
    np.testing.assert_array_equal(out[0], good)
    assert np.isnan(out[1][np.tril_indices(2)]).all() and out[1, 0, 1] == 0
    bad = np.stack([good, np.full((2, 2), np.nan)])
    for f in (lax.linalg.eigh, lax.linalg.svd, lax.linalg.eig):
        for part in wrap(f)(bad):
            assert np.isfinite(part[0]).all() and np.isnan(part[1]).all()


def test_solve_broadcasts_and_names_wrong_shapes():
    a, b = make((2, 3, 3), "float64"), make((4, 1, 3, 2), "float64", 1)
    close(jnp.linalg.solve(a, b), np.linalg.solve(a, b))
    close(jnp.linalg.solve(a[0], b), np.linalg.solve(a[0], b))
    close(gradix.vmap(lambda m: jnp.linalg.solve(m, b[0, 0]))(a), np.linalg.solve(a, b[0, 0]))
    with pytest.raises(ValueError, match=r"\(2, 3, 3\) and \(2, 3\)"):
        jnp.linalg.solve(a, a[:, 0])
    with pytest.raises(ValueError, match="at least two axes"):
        jnp.linalg.solve(a[0, 0], a[0])


@pytest.mark.parametrize("x", [np.eye(4), np.diag([1.0, 0, 2, 3]), np.diag([0.0, 0, 2, 3]), make((4, 4), "float64")])
def test_gradient_of_det_is_the_cofactors(x):
    want = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(4)] for i in range(4)]
    close(gradix.grad(jnp.linalg.det)(x), want)
    close(gradix.jit(gradix.vmap(gradix.grad(jnp.linalg.det)))(x[None])[0], want)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_tangents_of_slogdet(dtype):
    x, t, eps = make((2, 4, 4), dtype), make((2, 4, 4), dtype, 1), 1e-6
    tangents = gradix.jit(lambda x, t: gradix.jvp(jnp.linalg.slogdet, (x,), (t,))[1])(x, t)
    ahead, behind = np.linalg.slogdet(x + eps * t), np.linalg.slogdet(x - eps * t)
    for got, after, before in zip(tangents, ahead, behind):
        assert got.dtype == after.dtype
        np.testing.assert_allclose(np.asarray(got), (after - before) / (2 * eps), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "f, shape",
    [
        (lambda x: jnp.linalg.inv(x).sum(), (3, 3)),
        (lambda x: jnp.linalg.pinv(x).sum(), (4, 2)),
        (lambda x: jnp.linalg.slogdet(x)[1], (4, 4)),
        (lambda x: jnp.linalg.slogdet(x, method="qr")[1], (4, 4)),
        (lambda x: jnp.linalg.lstsq(x, np.arange(4.0))[0].sum(), (4, 2)),
        (lambda x: jnp.linalg.norm(x, 2), (3, 2)),
        (lambda x: jnp.linalg.norm(x, "nuc"), (3, 2)),
        (lambda x: jnp.linalg.cond(x, 1), (3, 3)),
        (lambda x: jnp.linalg.matrix_power(x, -2).sum(), (3, 3)),
        (lambda x: (jnp.linalg.solve(x, x[0]) ** 2).sum(), (3, 3)),
        (lambda x: abs(jnp.linalg.eigvals(x)).sum(), (3, 3)),
        (lambda x: jnp.linalg.cholesky(x @ x.T, upper=True).sum(), (3, 3)),
    ],
)
def test_gradients_are_limits_of_differences(f, shape):
    x, t, eps = jnp.asarray(make(shape, "float64")), make(shape, "float64", 1), 1e-6
    want = (f(x + eps * t) - f(x - eps * t)) / (2 * eps)
    np.testing.assert_allclose((gradix.grad(f)(x) * t).sum(), want, rtol=1e-6)
    np.testing.assert_allclose((gradix.jit(gradix.grad(f))(x) * t).sum(), want, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda l, x: l.slogdet(x),
        lambda l, x: l.inv(x),
        lambda l, x: l.pinv(x[:, :2]),
        lambda l, x: l.matrix_rank(x),
        lambda l, x: l.cond(x),
        lambda l, x: l.cond(x, "fro"),
        lambda l, x: l.norm(x[0], -2),
        lambda l, x: l.norm(x, "nuc", axis=(0, 2)),
        lambda l, x: l.matrix_power(x, -3),
        lambda l, x: l.svdvals(x),
        lambda l, x: l.lstsq(x[0], x[1])[0],
        lambda l, x: l.tensorinv(x[0].reshape(2, 2, 4)),
        lambda l, x: l.tensorsolve(x[0].reshape(2, 2, 4), x[1, 0].reshape(2, 2)),
        lambda l, x: l.det(x),
        lambda l, x: l.qr(x, mode="r"),
        lambda l, x: l.eigvalsh(x + adjoint(x)),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_as_numpy(call, dtype):
    x = make((2, 4, 4), dtype)
    got, want = call(jnp.linalg, x), call(np.linalg, x)
    for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want], strict=True):
        close(g, w)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["host", "compiled"])
def test_similar_matrices(wrap, dtype):
    x = make((2, 4, 4), dtype)
    t, z = map(np.asarray, wrap(lax.linalg.schur)(x))
    close(z @ t @ adjoint(z), x, dtype)
    close(np.tril(t, -1 if dtype.startswith("c") else -2), 0 * t, dtype)
    h, taus = map(np.asarray, wrap(lax.linalg.hessenberg)(x))
    q = np.zeros_like(x)
    q[:, 0, 0] = 1
    q[:, 1:, 1:] = lax.linalg.householder_product(h[:, 1:, :-1], taus)
    close(q @ np.triu(h, -1) @ adjoint(q), x, dtype)
    hermitian = x + adjoint(x)
    a, d, e, taus = map(np.asarray, wrap(lax.linalg.tridiagonal)(hermitian))
    q[:, 1:, 1:] = lax.linalg.householder_product(a[:, 1:, :-1], taus)
    whole = np.stack([np.diag(d[i]) + np.diag(e[i], 1) + np.diag(e[i], -1) for i in range(2)])
    close(q @ whole @ adjoint(q), hermitian, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["host", "compiled"])
def test_polar_decomposition(wrap, dtype):
    for shape in ((4, 4), (5, 3), (1, 1)):
        x = make(shape, dtype)
        u, h, steps, done = wrap(lax.linalg.qdwh)(x)
        u, h = np.asarray(u), np.asarray(h)
        close(u @ h, x, dtype)
        close(adjoint(u) @ u, np.eye(shape[1]), dtype)
        assert bool(done) and 0 < int(steps) <= 7 and np.linalg.eigvalsh(h).min() > 0
    u, h, *_ = wrap(lax.linalg.qdwh)(np.diag(np.array([1e-3, 1, 1e3], dtype)))  # hardly of full rank
    close(u, np.eye(3), dtype)
    whole = make((4, 4), dtype)
    u, h, *_ = lax.linalg.qdwh(whole, dynamic_shape=(3, 2))
    part, upper, *_ = lax.linalg.qdwh(whole[:3, :2])
    close(np.asarray(u)[:3, :2], part, dtype)
    close(np.asarray(h)[:2, :2], upper, dtype)
    assert not np.asarray(u)[3:].any() and not np.asarray(u)[:, 2:].any()


def test_polar_decomposition_that_fails_says_so():
    assert not bool(lax.linalg.qdwh(np.eye(3) * np.nan)[3])
    assert not bool(lax.linalg.qdwh(make((3, 3), "float64"), max_iterations=2)[3])
    with pytest.raises(ValueError, match=r"M >= N.*\(2, 3\)"):
        lax.linalg.qdwh(make((2, 3), "float64"))
    with pytest.raises(ValueError, match="Use vmap"):
        lax.linalg.qdwh(make((2, 3, 3), "float64"))


def test_derivative_of_the_polar_decomposition():
    x, t, eps = make((3, 3), "float64"), make((3, 3), "float64", 1), 1e-6
    got = gradix.jvp(lambda a: lax.linalg.qdwh(a)[0], (x,), (t,))[1]
    close(
        got,
        (np.asarray(lax.linalg.qdwh(x + eps * t)[0]) - np.asarray(lax.linalg.qdwh(x - eps * t)[0])) / (2 * eps),
        "float32",
    )


def test_singular_values_by_either_algorithm():
    for dtype in DTYPES:
        x = make((2, 4, 3), dtype)
        for wrap in (lambda f: f, gradix.jit):
            for full in (False, True):
                u, s, vh = wrap(
                    lambda a, full=full: lax.linalg.svd(a, full_matrices=full, algorithm=lax.linalg.SvdAlgorithm.QR)
                )(x)
                close((np.asarray(u)[..., :3] * np.asarray(s)[..., None, :]) @ np.asarray(vh), x, dtype)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["host", "compiled"])
def test_singular_tridiagonal_systems(wrap):
    d, off, b = np.zeros(3), np.array([0.0, 1, 2]), np.array([[1.0], [1], [2]])
    assert np.isnan(np.asarray(wrap(lax.linalg.tridiagonal_solve)(off, d, off[::-1].copy(), b))).all()
    perturbed = wrap(lambda *xs: lax.linalg.tridiagonal_solve(*xs, perturb_singular=True))(off, d, off[::-1].copy(), b)
    assert np.isfinite(np.asarray(perturbed)).all() and abs(np.asarray(perturbed)).max() > 1e10


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["host", "compiled"])
def test_updates_of_factors_that_are_zero_or_negative(wrap):
    w = np.array([1.0, -2, 3])
    for r in (np.zeros((3, 3)), -np.eye(3), np.triu(make((3, 3), "float64"))):
        new = np.asarray(wrap(lax.linalg.cholesky_update)(r, w))
        close(new.T @ new, r.T @ r + np.outer(w, w))
        assert (np.diag(new) >= 0).all() and not np.tril(new, -1).any()
    assert np.isnan(np.asarray(wrap(lax.linalg.cholesky_update)(np.eye(3), w * np.nan))).any()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.linalg.det(x),
        lambda x: jnp.linalg.slogdet(x)[1],
        lambda x: jnp.linalg.inv(x).sum(),
        lambda x: (jnp.linalg.solve(x, x[0]) ** 2).sum(),
        lambda x: jnp.linalg.cholesky(x @ x.T).sum(),
        lambda x: (jnp.linalg.eigvalsh(x + x.T) ** 3).sum(),
        lambda x: (jnp.linalg.eigh(x + x.T)[1] ** 4).sum(),
        lambda x: jnp.linalg.svdvals(x)[0],
        lambda x: (jnp.linalg.svd(x)[0] ** 4).sum(),
        lambda x: (jnp.linalg.qr(x)[0] ** 3).sum(),
        lambda x: (lax.linalg.lu(x)[0] ** 2).sum(),
        lambda x: jnp.linalg.pinv(x[:, :2]).sum(),
        lambda x: (abs(jnp.linalg.eigvals(x)) ** 3).sum(),
        lambda x: (lax.linalg.tridiagonal_solve(x[0], x[1] + 9, x[2], x) ** 2).sum(),
    ],
)
def test_second_derivatives_are_limits_of_differences(f):
    x, t, eps = jnp.asarray(make((3, 3), "float64") + np.diag([4.0, 8, 12])), make((3, 3), "float64", 1), 1e-6
    gradient = gradix.grad(f)
    want = (np.asarray(gradient(x + eps * t)) - np.asarray(gradient(x - eps * t))) / (2 * eps)
    for second in (
        gradix.jvp(gradient, (x,), (t,))[1],
        gradix.grad(lambda v: (gradient(v) * t).sum())(x),
        gradix.jit(gradix.vmap(lambda v: gradix.jvp(gradient, (v,), (t,))[1]))(x[None])[0],
    ):
        np.testing.assert_allclose(second, want, rtol=1e-5, atol=1e-5 * abs(want).max())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_eigenvalues_of_one_matrix_without_finite_elements_are_nan(bad):
    out = lax.linalg.eig(np.full((3, 3), bad, np.float32))
    assert [x.shape for x in out] == [(3,), (3, 3), (3, 3)] and all(np.isnan(x).all() for x in out)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, True)])
def test_tangents_of_eigenvectors_on_both_sides(sides, dtype):
    """They are the tangents of what LAPACK gives, as differences show."""
    left, right = sides
    x, t = make((4, 4), dtype), make((4, 4), dtype, 1)

    def both(x):
        options = {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right}
        return lax.linalg.eig(x, enable_eigvec_derivs=True, **options)

    tangents, step = gradix.jvp(both, (x,), (t,))[1], 1e-6
    ahead, behind = both(x + step * t), both(x - step * t)
    for got, a, b in zip(tangents, ahead, behind, strict=True):
        np.testing.assert_allclose(got, (np.asarray(a) - np.asarray(b)) / (2 * step), rtol=1e-5, atol=1e-6)


def test_gradients_of_pseudoinverses_of_long_matrices():
    """No square matrix of the long side is made."""
    x = make((200_000, 2), "float32")
    for a in (x, x.T):
        got = gradix.jvp(jnp.linalg.pinv, (a,), (a,))[1]
        np.testing.assert_allclose(got, -np.asarray(jnp.linalg.pinv(a)), rtol=1e-2, atol=1e-6)
        assert gradix.grad(lambda a: jnp.linalg.pinv(a).sum())(a).shape == a.shape


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_derivatives_of_pinv_read_hermitian_matrices_as_their_hermitian_parts(dtype):
    """A tangent that is not Hermitian moves the matrix as its Hermitian part does, as for eigh."""
    rng = np.random.default_rng(0)
    a, t = [rng.normal(size=(3, 3)).astype(dtype) for _ in range(2)]
    if dtype == np.complex64:
        t = t + 1j * rng.normal(size=(3, 3)).astype(np.float32)
    a, half = a + a.T, (t + t.conj().T) / 2
    pinv = lambda a: jnp.linalg.pinv(a, hermitian=True)
    got, want = gradix.jvp(pinv, (a,), (t,))[1], gradix.jvp(jnp.linalg.pinv, (a,), (half,))[1]
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(got, np.conj(got).T, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", ["reduced", "full", "complete", "raw"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 0), (2, 3, 0)], ids=str)
def test_modes_of_qr_give_the_shapes_of_numpy(shape, mode):
    x = np.random.default_rng(0).normal(size=shape).astype("f")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        want = np.linalg.qr(x, mode)
    assert [v.shape for v in jnp.linalg.qr(x, mode)] == [v.shape for v in want]
