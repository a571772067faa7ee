"""Poles, integers up to 0 and infinities: SciPy's values, eagerly and compiled; a NaN stays NaN."""

import itertools

import numpy as np
import pytest
import scipy.special

import gradix
from gradix.scipy import special

POINTS = [-np.inf, -7.5, -4, -3, -2, -1.5, -1, -0.5, -0.0, 0.0, 0.5, 1, 1.5, 2, 3, 4, 7.5, 12, np.inf, np.nan]
NUMBERS_OF = {
    "beta": 2,
    "betaln": 2,
    "poch": 2,
    "zeta": 2,
    "comb": 2,
    "digamma": 1,
    "gamma": 1,
    "gammasgn": 1,
    "factorial": 1,
}


def _where_scipy_differs(name, *xs):
    """A pole hides a NaN there; and it has NaN for limits that exist, or few digits far below 0."""
    differs = np.any(np.isnan(xs), 0)
    if name == "zeta":
        return differs | ((xs[0] == np.inf) & (xs[1] > 1)) | (xs[1] < -7)
    if name in ("poch", "comb"):
        return differs | (np.isinf(xs[0]) & np.isfinite(xs[1]) & np.isnan(getattr(scipy.special, name)(*xs)))
    return differs


@pytest.mark.parametrize("how", ["host", "compiled"])
@pytest.mark.parametrize("name", NUMBERS_OF)
def test_values_are_scipys(name, how, x64):
    dtype = np.float64 if x64 else np.float32
    xs = np.array(list(itertools.product(POINTS, repeat=NUMBERS_OF[name])), dtype).T
    f = getattr(special, name)
    f = f if how == "host" else gradix.jit(f)
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(*xs.astype(np.float64))
        differs = _where_scipy_differs(name, *xs.astype(np.float64))
    got = np.asarray(f(*xs))
    assert got.dtype == dtype
    # Logarithms near 0 have an absolute error.
    np.testing.assert_allclose(
        got[~differs], want[~differs].astype(dtype), rtol=1e-9 if x64 else 2e-4, atol=0 if name != "betaln" else 1e-5
    )
    assert np.isnan(got[np.any(np.isnan(xs), 0)]).sum() >= np.isnan(want[np.any(np.isnan(xs), 0)]).sum()


@pytest.mark.parametrize("how", ["host", "compiled"])
def test_hyp1f1_of_infinity(how, x64):
    dtype = np.float64 if x64 else np.float32
    a, b, x = np.array(
        list(
            itertools.product([-3, -2, -1.5, -1, 0, 0.5, 1, 2.5, 3], [-2, -1.5, 0, 0.5, 1, 2, 2.5], [-np.inf, np.inf])
        ),
        dtype,
    ).T
    f = special.hyp1f1 if how == "host" else gradix.jit(special.hyp1f1)
    # Beside infinity the series are summed, whose limit this is.
    near = np.asarray(f(a, b, np.sign(x) * dtype(1e4)))
    got = np.asarray(f(a, b, x))
    want = np.where((a == 0) | np.isinf(near), near, np.where((x < 0) & (abs(near) < 1), 0, np.copysign(np.inf, near)))
    want = np.where((b <= 0) & (b == np.floor(b)), np.inf, want)
    np.testing.assert_array_equal(got, want)
    assert special.hyp1f1(1.0, 2.0, np.inf) == np.inf == scipy.special.hyp1f1(1.0, 2.0, np.inf)


@pytest.mark.parametrize("name", ["beta", "betaln", "poch"])
def test_poles_leave_derivatives_beside_them_finite(name):
    with gradix.enable_x64(True):
        f = getattr(special, name)
        for i in (0, 1):
            got = gradix.vmap(gradix.grad(f, i))(np.array([-3.0, 0.7, -2.5, 12.5]), np.array([2.0, 1.3, 0.8, 30.0]))
            low, high = [
                f(*(np.array(v) + s * np.eye(2)[i][:, None] * 1e-6))
                for s in (-1, 1)
                for v in [[[0.7, -2.5, 12.5], [1.3, 0.8, 30.0]]]
            ]
            np.testing.assert_allclose(got[1:], (np.asarray(high) - np.asarray(low)) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("theta", [-7.0, -2.0, -0.3, 3.5, 5.0, 9.0])
def test_harmonics_of_angles_outside_of_a_half_turn(theta, x64):
    n, m = np.array([(n, m) for n in range(5) for m in range(-n, n + 1)]).T
    thetas, phis = np.full(n.shape, theta), np.full(n.shape, 0.7)
    want = scipy.special.sph_harm_y(n, m, thetas, phis)
    for f in (special.sph_harm_y, gradix.jit(special.sph_harm_y, static_argnames="n_max")):
        got = f(n, m, thetas, phis, n_max=4)
        np.testing.assert_allclose(got, want, rtol=1e-10 if x64 else 1e-4, atol=1e-10 if x64 else 1e-5)


@pytest.mark.parametrize("how", ["host", "compiled"])
def test_complex_poles_of_gamma_have_no_value(how):
    gamma = gradix.jit(special.gamma) if how == "compiled" else special.gamma
    got = np.asarray(gamma(np.array([0, -1, -5, -1.5, 2j], "complex64")))
    assert np.isnan(got[:3].real).all() and np.isnan(got[:3].imag).all()
    np.testing.assert_allclose(got[3:], scipy.special.gamma(np.array([-1.5, 2j])), rtol=1e-5, atol=1e-6)
