"""Elements found by rank, the largest elements, against sorting by NumPy."""
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._ops.sorting import rank_kernel
from gradix.lax.order import ranked

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "bfloat16", "bool", "int8"])
def test_ranked_of_every_width(dtype):
    with gradix.enable_x64(True):
        x = jnp.asarray(RNG.integers(-9, 9, (5000, 2)) * 1.25e30 if dtype == "float64" else RNG.integers(0, 90, (5000, 2))).astype(dtype)
        ranks = np.stack([np.arange(0, 5000, 500), np.arange(1, 5000, 500)], 1).astype("int32")
        found = gradix.jit(ranked)(x, ranks)
    np.testing.assert_array_equal(found, np.take_along_axis(np.sort(np.asarray(x), 0), ranks, 0))


def test_ranked_counts_long_rows_in_groups(monkeypatch):
    monkeypatch.setattr(rank_kernel, "_STEPS", 2)
    x = RNG.standard_normal((20_000, 1)).astype("float32")
    ranks = np.array([[0], [1], [9_999], [9_999], [10_001], [3], [19_999]], "int32")
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
