"""Where XLA's functions are not exact or take the wrong branch, ours are not: cube roots, complex sines, branch cuts."""

import cmath
from fractions import Fraction

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

SIZES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1e5, -1e5)
AXES = [complex(x, y) for x in SIZES for y in SIZES if x == 0 or y == 0]
CUT = ["log", "sqrt", "asin", "acos", "atan", "asinh", "acosh", "atanh"]


def compiled(name, x):
    return np.asarray(gradix.jit(getattr(lax, name))(x))


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("engine", ["compiled", "host"])
def test_zeros_of_both_signs_choose_the_branch(name, dtype, engine):
    """As in C99, annex G, by Python's own functions."""
    points, want = [], []
    for z in AXES:
        try:
            want.append(getattr(cmath, name)(z))
        except ValueError:  # a pole
            continue
        points.append(z)
    with gradix.enable_x64(True):
        z = np.array(points, dtype)
        got = compiled(name, z) if engine == "compiled" else np.asarray(getattr(lax, name)(z))
    want = np.array(want)
    for part in ("real", "imag"):
        g, w = getattr(got, part), getattr(want, part)
        np.testing.assert_array_equal(np.signbit(g), np.signbit(w), err_msg=f"{part} of {points}")
        np.testing.assert_allclose(g, w, rtol=1e-5 if dtype == "complex64" else 1e-13)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_complex_sines(name):
    rng = np.random.default_rng(0)
    z = (rng.normal(size=300) + 1j * rng.normal(size=300)).astype("complex64")
    want = getattr(np, name)(z.astype("complex128"))
    error = np.abs(compiled(name, z) - want) / np.abs(want)
    assert error.max() < 3e-7


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_complex_sines_of_infinities_stay_on_the_axis(name):
    z = np.array([complex(0, np.inf), complex(-0.0, -np.inf)], "complex64")
    got, want = compiled(name, z), np.array([getattr(cmath, name)(v) for v in z.tolist()])
    np.testing.assert_array_equal(got, want.astype("complex64"))


@pytest.mark.parametrize("dtype, bound", [("float32", 0.51), ("float64", 1.01)])
def test_cube_roots(dtype, bound):
    rng = np.random.default_rng(0)
    x = (np.exp(rng.uniform(-60, 60, 1000)) * rng.choice([-1, 1], 1000)).astype(dtype)
    with gradix.enable_x64(True):
        got = compiled("cbrt", x)
        edge = compiled("cbrt", np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 8.0, -27.0], dtype))
    want = np.cbrt(x.astype(np.longdouble))
    assert (np.abs(got - want) / np.spacing(np.abs(got))).max() < bound
    np.testing.assert_array_equal(edge, np.array([0, -0.0, np.inf, -np.inf, np.nan, 2, -3], dtype))
    assert np.signbit(edge[1])


def test_log1p_of_complex_numbers_near_its_circle():
    """|1 + z| = 1, where the real part is small, and 2x + x² + y² cancels."""
    angles = np.linspace(0.1, 3, 50)
    z = np.exp(1j * angles) - 1
    exact = np.array(
        [0.5 * np.log1p(float(2 * _fraction(v.real) + _fraction(v.real) ** 2 + _fraction(v.imag) ** 2)) for v in z]
    )
    with gradix.enable_x64(True):
        got = np.asarray(lax.log1p(z))
    np.testing.assert_allclose(got.real, exact, rtol=1e-9, atol=1e-30)
    np.testing.assert_allclose(got.imag, angles, rtol=1e-12)


def _fraction(x):
    return Fraction(float(x))


@pytest.mark.parametrize("a", [50.0, 1e4, 1e7])
def test_incomplete_gamma_near_the_mean_of_a_large_shape(a):
    """P(a, a) = 1/2 + (1/3 + 1/(540 a) …) / √(2πa): DLMF 8.11.12."""
    want = 0.5 + (1 / 3 + 1 / (540 * a)) / np.sqrt(2 * np.pi * a)
    with gradix.enable_x64(True):
        x = np.array([a])
        np.testing.assert_allclose(np.asarray(gradix.jit(lax.igamma)(x, x)), want, rtol=0.005 / a**2.5 + 1e-13)
        np.testing.assert_allclose(np.asarray(lax.igamma(x, x)), want, rtol=0.005 / a**2.5 + 1e-13)


def test_the_slope_of_random_gamma_grad():
    """In x, against central differences; in a it is not known."""
    a, x = (v.ravel() for v in np.meshgrid([0.4, 1.0, 2.5, 8.0], [0.05, 0.7, 2.0, 9.0]))
    with gradix.enable_x64(True):
        grad = gradix.vmap(gradix.grad(lax.random_gamma_grad, 1))
        h = 1e-5 * x
        around = (lax.random_gamma_grad(a, x + h) - lax.random_gamma_grad(a, x - h)) / (2 * h)
        np.testing.assert_allclose(grad(a, x), around, rtol=1e-5)
        np.testing.assert_allclose(gradix.jit(grad)(a, x), around, rtol=1e-5)
        for call in (
            lambda: gradix.grad(lax.random_gamma_grad)(1.5, 0.7),
            lambda: gradix.grad(gradix.grad(lambda a: gradix.random.gamma(gradix.random.key(0), a)))(1.5),
        ):
            with pytest.raises(NotImplementedError, match="no derivative in a"):
                call()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_sign_of_a_complex_zero_is_zero(dtype):
    zeros = np.array([complex(0, 0), complex(-0.0, 0), complex(0, -0.0), complex(-0.0, -0.0)], dtype)
    with gradix.enable_x64(True):
        for function in (lax.sign, gradix.jit(lax.sign)):
            found = np.asarray(function(zeros))
            np.testing.assert_array_equal(found, 0)
            assert not np.signbit(found.real).any() and not np.signbit(found.imag).any()
            np.testing.assert_allclose(function(np.array([3 + 4j, -2j], dtype)), [0.6 + 0.8j, -1j], rtol=1e-6)


def compare_powers(power, x):
    for exponent in (0.5, -0.5, 1.5, 2.0, -1.0):
        with np.errstate(all="ignore"):
            on_host = np.asarray(power(x, exponent))
        found = np.asarray(gradix.jit(lambda x, y=exponent: power(x, y))(x))
        np.testing.assert_allclose(on_host.astype(float), found.astype(float), rtol=1e-2)
        if exponent == 0.5 and on_host.ndim:
            np.testing.assert_array_equal(
                on_host.astype(float), np.tile([0, 0, np.inf, np.inf, 2, np.nan], x.size // 6)
            )
            assert not np.signbit(on_host[:4]).any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    "power",
    [
        lambda x, y: x**y,
        jnp.pow,
        jnp.power,
        jnp.float_power,
        lambda x, y: x ** jnp.full(1, y, x.dtype),
        lambda x, y: lax.pow(x, jnp.full_like(x, y)),
        lambda x, y: lax.pow(x[1], jnp.asarray(y, x.dtype)),
    ],
)
def test_powers_by_a_half_are_no_square_roots(power, dtype):
    """NumPy takes the square root where one exponent serves all; of -∞ and -0 it is another number (C99, F.10.4.4)."""
    with gradix.enable_x64(dtype == "float64"):
        for size in (6, 120):
            compare_powers(power, jnp.tile(jnp.array([0.0, -0.0, np.inf, -np.inf, 4.0, -4.0], dtype), size // 6))
