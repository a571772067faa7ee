"""Derivatives at matrices with equal eigenvalues or singular values: right, or NaN; never another number."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
import gradix.scipy.linalg as sl
from gradix import lax

RNG = np.random.default_rng(0)
Q, W = np.linalg.qr(RNG.normal(size=(3, 3)))[0], np.linalg.qr(RNG.normal(size=(3, 3)))[0]
C, B = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))
D = np.diag([1.0, 1.0, 2.0])
ONE = np.diag([0.0, 0.0, 2.0])
SYMMETRIC = {
    "identity": np.eye(3),
    "diagonal": D,
    "turned": Q @ D @ Q.T,
    "projection": ONE,
    "turned projection": Q @ ONE @ Q.T,
}
GENERAL = {"identity": np.eye(3), "diagonal": D, "turned": Q @ D @ W.T, "orthogonal": Q}


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


def hermitian(f):
    return lambda x: f((x + jnp.conj(x.T)) / 2)


def pair(matrix):
    return jnp.sum(C * matrix)


def onto(columns, x):
    """The projector onto eigenvectors."""
    v = jnp.linalg.eigh(x)[1][:, columns]
    return v @ v.T


LINE, PLANE = slice(2, 3), slice(0, 2)


def left(u):
    return pair(u @ u.T)


def svd(x):
    return jnp.linalg.svd(x, full_matrices=False)


VALUES = {
    "trace exp": lambda x: jnp.sum(jnp.exp(jnp.linalg.eigvalsh(x))),
    "sum of cubes": lambda x: jnp.sum(jnp.linalg.eigh(x)[0] ** 3),
    "frobenius": lambda x: jnp.sqrt(jnp.sum(svd(x)[1] ** 2)),
}
PLANES = {  # They depend on whole planes of eigenvectors.
    "line": lambda x: pair(onto(LINE, x)),
    "plane": lambda x: pair(onto(PLANE, x)),
    "plane and matrix": lambda x: pair(onto(PLANE, x) @ x @ x),
    "left": lambda x: left(svd(x)[0][:, :1]),
    "left plane": lambda x: left(svd(x)[0][:, 1:]),
}
SINGULAR = {
    "nuclear": lambda x: jnp.linalg.norm(x, "nuc"),
    "logarithms": lambda x: jnp.sum(jnp.log(svd(x)[1])),
    "polar": lambda x: polar(*svd(x)),
    "polar, library": lambda x: pair(sl.polar(x, method="svd")[0]),
    "polar, iterated": lambda x: pair(sl.polar(x)[1]),
    "pinv": lambda x: pair(jnp.linalg.pinv(x)),
    "lstsq": lambda x: jnp.sum(B * jnp.linalg.lstsq(x, B)[0]),
    "lstsq of three": lambda x: jnp.sum(jnp.sin(jnp.linalg.lstsq(x[:, :2], B)[0])),
    "sqrtm": lambda x: pair(sl.sqrtm(x @ x.T).real),
}


def polar(u, _, vh):
    return pair(u @ vh)


def differences(f, x, h=1e-5):
    out = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = h
        out[place] = (float(f(x + step)) - float(f(x - step))) / (2 * h)
    return out


def cases():
    for functions, matrices, wrap in (
        (VALUES, SYMMETRIC, hermitian),
        (PLANES, SYMMETRIC, hermitian),
        (SINGULAR, GENERAL, lambda f: f),
    ):
        for f in functions:
            for x in matrices:
                if f in PLANES and x == "identity" or "left" in f and "projection" in x and "plane" in f:
                    continue  # There are no such planes.
                yield pytest.param(wrap(functions[f]), matrices[x], id=f"{f}-{x}")


@pytest.mark.parametrize("f, x", list(cases()))
def test_gradients_are_limits_of_differences(f, x):
    np.testing.assert_allclose(gradix.grad(f)(x), differences(f, x), atol=1e-8)


@pytest.mark.parametrize("f", [hermitian(PLANES["plane"]), SINGULAR["polar"], SINGULAR["lstsq"]])
def test_gradients_of_stacks_and_compiled(f):
    x = np.stack([D, D[::-1, ::-1], Q @ D @ Q.T])
    expected = np.stack([differences(f, one) for one in x])
    np.testing.assert_allclose(gradix.jit(gradix.vmap(gradix.grad(f)))(x), expected, atol=1e-8)


def spectral(f, x):
    w, v = jnp.linalg.eigh((x + x.T) / 2)
    return (v * f(w)) @ v.T


def singular(f, x):
    u, s, vh = svd(x)
    return (u * f(s)) @ vh


@pytest.mark.parametrize("matrix", SYMMETRIC)
@pytest.mark.parametrize("form", [spectral, singular])
@pytest.mark.parametrize("f", [jnp.exp, lambda w: w, jnp.sin, jnp.square], ids=["exp", "w", "sin", "square"])
def test_rows_of_functions_of_values_and_vectors_are_right_or_nan(f, form, matrix):
    """Each element of `V f(w) Vᵀ`: its vectors and values do not tell the derivative within planes."""
    x, at = SYMMETRIC[matrix], functools.partial(form, f)
    found = np.asarray(gradix.jacrev(at)(x))
    assert np.isnan(found).any()
    if form is singular and "projection" in matrix and f not in (jnp.sin, jnp.square):
        return  # Central differences go through points without a derivative.
    h = 1e-5
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = h
        limit = (np.asarray(at(x + step)) - np.asarray(at(x - step))) / (2 * h)
        known = ~np.isnan(found[(..., *place)])
        np.testing.assert_allclose(found[(..., *place)][known], limit[known], atol=1e-5)


@pytest.mark.parametrize(
    "f", [lambda x: jnp.sum(jnp.linalg.eigh(x)[1][0] * C[0]), lambda x: jnp.sum(C * svd(x)[0])], ids=["eigh", "svd"]
)
@pytest.mark.parametrize("matrix", ["identity", "diagonal", "turned"])
def test_what_depends_on_the_basis_has_no_derivative(f, matrix):
    assert np.isnan(gradix.grad(hermitian(f))(SYMMETRIC[matrix])).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_forward_directions_that_do_not_turn_planes(dtype):
    x, t = D.astype(dtype), np.diag([3.0, 5.0, 7.0]).astype(dtype)
    for form in (spectral, singular):
        _, dy = gradix.jvp(functools.partial(form, jnp.exp), (x,), (t,))
        np.testing.assert_allclose(dy, np.diag(np.exp(np.diag(D)) * np.diag(t)), rtol=1e-5, atol=1e-6)
    turning = np.ones((3, 3), dtype)
    assert np.isnan(gradix.jvp(lax.linalg.eigh, (x,), (turning,))[1][0]).any()
    assert not np.isnan(gradix.jvp(lax.linalg.eigh, (x,), (turning,))[1][1]).any()


def test_complex_planes():
    u = np.linalg.qr(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)))[0]
    x, c = u @ D @ u.conj().T, C + 1j * C.T

    def f(x):
        v = jnp.linalg.eigh(x)[1][:, :2]
        return jnp.sum(c * (v @ jnp.conj(v.T))).real

    def g(x):
        a, _, b = svd(x)
        return jnp.sum(c * (a @ b)).real

    for function, at in ((f, x), (g, u @ D)):
        for direction in (C + 1j * C, C.T - 2j * C):
            t = direction + direction.conj().T if function is f else direction
            expected = (function(at + 1e-5 * t) - function(at - 1e-5 * t)) / 2e-5
            found = np.sum(np.asarray(gradix.grad(function)(at)) * t).real
            np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("f", ["pinv", "lstsq", "polar, library", "sqrtm"])
def test_second_derivatives_of_library_functions(f):
    direction = C.T
    slope = lambda x: float(jnp.sum(gradix.grad(SINGULAR[f])(x) * direction))  # noqa: E731
    second = gradix.grad(lambda x: jnp.sum(gradix.grad(SINGULAR[f])(x) * direction))(D)
    np.testing.assert_allclose(second, differences(slope, D), atol=1e-6)


def test_least_squares_of_all_shapes_and_ranks():
    for shape in ((4, 2), (2, 4), (3, 3)):
        x, b = RNG.normal(size=shape), RNG.normal(size=shape[0])
        f = lambda x, b: jnp.sum(jnp.sin(jnp.linalg.lstsq(x, b)[0])) + jnp.sum(jnp.linalg.lstsq(x, b)[3] ** 3)  # noqa: E731
        for k, given in enumerate((x, b)):
            at = (lambda v: f(v, b)) if k == 0 else (lambda v: f(x, v))
            np.testing.assert_allclose(gradix.grad(f, k)(x, b), differences(at, given), atol=1e-7)
