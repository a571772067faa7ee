"""Truncated normal numbers, above all in the tails; and uniform ranges wider than the largest number."""

import numpy as np
import pytest
from scipy import stats

import gradix
import gradix.numpy as jnp
from gradix import random

N = 20_000
BOUNDS = [
    (-1, 1),
    (0, 3),
    (-np.inf, np.inf),
    (3, 3.5),
    (4, 4.5),
    (4, np.inf),
    (5.5, 7),
    (6, np.inf),
    (8, 8.1),
    (20, np.inf),
    (30, 30.01),
    (100, np.inf),
    (1000, 1001),
    (-7, -6),
    (-np.inf, -10),
    (-300, -200),
    (-2, 50),
    (-50, 9),
]


def share(x, low, high):
    """The distribution function of the interval at x, by logarithms, from the side of the nearer tail."""
    x, low, high = [np.float64(v) for v in (x, low, high)]
    if low > -high:
        return 1 - share(-x, -high, -low)
    top, bottom, at = [stats.norm.logcdf(v) for v in (high, low, x)]
    return np.exp(at - top) * np.expm1(bottom - at) / np.expm1(bottom - top)


def drawn(low, high, dtype):
    x = np.asarray(random.truncated_normal(random.key(1), low, high, (N,), dtype), np.float64)
    assert (x > low).all() and (x < high).all()
    return x


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_they_have_the_distribution_and_lie_within(low, high):
    low, high = np.float32(low), np.float32(high)
    x = drawn(low, high, "float32")
    if np.spacing(np.float32(abs(x).max())) * abs(x).max() < 1e-3:  # else the distribution is one of a few numbers
        assert stats.kstest(share(x, low, high), "uniform").pvalue > 1e-4
    else:
        nearest = low if low > 0 else high
        np.testing.assert_allclose(x.mean(), nearest + 1 / nearest, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_halves_lie_where_single_numbers_do(low, high, dtype):
    low, high = [float(jnp.asarray(v, dtype)) for v in (low, high)]
    step = max(
        [
            float(abs(jnp.nextafter(jnp.asarray(v, dtype), jnp.asarray(0, dtype)) - jnp.asarray(v, dtype)))
            for v in (low, high)
            if np.isfinite(v)
        ],
        default=0,
    )
    if high - low < 3 * step:
        pytest.skip("few numbers of this type lie between")
    found, wanted = drawn(low, high, dtype), drawn(low, high, "float32")
    assert abs(found.mean() - wanted.mean()) < 2 * step + 0.05 * wanted.std()


@pytest.mark.x32
def test_bits_of_ordinary_intervals_are_those_of_the_error_function():
    x = random.truncated_normal(random.key(0), -1.0, 1.0, (1000,))
    a, b = [gradix.lax.erf(np.float32(v) / np.sqrt(np.float32(2))) for v in (-1, 1)]
    u = random.uniform(random.key(0), (1000,), minval=a, maxval=b)
    np.testing.assert_allclose(x, np.sqrt(2) * np.asarray(gradix.lax.erf_inv(u)), rtol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (4.5, 6), (9, np.inf), (-40, -30)])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 2), (5000,)])
def test_compiled_as_eager(low, high, shape):
    def draw(key, low, high):
        return random.truncated_normal(key, low, high, shape)

    args = random.key(2), jnp.float32(low), jnp.float32(high)
    eager, compiled = draw(*args), gradix.jit(draw)(*args)
    assert eager.shape == shape
    np.testing.assert_allclose(eager, compiled, rtol=3e-6)


def test_intervals_side_by_side():
    low, high = jnp.array([-1.0, 6, -jnp.inf, 0]), jnp.array([1.0, 7, -8, jnp.inf])
    x = gradix.vmap(lambda k, a, b: random.truncated_normal(k, a, b, (500,)))(random.split(random.key(0), 4), low, high)
    assert ((x > low[:, None]) & (x < high[:, None])).all()
    for row, a, b in zip(x, low, high):
        assert stats.kstest(share(row, a, b), "uniform").pvalue > 1e-4


@pytest.mark.parametrize(("low", "high"), [(-0.5, 1.5), (6.0, 7.0), (-8.0, -5.0), (12.0, 60.0)])
def test_slopes_in_the_bounds(low, high):
    """d x / d low and d x / d high at a fixed place in the distribution, by differences in float64."""
    with gradix.enable_x64():

        def draw(low, high):
            return random.truncated_normal(random.key(5), low, high, (50,), "float64")

        h = 1e-3
        for found, up, down in zip(
            gradix.jacfwd(draw, argnums=(0, 1))(low, high), [(h, 0), (0, h)], [(-h, 0), (0, -h)]
        ):
            wanted = (draw(low + up[0], high + up[1]) - draw(low + down[0], high + down[1])) / (2 * h)
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("compiled", [False, True])
def test_uniform_ranges_wider_than_the_largest_number(dtype, compiled):
    most = float(jnp.finfo(dtype).max)
    draw = (
        gradix.jit(lambda k, a, b: random.uniform(k, (4000,), dtype, a, b))
        if compiled
        else lambda k, a, b: random.uniform(k, (4000,), dtype, a, b)
    )
    x = np.asarray(draw(random.key(0), jnp.asarray(-most, dtype), jnp.asarray(most, dtype)), np.float64) / most
    assert np.isfinite(x).all() and x.min() >= -1 and x.max() <= 1
    assert stats.kstest((x + 1) / 2, "uniform").pvalue > 1e-4


@pytest.mark.x32
def test_ordinary_ranges_keep_their_bits():
    found = random.uniform(random.key(0), (1000,), minval=-3.0, maxval=2.5)
    wanted = np.maximum(
        np.float32(-3), (np.asarray(random.uniform(random.key(0), (1000,)), np.float64) * 5.5 - 3).astype("f")
    )
    np.testing.assert_array_equal(found, wanted)
