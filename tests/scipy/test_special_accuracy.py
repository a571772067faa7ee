"""Formulas of our own, in units in the last place against mpmath over the whole domain, with derivatives and half precisions."""

import mpmath as mp
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.scipy import special, stats

RNG = np.random.default_rng(3)


def spread(low, high, n=120):
    return np.exp(RNG.uniform(np.log(low), np.log(high), n))


def dawson(x):
    if abs(x) > 30:
        return sum(mp.rf(mp.mpf(1) / 2, k) / x ** (2 * k) for k in range(12)) / (2 * x)
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def scaled_erfc(x):
    if x > 50:
        return sum((-1) ** k * mp.rf(mp.mpf(1) / 2, k) / x ** (2 * k) for k in range(12)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def log_ndtr(x):
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) if x < 0 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)


# The exact function, its derivative, arguments, and the greatest error in ulp: values in single and double, derivatives in both.
CASES = {
    "dawsn": (
        dawson,
        lambda x: 1 - 2 * x * dawson(x),
        np.concatenate([RNG.uniform(-9, 9, 300), spread(1e-6, 1e6), -spread(1e-3, 30)]),
        (6, 8, 40, 60),
    ),
    "erfcx": (
        scaled_erfc,
        lambda x: 2 * x * scaled_erfc(x) - 2 / mp.sqrt(mp.pi),
        np.concatenate([RNG.uniform(-9, 20, 300), spread(1e-6, 1e6)]),
        (7, 8, 150, 150),
    ),
    "logit": (
        lambda p: mp.log(p / (1 - p)),
        lambda p: 1 / (p * (1 - p)),
        np.concatenate(
            [RNG.uniform(0.001, 0.999, 200), 0.5 + spread(1e-6, 0.3), 0.5 - spread(1e-6, 0.3), spread(1e-30, 0.1)]
        ),
        (3, 3, 3, 3),
    ),
    "log_ndtr": (log_ndtr, None, np.concatenate([RNG.uniform(-9, 6, 300), -spread(10, 1e4)]), (60, 3e5, 0, 0)),
    "gammasgn": (
        lambda x: mp.sign(mp.gamma(x)),
        None,
        np.concatenate([RNG.uniform(-30, 5, 100), [-1e6 - 0.5, -1e6 + 0.5]]),
        (0, 0, 0, 0),
    ),
}


def ulps(got, want):
    got, size = np.asarray(got), np.spacing(abs(np.array([float(w) for w in want], got.dtype)))
    assert np.isfinite(got).all()
    return max(float(abs(mp.mpf(float(g)) - w)) / s for g, w, s in zip(got, want, size, strict=True))


@pytest.mark.parametrize("wide", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("name", CASES)
def test_errors_in_units_of_the_last_place(name, wide):
    exact, slope, x, limits = CASES[name]
    f = getattr(special, name)
    with gradix.enable_x64(wide), mp.workdps(40):
        x = x.astype("float64" if wide else "float32")
        at = [mp.mpf(float(v)) for v in x]
        want = [exact(v) for v in at]
        for values in (f(x), gradix.jit(f)(x)):
            assert values.dtype == x.dtype and ulps(values, want) <= limits[wide]
        if slope is not None:
            want = [slope(v) for v in at]
            # Relative to the size of the terms: the derivative of Dawson's integral has a zero.
            kept = np.array([name != "dawsn" or abs(abs(v) - 0.924) > 0.05 for v in x])
            slopes = gradix.vmap(gradix.grad(f))
            for values in (slopes(x), gradix.jit(slopes)(x)):
                values = np.asarray(values)[kept]
                assert ulps(values, [w for w, k in zip(want, kept, strict=True) if k]) <= limits[2 + wide]


@pytest.mark.parametrize(
    "name, order, limit", [("dawsn", 2, 300), ("erfcx", 2, 3000), ("logit", 2, 30), ("log_ndtr", 1, 3000)]
)
def test_derivatives_of_higher_order(name, order, limit):
    exact, f = CASES[name][0], getattr(special, name)
    for _ in range(order):
        f = gradix.grad(f)
    with gradix.enable_x64(True):
        for x in {"logit": (0.2, 0.45, 0.5, 0.8)}.get(name, (-3.1, -0.3, 0.0, 0.2, 2.5, 5.5)):
            with mp.workdps(60):
                want = mp.diff(exact, mp.mpf(x), order)
            np.testing.assert_allclose(float(f(x)), float(want), rtol=limit * 2**-52, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["dawsn", "erfcx", "logit", "gammasgn"])
def test_half_precisions_are_rounded_once(name, dtype):
    f, x = getattr(special, name), jnp.asarray(np.append(RNG.uniform(0.05, 0.95, 50), 0.5)).astype(dtype)
    want = f(x.astype("float32")).astype(dtype)
    for values in (f(x), gradix.jit(f)(x)):
        assert values.dtype == x.dtype and jnp.array_equal(values, want)


def test_complex_logit(x64):
    z = np.array([0.3 + 0.4j, -2 - 1j], "complex128" if x64 else "complex64")
    np.testing.assert_allclose(special.logit(z), np.log(z / (1 - z)), rtol=1e-6)


@pytest.mark.parametrize(
    "name, x, want",
    [
        ("logit", [0, 1, -0.5, 2, np.nan], [-np.inf, np.inf, np.nan, np.nan, np.nan]),
        ("erfcx", [-np.inf, -40, np.inf, 1e30, np.nan], [np.inf, np.inf, 0, 0.5641895835 / 1e30, np.nan]),
        ("dawsn", [-np.inf, np.inf, 1e30, 0, np.nan], [0, 0, 0.5e-30, 0, np.nan]),
        ("log_ndtr", [-np.inf, np.inf, -1e30, np.nan], [-np.inf, 0, -np.inf, np.nan]),
    ],
)
def test_edges_of_the_domain(name, x, want):
    f, x = getattr(special, name), np.array(x, np.float32)
    for values in (f(x), gradix.jit(f)(x)):
        np.testing.assert_allclose(values, want, rtol=1e-6)


@pytest.mark.parametrize("wide", [False, True], ids=["single", "double"])
def test_sums_of_shapes_are_not_rounded(wide):
    """Coefficients of binomial and negative binomial distributions, whose sums of operands are known."""
    k = np.concatenate([np.arange(0, 40), [300, 9999]])
    with gradix.enable_x64(wide), mp.workdps(40):
        k = k.astype("float64" if wide else "float32")
        for n in (60.0, 10000.0):
            inside = k[k <= n]
            want = [mp.log(mp.binomial(n, int(v))) + int(v) * mp.log(0.5) + (n - int(v)) * mp.log(0.5) for v in inside]
            got = np.asarray(stats.binom.logpmf(inside, n, 0.5))
            scale = max(1, n) * np.finfo(k.dtype).eps
            np.testing.assert_allclose(got, [float(w) for w in want], rtol=60 * np.finfo(k.dtype).eps, atol=4 * scale)
        want = [mp.log(mp.binomial(int(v) + 2, int(v))) + 3 * mp.log(0.25) + int(v) * mp.log(0.75) for v in k]
        np.testing.assert_allclose(
            np.asarray(stats.nbinom.logpmf(k, 3.0, 0.25)), [float(w) for w in want], rtol=60 * np.finfo(k.dtype).eps
        )


@pytest.mark.parametrize(
    "name, params",
    [
        ("binom", (10.0, 0.3)),
        ("nbinom", (3.0, 0.3)),
        ("geom", (0.3,)),
        ("poisson", (4.0,)),
        ("bernoulli", (0.3,)),
        ("betabinom", (10.0, 2.0, 3.0)),
    ],
)
def test_outside_of_the_support_and_nan(name, params):
    f = getattr(stats, name).logpmf
    k = jnp.array([-1.0, jnp.nan])
    for values in (f(k, *params), gradix.jit(f)(k, *params)):
        assert values[0] == -jnp.inf and jnp.isnan(values[1])
    # A parameter that is NaN is not hidden.
    assert jnp.isnan(f(1.0, *params[:-1], jnp.nan))
    assert float(gradix.grad(f, 1)(-1.0, *params)) == 0
