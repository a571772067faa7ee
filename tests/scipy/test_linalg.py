"""scipy.linalg against SciPy, its derivatives against differences, stacks against loops, and what it refuses."""

import functools

import numpy as np
import pytest
import scipy.linalg as reference

import gradix
import gradix.numpy as jnp
from gradix.scipy import linalg
from gradix.test_util import check_grads
from tests.same import assert_same

RNG = np.random.default_rng(5)


def draw(*shape, complex_=False):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if complex_ else x


def positive(n, *lead):
    x = draw(*lead, n, n)
    return x @ np.swapaxes(x, -1, -2) + n * np.eye(n)


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


NUMBERED = {
    "dft": [(5,), (4, "sqrtn"), (3, "n"), (1,), (0,)],
    "hadamard": [(1,), (8,)],
    "helmert": [(1,), (4,), (4, True)],
    "hilbert": [(0,), (1,), (5,)],
    "invhilbert": [(1,), (6,), (12,)],
    "pascal": [(1,), (6,), (5, "lower"), (5, "upper")],
    "invpascal": [(1,), (6,), (5, "lower"), (5, "upper")],
}


@pytest.mark.parametrize("name", NUMBERED)
def test_matrices_known_by_their_size(name):
    for args in NUMBERED[name]:
        exact = {"exact": False} if name == "invhilbert" else {}
        want = getattr(reference, name)(*args, **exact) if args[0] else np.zeros((0, 0))
        assert_same(getattr(linalg, name)(*args), want)
        assert_same(gradix.jit(lambda a=args: getattr(linalg, name)(*a))(), want)


STRUCTURED = {
    "toeplitz": [(4,), (1,), (3, 5), (5, 2), (1, 3)],
    "hankel": [(4,), (1,), (3, 5), (5, 2)],
    "circulant": [(1,), (5,)],
    "companion": [(2,), (6,)],
    "fiedler": [(1,), (4,)],
    "fiedler_companion": [(2,), (3,), (4,), (7,)],
    "leslie": [(2, 1), (5, 4)],
}


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("name", STRUCTURED)
def test_matrices_made_of_vectors(name, complex_):
    ours, theirs = getattr(linalg, name), getattr(reference, name)
    for sizes in STRUCTURED[name]:
        vectors = [draw(n, complex_=complex_) for n in sizes]
        assert_same(ours(*vectors), theirs(*vectors))
        stacks = [draw(3, n, complex_=complex_) for n in sizes]
        assert_same(ours(*stacks), np.stack([theirs(*rows) for rows in zip(*stacks)]))
        if not complex_:
            check_grads(ours, vectors, order=1)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_matrix_multiplies_as_convolution(mode):
    for m, n in ((3, 5), (5, 3), (1, 4), (4, 1), (4, 4)):
        a, v = draw(2, m), draw(n)
        got = linalg.convolution_matrix(a, n, mode)
        assert_same(got @ v, [np.convolve(row, v, mode) for row in a])
        assert_same(got[0], reference.convolution_matrix(a[0], n, mode))


def test_block_diag_pads_what_is_empty():
    blocks = [draw(2, 3), draw(4), np.zeros((2, 0)), 5.0, draw(1, 1, complex_=True)]
    assert_same(linalg.block_diag(*blocks), reference.block_diag(*blocks))
    assert linalg.block_diag().shape == (1, 0)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("complex_", [False, True])
def test_factors(n, complex_):
    a = draw(n, n, complex_=complex_)
    p = a @ np.conj(a.T) + n * np.eye(n)
    for lower in (False, True):
        assert_same(linalg.cholesky(p, lower), reference.cholesky(p, lower))
        assert_same(linalg.cho_solve(linalg.cho_factor(p, lower), a), np.linalg.solve(p, a))
        assert_same(linalg.solve(p, a, lower=lower, assume_a="pos"), np.linalg.solve(p, a))
    for got, want in zip(linalg.lu(a), reference.lu(a), strict=True):
        assert_same(got, want)
    for got, want in zip(linalg.lu(a, permute_l=True), reference.lu(a, permute_l=True), strict=True):
        assert_same(got, want)
    for trans in (0, 1, 2):
        assert_same(
            linalg.lu_solve(linalg.lu_factor(a), a[0], trans), reference.lu_solve(reference.lu_factor(a), a[0], trans)
        )
        assert_same(linalg.solve_triangular(a, a[0], trans), reference.solve_triangular(a, a[0], trans))
        assert_same(
            linalg.solve_triangular(p, a, trans, lower=True, unit_diagonal=True),
            reference.solve_triangular(p, a, trans, lower=True, unit_diagonal=True),
        )
    t, z = linalg.schur(a)
    assert_same(z @ t @ np.conj(z.T), a)
    t, z = linalg.rsf2csf(t, z)
    assert not np.tril(t, -1).any()
    assert_same(z @ t @ np.conj(z.T), a)
    h, q = linalg.hessenberg(a, calc_q=True)
    assert not np.tril(h, -2).any()
    assert_same(q @ h @ np.conj(q.T), a)


@pytest.mark.parametrize("mode", ["right", "left"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_qr_times_matrices(shape, mode):
    a, k = draw(*shape, complex_=True), min(shape)
    c = draw(k, 3) if mode == "left" else draw(3, shape[0])
    for conjugate in (False, True):
        for pivoting in (False, True):
            got = linalg.qr_multiply(a, c, mode, pivoting=pivoting, conjugate=conjugate)
            want = reference.qr_multiply(a, c, mode, pivoting=pivoting, conjugate=conjugate)
            assert_same(got[0], want[0])
            assert_same(got[1], want[1])
    assert_same(
        linalg.qr_multiply(a, c[0] if mode == "right" else c[:, 0], mode)[0],
        reference.qr_multiply(a, c[0] if mode == "right" else c[:, 0], mode)[0],
    )


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (1, 1), (3, 0)])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("method", ["qdwh", "svd"])
def test_polar_factors(shape, side, method):
    a = draw(*shape, complex_=True)
    u, p = linalg.polar(a, side, method=method)
    if a.size:
        for got, want in zip((u, p), reference.polar(a, side), strict=True):
            assert_same(got, want)
    assert u.shape == a.shape


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
@pytest.mark.parametrize("complex_", [False, True])
def test_exponential(scale, complex_):
    a = draw(3, 4, 4, complex_=complex_) * scale / 4
    want = np.stack([reference.expm(x) for x in a])
    assert_same(linalg.expm(a) / abs(want).max(), want / abs(want).max())
    assert_same(gradix.vmap(linalg.expm)(a), linalg.expm(a))
    upper = np.triu(a)
    assert_same(linalg.expm(upper, upper_triangular=True), linalg.expm(upper), 1e-8)
    e = draw(4, 4, complex_=complex_)
    for got, want in zip(linalg.expm_frechet(a[0], e), reference.expm_frechet(a[0], e), strict=True):
        assert_same(got / abs(want).max(), want / abs(want).max())
    with gradix.enable_x64(False):
        assert_same(
            linalg.expm(a.astype("complex64")) / abs(linalg.expm(a)).max(),
            linalg.expm(a) / abs(linalg.expm(a)).max(),
            2e-5,
        )


def test_exponential_of_too_large_a_matrix_is_nan():
    assert np.isnan(linalg.expm(np.eye(2) * 1e9)).all()
    assert np.isnan(linalg.expm(np.eye(2) * 100, max_squarings=2)).all()
    got = linalg.expm(np.stack([np.eye(2), np.eye(2) * 1e9]))
    assert_same(got[0], np.e * np.eye(2))
    assert np.isnan(got[1]).all()


@pytest.mark.parametrize("n", [1, 5])
def test_roots_and_other_functions(n):
    for a in (draw(n, n), positive(n), draw(n, n, complex_=True)):
        root = linalg.sqrtm(a)
        assert_same(root @ root, a)
        assert_same(root, reference.sqrtm(a), 1e-7)
        assert_same(linalg.funm(a, jnp.sin), reference.funm(a, np.sin), 1e-7)
        value, error = linalg.funm(a, jnp.exp, disp=False)
        assert_same(error, reference.funm(a, np.exp, disp=False)[1], 1e-12)
    assert_same(linalg.sqrtm(np.zeros((2, 2))), np.zeros((2, 2)))
    assert np.isnan(linalg.sqrtm(np.array([[0.0, 1.0], [0.0, 0.0]]))).all()


@pytest.mark.parametrize("method", ["schur", "eigen"])
@pytest.mark.parametrize("complex_", [False, True])
def test_sylvester(method, complex_):
    a, b, c = draw(2, 3, 3, complex_=complex_), draw(4, 4, complex_=complex_), draw(3, 4)
    x = linalg.solve_sylvester(a, b, c, method=method)
    assert_same(x, np.stack([reference.solve_sylvester(m, b, c) for m in a]), 1e-8)
    assert np.isnan(linalg.solve_sylvester(np.eye(2), -np.eye(2), np.ones((2, 2)), method=method)).all()


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("complex_", [False, True])
def test_tridiagonal_eigenvalues(n, complex_):
    d, e = draw(n), draw(n - 1, complex_=complex_)
    if n == 9:
        e[3] = 0  # the matrix falls apart
    whole = np.diag(d) + np.diag(e, 1) + np.diag(np.conj(e), -1)
    given = d.astype(e.dtype), e
    want = np.linalg.eigvalsh(whole)
    assert_same(linalg.eigh_tridiagonal(*given, eigvals_only=True), want)
    w, v = linalg.eigh_tridiagonal(*given)
    assert_same(whole @ v, v * np.asarray(w))
    if n > 2:
        assert_same(linalg.eigh_tridiagonal(*given, eigvals_only=True, select="i", select_range=(1, 3)), want[1:4])
        assert linalg.eigh_tridiagonal(*given, select="i", select_range=(1, 3))[1].shape == (n, 3)
        rough = linalg.eigh_tridiagonal(*given, eigvals_only=True, tol=0.01)
        assert 1e-6 < abs(rough - want).max() < 0.01


SMOOTH = {
    "solve pos": lambda a: linalg.solve(a @ a.T + 3 * jnp.eye(3), a[0], assume_a="pos"),
    "cho_solve": lambda a: linalg.cho_solve(linalg.cho_factor(a @ a.T + 3 * jnp.eye(3)), a[0]),
    "lu_solve": lambda a: linalg.lu_solve(linalg.lu_factor(a), a[0]),
    "lu": lambda a: linalg.lu(a)[1:],
    "qr": lambda a: linalg.qr(a)[1],
    "solve_triangular": lambda a: linalg.solve_triangular(a, a[0], lower=True),
    "expm": linalg.expm,
    "expm_frechet": lambda a: linalg.expm_frechet(a, a.T, compute_expm=False),
    "sqrtm": lambda a: linalg.sqrtm(a @ a.T + jnp.eye(3)).real,
    "polar": linalg.polar,
    "polar svd": lambda a: linalg.polar(a[:, :2], method="svd"),
    "sylvester": lambda a: linalg.solve_sylvester(a, a.T + 2 * jnp.eye(3), a),
    "eigh_tridiagonal": lambda a: linalg.eigh_tridiagonal(jnp.diag(a), jnp.diag(a, 1), eigvals_only=True),
    "eigh": lambda a: linalg.eigh(a, eigvals_only=True),
    "svd": lambda a: linalg.svd(a, compute_uv=False),
    "block_diag": lambda a: linalg.block_diag(a, a[0]),
    "det": linalg.det,
    "inv": linalg.inv,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_and_mapping(name):
    f = SMOOTH[name]
    a = draw(2, 3, 3) + 2 * np.diag([1.0, 2.0, 4.0])
    check_grads(f, (a[0],), order=1 if name in ("lu", "qr") else 2, atol=1e-4, rtol=1e-4)
    both = gradix.jit(gradix.vmap(f))(a)
    for i in (0, 1):
        gradix.tree.map(lambda got, want, i=i: assert_same(got[i], np.asarray(want), 1e-7), both, f(a[i]))


REFUSED = {
    "toeplitz list": (lambda: linalg.toeplitz([1, 2]), TypeError, "list"),
    "hankel scalar": (lambda: linalg.hankel(3), ValueError, "at least 1-dimensional"),
    "companion short": (lambda: linalg.companion(np.ones(1)), ValueError, "at least 2"),
    "leslie lengths": (lambda: linalg.leslie(np.ones(2), np.ones(2)), ValueError, "one less"),
    "block_diag rank": (lambda: linalg.block_diag(1, np.ones((1, 1, 1))), ValueError, "at argument 1"),
    "hadamard 6": (lambda: linalg.hadamard(6), ValueError, "power of 2; got 6"),
    "dft real": (lambda: linalg.dft(2, dtype="float32"), ValueError, "complex"),
    "pascal kind": (lambda: linalg.pascal(2, "both"), ValueError, "both"),
    "convolution mode": (lambda: linalg.convolution_matrix(np.ones(2), 2, "x"), ValueError, "mode"),
    "eigh b": (lambda: linalg.eigh(np.eye(2), np.eye(2)), NotImplementedError, "Cholesky factor"),
    "qr mode": (lambda: linalg.qr(np.eye(2), mode="raw"), ValueError, "raw"),
    "qr_multiply shapes": (lambda: linalg.qr_multiply(np.ones((3, 2)), np.ones((4, 2))), ValueError, "expected 3"),
    "lu_solve trans": (lambda: linalg.lu_solve((np.eye(2), np.arange(2)), np.ones(2), 3), ValueError, "0, 1, or 2"),
    "solve assume": (lambda: linalg.solve(np.eye(2), np.ones(2), assume_a="diag"), ValueError, "assume_a"),
    "sylvester shapes": (lambda: linalg.solve_sylvester(np.eye(2), np.eye(3), np.eye(2)), ValueError, "Incompatible"),
    "expm shape": (lambda: linalg.expm(np.ones((2, 3))), ValueError, "square"),
    "expm half": (lambda: linalg.expm(np.eye(2, dtype="float16")), TypeError, "float16"),
    "frechet shapes": (lambda: linalg.expm_frechet(np.eye(2), np.eye(3)), ValueError, "same shape"),
    "sqrtm blocks": (lambda: linalg.sqrtm(np.eye(2), blocksize=2), NotImplementedError, "blocksize"),
    "funm stack": (lambda: linalg.funm(np.ones((2, 2, 2)), jnp.sin), ValueError, "vmap"),
    "polar side": (lambda: linalg.polar(np.eye(2), "up"), ValueError, "side"),
    "tridiagonal v": (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="v"), NotImplementedError, "mask"),
    "tridiagonal range": (
        lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(2), select="i", select_range=(0, 3)),
        ValueError,
        "within 0 and 2",
    ),
    "schur grad": (lambda: gradix.grad(lambda a: linalg.schur(a)[0].sum())(np.eye(2)), NotImplementedError, "schur"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


def test_the_exponential_of_zero_meets_no_infinity():
    with gradix.debug_infs(True), gradix.debug_nans(True):
        np.testing.assert_allclose(linalg.expm(jnp.zeros((2, 3, 3))), [np.eye(3)] * 2, rtol=1e-6)


def test_real_schur_forms_broadcast():
    t, z = np.random.RandomState(0).randn(2, 3, 4, 4).astype("float32")
    for given in ((t, z[0]), (t[0], z)):
        got = linalg.rsf2csf(*given)
        for i in range(3):
            alone = linalg.rsf2csf(*[x[i] if x.ndim == 3 else x for x in given])
            for whole, part in zip(got, alone):
                np.testing.assert_allclose(whole[i], part, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_equations_are_solved_alike_in_programs_and_outside(dtype):
    rng = np.random.RandomState(0)
    a, b, c = (rng.randn(*s).astype(dtype) for s in ((12, 12), (5, 5), (12, 5)))
    for method in ("schur", "eigen"):
        solve = functools.partial(linalg.solve_sylvester, method=method)
        np.testing.assert_allclose(solve(a, b, c), gradix.jit(solve)(a, b, c), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(linalg.sqrtm(a @ a.T), gradix.jit(linalg.sqrtm)(a @ a.T), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 3])
def test_functions_that_branch_at_negative_eigenvalues_of_real_matrices(seed):
    a = np.random.RandomState(seed).randn(12, 12).astype("f")
    values = np.linalg.eigvals(a)
    assert (values[values.imag == 0].real < 0).any()
    power = lambda x: x**-2.718  # noqa: E731
    want = reference.funm(a.astype("d"), power, disp=False)[0]
    for call in (linalg.funm, gradix.jit(linalg.funm, static_argnums=1)):
        np.testing.assert_allclose(call(a, power), want, rtol=2e-2, atol=2e-2 * abs(want).max())
