"""scipy.sparse.linalg and scipy.optimize: solutions, derivatives of solutions, pytrees, stops, and what they refuse."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg

import gradix
import gradix.numpy as jnp
from gradix.scipy.optimize import minimize
from gradix.scipy.sparse.linalg import bicgstab, cg, gmres
from gradix.test_util import check_grads
from tests.same import assert_same

RNG = np.random.default_rng(3)
SLOWLY = pytest.mark.parametrize(
    "name", ["cg", "bicgstab", "gmres", pytest.param("incremental", marks=pytest.mark.slow)]
)
METHODS = {
    "cg": cg,
    "bicgstab": bicgstab,
    "gmres": gmres,
    "incremental": lambda *a, **k: gmres(*a, solve_method="incremental", **k),
}


def system(n, name, complex_=False):
    a = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if complex_ else 0)
    a = a @ np.conj(a.T) + n * np.eye(n) if name == "cg" else a + 2 * n**0.5 * np.eye(n)
    return a, RNG.normal(size=n) + (1j * RNG.normal(size=n) if complex_ else 0)


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


@pytest.mark.sampled(1)
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_solutions(name, complex_):
    method = METHODS[name]
    for n in (1, 30):
        a, b = system(n, name, complex_)
        want = np.linalg.solve(a, b)
        near = np.linalg.inv(a + 0.1 * np.eye(n))
        near = (near + np.conj(near.T)) / 2 if name == "cg" else near
        for options in ({}, {"x0": np.ones_like(b), "M": near}, {"M": lambda x, near=near: jnp.asarray(near) @ x}):
            assert_same(method(a, b, tol=1e-11, **options)[0], want)
        assert_same(method(a, b * 0, x0=np.ones_like(b))[0], want * 0)
        assert_same(method(a, b, maxiter=0)[0], want * 0)
        assert np.linalg.norm(a @ method(a, b, tol=0.1)[0] - b) <= 0.1 * np.linalg.norm(b)
        assert np.linalg.norm(a @ method(a, b, tol=0, atol=0.3)[0] - b) <= 0.3


@pytest.mark.parametrize("name", ["cg", "bicgstab"])
def test_steps_are_those_of_scipy(name):
    a, b = system(20, name)
    for steps in (1, 3):
        want, _ = getattr(scipy.sparse.linalg, name)(a, b, rtol=0, maxiter=steps)
        assert_same(METHODS[name](a, b, tol=0, maxiter=steps)[0], want)


def test_restarts_are_those_of_scipy():
    a, b = system(20, "gmres")
    for restart, turns in ((3, 1), (3, 2), (20, 1)):
        want, _ = scipy.sparse.linalg.gmres(a, b, rtol=1e-300, restart=restart, maxiter=turns)
        for method in ("batched", "incremental"):
            assert_same(gmres(a, b, tol=0, restart=restart, maxiter=turns, solve_method=method)[0], want)
    assert gmres(np.eye(2), np.array([np.nan, 1.0]))[1] == -1
    assert gmres(np.eye(2), np.ones(2))[1] == 0


@SLOWLY
def test_pytrees_and_their_derivatives(name):
    def solution(scale, b):
        x, _ = METHODS[name](
            lambda x: {"u": scale * x["u"] + x["v"].sum(), "v": 3 * x["v"] + x["u"][:, None].sum() * jnp.ones((1, 2))},
            b,
            tol=1e-12,
        )
        return x

    b = {"u": RNG.normal(size=2), "v": RNG.normal(size=(1, 2))}
    whole = np.array([[5, 0, 1, 1], [0, 5, 1, 1], [1, 1, 3, 0], [1, 1, 0, 3.0]])
    x = solution(5.0, b)
    assert_same(np.concatenate([x["u"], x["v"][0]]), np.linalg.solve(whole, np.concatenate([b["u"], b["v"][0]])))
    check_grads(solution, (5.0, b), order=1)


@SLOWLY
def test_derivatives_and_mapping(name):
    a, b = system(4, name)

    def solution(a, b):
        a = a @ a.T + jnp.eye(4) if name == "cg" else a
        return METHODS[name](a, b, tol=1e-12, M=lambda x: x / 3)[0]

    check_grads(solution, (a / 2, b), order=2, atol=1e-4, rtol=1e-4)
    both = np.stack([a, a + np.eye(4)]), np.stack([b, 0 * b])
    mapped = gradix.jit(gradix.vmap(solution))(*both)
    for i in (0, 1):
        assert_same(mapped[i], np.asarray(solution(both[0][i], both[1][i])))


def test_integers_and_complex_maps_decide_the_dtype():
    assert cg(2 * np.eye(2), np.ones(2, int))[0].dtype == "float64"
    assert gmres(np.eye(2) * 2j, np.ones(2))[0].dtype == "complex128"


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


FUNCTIONS = {
    "rosenbrock": (rosenbrock, np.array([-1.2, 1.0, 0.5]), [1, 1, 1]),
    "himmelblau": (lambda p: (p[0] ** 2 + p[1] - 11) ** 2 + (p[0] + p[1] ** 2 - 7) ** 2, np.zeros(2), [3, 2]),
    "matyas": (lambda p: 0.26 * (p[0] ** 2 + p[1] ** 2) - 0.48 * p[0] * p[1], np.ones(2), [0, 0]),
    "one": (lambda x: jnp.sum((x - 3) ** 4 + x**2), np.array([9.0]), None),
    "log": (lambda x: jnp.sum(jnp.exp(x) - 2 * x), np.array([3.0, -4.0]), [np.log(2)] * 2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_minima(name, dtype):
    f, start, want = FUNCTIONS[name]
    found = minimize(f, jnp.asarray(start.astype(dtype)), method="BFGS", tol=None if dtype == "float64" else 1e-3)
    assert found.success
    assert found.status == 0
    assert found.x.dtype == dtype
    assert_same(found.fun, f(found.x), 1e-9)
    assert_same(found.jac, gradix.grad(f)(found.x), 1e-4, 1e-4)
    reference = scipy.optimize.minimize(lambda x: float(f(x)), start, method="BFGS")
    assert_same(found.x, reference.x if want is None else want, *[1e-2 if dtype == "float32" else 1e-4] * 2)
    assert found.nit <= found.nfev == found.njev


def test_what_minimize_says_when_it_stops():
    assert minimize(rosenbrock, np.zeros(3), method="bfgs", options={"maxiter": 2})[1:3] == (False, 1)
    assert minimize(rosenbrock, np.ones(3), method="BFGS").nit == 0
    assert minimize(lambda x: jnp.nan * x.sum(), np.ones(2), method="BFGS").status == 5
    assert minimize(lambda x: -(x**2).sum(), np.ones(2), method="BFGS").status in (3, 5)
    assert minimize(lambda x: x.sum(), np.zeros(0), method="BFGS").success
    loose = minimize(rosenbrock, np.zeros(3), method="BFGS", options={"gtol": 5.0, "norm": 2})
    assert np.linalg.norm(loose.jac) < 5
    assert loose.nit < minimize(rosenbrock, np.zeros(3), method="BFGS").nit


def test_minima_compiled_mapped_and_differentiated():
    def lowest(a, start):
        return minimize(lambda x, a: jnp.sum((x - a) ** 2 + (x - 1) ** 4), start, (a,), method="BFGS", tol=1e-9).x

    starts = RNG.normal(size=(3, 2))
    got = gradix.jit(gradix.vmap(lowest))(np.arange(3.0), starts)
    assert_same(got, np.stack([np.asarray(lowest(float(a), s)) for a, s in enumerate(starts)]), 1e-6, 1e-6)
    x = lowest(3.0, starts[0])
    assert_same(gradix.jacrev(lowest)(3.0, starts[0]), 2 / (2 + 12 * (x - 1) ** 2), 1e-4)


REFUSED = {
    "operator": (lambda: cg(2, np.ones(2)), TypeError, "function or ndarray"),
    "square": (lambda: cg(np.ones((2, 3)), np.ones(3)), ValueError, "square"),
    "x0 shape": (lambda: gmres(np.eye(2), np.ones(2), x0=np.ones(3)), ValueError, "x0 and b"),
    "x0 tree": (lambda: bicgstab(np.eye(2), np.ones(2), x0={"a": np.ones(2)}), ValueError, "tree structure"),
    "matvec": (lambda: cg(lambda x: x.sum(), np.ones(2)), ValueError, "must match b"),
    "solve_method": (lambda: gmres(np.eye(2), np.ones(2), solve_method="slow"), ValueError, "slow"),
    "method": (lambda: minimize(rosenbrock, np.ones(2), method="Powell"), ValueError, "Powell"),
    "args": (lambda: minimize(rosenbrock, np.ones(2), 3.0, method="BFGS"), TypeError, "tuple"),
    "x0 rank": (lambda: minimize(rosenbrock, np.ones((2, 2)), method="BFGS"), TypeError, "vector"),
    "x0 list": (lambda: minimize(rosenbrock, [1.0], method="BFGS"), TypeError, "array"),
    "x0 integers": (lambda: minimize(rosenbrock, np.ones(2, int), method="BFGS"), TypeError, "floating dtype"),
    "options": (lambda: minimize(rosenbrock, np.ones(2), method="BFGS", options={"xtol": 1}), TypeError, "xtol"),
    "no number": (lambda: minimize(lambda x: x, np.ones(2), method="BFGS"), TypeError, "scalar"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


def test_minimize_with_limited_memory():
    def rosenbrock(x):
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    for start in (np.zeros(2, "f"), np.array([-1.2, 1, 1, -1.2, 1], "f")):
        for options in ({"ftol": 0}, {"ftol": 0, "maxcor": 1 if len(start) == 2 else 3, "gtol": 1e-3}):
            found = minimize(rosenbrock, start, method=LIMITED, options=options)
            assert found.success and found.status == 0 and found.hess_inv is None
            np.testing.assert_allclose(found.x, np.ones(len(start)), atol=1e-2)
    few = minimize(rosenbrock, np.zeros(2, "f"), method=LIMITED, options={"maxiter": 3})
    assert (few.success, few.status, few.nit) == (False, 1, 3)
    assert minimize(rosenbrock, np.zeros(2, "f"), method=LIMITED, options={"maxfun": 4}).status == 2
    assert minimize(rosenbrock, np.zeros(2, "f"), method=LIMITED, tol=0.1).nit < found.nit
    assert minimize(lambda x: x.sum(), np.zeros(0, "f"), method=LIMITED).success
    with pytest.raises(TypeError, match="maxcor"):
        minimize(rosenbrock, np.zeros(2, "f"), method=LIMITED, options={"eps": 1})
    mapped = gradix.vmap(lambda x: minimize(rosenbrock, x, method=LIMITED, options={"ftol": 0}).x)(
        np.zeros((2, 2), "f")
    )
    np.testing.assert_allclose(mapped, np.ones((2, 2)), atol=1e-2)


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_counts_are_weak_integers_of_the_mode(method, x64):
    found = minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2), method=method)
    for count in (found.status, found.nfev, found.njev, found.nit):
        assert (count.dtype, count.weak_type) == ("int64" if x64 else "int32", True)


def test_minimize_over_complex_numbers():
    to = jnp.array([1 + 2j, -3j], "complex64")
    found = minimize(lambda z: jnp.sum(abs(z - to) ** 2), jnp.zeros(2, "complex64"), method=LIMITED)
    np.testing.assert_allclose(found.x, to, atol=1e-4)
    assert found.jac.dtype == "complex64"
    with pytest.raises(TypeError, match="floating"):
        minimize(lambda z: jnp.sum(abs(z - to) ** 2), jnp.zeros(2, "complex64"), method="BFGS")


def test_solutions_are_weak_where_the_right_side_is():
    from gradix.scipy.sparse.linalg import bicgstab, cg, gmres

    for solve in (cg, bicgstab, gmres):
        assert solve(lambda x: 2 * x, 1.0)[0].weak_type
        assert not solve(lambda x: 2 * x, jnp.float32(1))[0].weak_type
