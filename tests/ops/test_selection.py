"""Elements found by rank, the largest elements, against sorting by NumPy."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._base import config
from gradix.lax.order import ranked

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "bfloat16", "bool", "int8"])
def test_ranked_of_every_width(dtype):
    with gradix.enable_x64(True):
        x = jnp.asarray(
            RNG.integers(-9, 9, (5000, 2)) * 1.25e30 if dtype == "float64" else RNG.integers(0, 90, (5000, 2))
        ).astype(dtype)
        ranks = np.stack([np.arange(0, 5000, 500), np.arange(1, 5000, 500)], 1).astype("int32")
        found = gradix.jit(ranked)(x, ranks)
    np.testing.assert_array_equal(found, np.take_along_axis(np.sort(np.asarray(x), 0), ranks, 0))


def test_ranked_in_any_order_next_to_each_other_and_twice():
    x = RNG.standard_normal((20_000, 1)).astype("float32")
    ranks = np.array([[0], [1], [2], [9_999], [9_999], [10_001], [3], [19_999]], "int32")
    found = gradix.jit(lambda *a: ranked(*a))(x, ranks)
    np.testing.assert_array_equal(found, np.take_along_axis(np.sort(x, 0), ranks, 0))


@pytest.mark.parametrize("n", [300, 301, 5000])
def test_percentiles_are_of_neighbours_and_nan_spreads(n):
    x = RNG.standard_normal((n, 3)).astype("float32")
    x[5, 1] = np.nan
    q = np.array([0.0, 31.4, 50.0, 99.9, 100.0], "float32")
    found = gradix.jit(lambda a: jnp.percentile(a, q, axis=0))(x)
    np.testing.assert_allclose(found, np.percentile(x, q, axis=0), rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(gradix.jit(lambda a: jnp.nanmedian(a, axis=0))(x), np.nanmedian(x, axis=0), rtol=1e-6)


def largest(x, k):
    """Places of the largest of each row, of equal ones the first."""
    key = x.astype("float64") if x.dtype.kind == "f" else ~x if x.dtype.kind in "ui" else x
    return np.argsort(-key if x.dtype.kind == "f" else key, -1, kind="stable")[..., :k]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "int8", "uint16", "float16", "int64", "float64"])
@pytest.mark.parametrize("shape, k", [((40, 300), 5), ((40, 300), 90), ((20_000,), 3), ((20_000,), 900), ((30, 9), 9)])
@pytest.mark.parametrize("host_kernels", [True, False], ids=["numpy", "xla"])
def test_top_k_of_every_width(host_kernels, dtype, shape, k):
    """Every third number is one of a few, so that there are ties, also across the limit."""
    with gradix.enable_x64(True), config.Setting("gradix_host_kernels", "")(host_kernels):
        x = RNG.integers(-(1 << 31), (1 << 31) - 1, shape)
        x.reshape(-1)[::3] = RNG.integers(1 << 30, (1 << 30) + 3, len(x.reshape(-1)[::3]))
        x = (x / 1e6 if np.dtype(dtype).kind == "f" else x).astype(dtype)
        values, places = gradix.jit(lambda a: lax.top_k(a, k))(x)
    np.testing.assert_array_equal(places, largest(x, k))
    np.testing.assert_array_equal(values, np.take_along_axis(x, largest(x, k), -1))


@pytest.mark.parametrize("k", [4, 200])
def test_top_k_along_the_first_axis_and_of_special_numbers(k):
    x = RNG.standard_normal((500, 40)).astype("float32")
    x[3], x[4], x[5], x[6], x[7::2] = np.nan, np.inf, -np.inf, -np.nan, -0.0
    x[9::4] = 0.0
    values, places = gradix.jit(lambda a: lax.top_k(a, k, axis=0))(x)
    bits = x.view("int32")
    order = np.argsort(~np.where(bits < 0, bits ^ 0x7FFFFFFF, bits), 0, kind="stable")[:k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(np.asarray(values).view("int32"), np.take_along_axis(bits, order, 0))


def test_top_k_maps_and_differentiates():
    x = RNG.standard_normal((3, 9000)).astype("float32")
    mapped = gradix.jit(gradix.vmap(lambda a: lax.top_k(a, 700)[1]))(x)
    np.testing.assert_array_equal(mapped, largest(x, 700))
    gradient = gradix.jit(gradix.grad(lambda a: lax.top_k(a, 700)[0].sum()))(x)
    np.testing.assert_array_equal(np.sort(np.nonzero(gradient)[1].reshape(3, 700)), np.sort(largest(x, 700)))
