"""Zeros, infinities and NaN: the functions whose values there are SciPy's, eagerly, compiled and by grad."""

import itertools

import numpy as np
import pytest
import scipy.special

import gradix
import gradix.numpy as jnp
from gradix.scipy import special

POINTS = [0.0, 1.0, 0.5, np.inf, np.nan]
# What is left otherwise: a NaN stays one, also where SciPy says that a pole of the other operand hides it.
OTHERWISE = {("betaln", 0.0, np.nan), ("betaln", np.nan, 0.0)}


def _known(name, point):
    return any(n == name and np.array_equal(rest, point, equal_nan=True) for n, *rest in OTHERWISE)


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p", "betaln"])
def test_of_two_numbers(name, x64):
    dtype = np.float64 if x64 else np.float32
    points = [p for p in itertools.product(POINTS, POINTS) if not _known(name, p)]
    a, b = np.array(points, dtype).T
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(a, b)
    for f in (getattr(special, name), gradix.jit(getattr(special, name))):
        np.testing.assert_allclose(f(a, b), want, rtol=1e-5, atol=1e-6)


def test_of_one_number(x64):
    x = np.array(POINTS, np.float64 if x64 else np.float32)
    for f in (special.spence, gradix.jit(special.spence)):
        np.testing.assert_allclose(f(x), scipy.special.spence(x), rtol=1e-5)


def test_powers_below_zero_have_a_limit(x64):
    for f in (special.boxcox, special.boxcox1p):
        assert f(jnp.inf, -2.0) == 0.5 and f(jnp.inf, 2.0) == jnp.inf == f(jnp.inf, 0.0)


@pytest.mark.parametrize(
    "name, point",
    [
        ("rel_entr", (0.5, 2.0)),
        ("kl_div", (0.5, 2.0)),
        ("boxcox", (2.0, 0.0)),
        ("boxcox", (2.0, 0.7)),
        ("boxcox1p", (2.0, -0.7)),
        ("betaln", (0.5, 2.0)),
        ("betaln", (30.0, 2.0)),
    ],
)
def test_edges_leave_the_derivatives_alone(name, point):
    f = getattr(special, name)
    with gradix.enable_x64(True):
        for i in (0, 1):
            moved = [list(point), list(point)]
            moved[0][i] -= 1e-6
            moved[1][i] += 1e-6
            want = (f(*moved[1]) - f(*moved[0])) / 2e-6
            np.testing.assert_allclose(gradix.grad(f, i)(*point), want, rtol=1e-6, atol=1e-8)
