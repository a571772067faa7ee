"""Reductions that ignore NaN, and sets, of all floating types: those without infinity, and those that NumPy cannot order."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

DTYPES = [
    np.dtype(getattr(jnp, name))
    for name in dir(jnp)
    if name.startswith(("float8", "float16", "bfloat16", "float32")) and name != "float8_e8m0fnu"
]
REDUCTIONS = (
    "nanmax",
    "nanmin",
    "nanargmax",
    "nanargmin",
    "nansum",
    "nanprod",
    "nanmean",
    "nanmedian",
    "nancumsum",
    "nancumprod",
)


def test_there_are_all_floating_types():
    assert len(DTYPES) >= 8


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions_that_ignore_nan(dtype):
    x = np.array([[np.nan, 1, 2], [np.nan, 2, 0.5]], np.float64)
    for name in REDUCTIONS:
        function = getattr(jnp, name)
        want = np.asarray(getattr(np, name)(x)).astype(dtype) if "arg" not in name else np.asarray(getattr(np, name)(x))
        for way in (function, gradix.jit(function)):
            found = np.asarray(way(jnp.asarray(x.astype(dtype))))
            np.testing.assert_array_equal(found.astype(float), want.astype(float), f"{name} of {dtype}")
    negative = jnp.asarray(np.array([np.nan, -2, -1]).astype(dtype)) if np.array(-1).astype(dtype) == -1 else None
    if negative is not None:
        assert (
            float(jnp.nanmax(negative)) == -1
            and int(jnp.nanargmax(negative)) == 2
            and float(jnp.nanmin(negative)) == -2
        )
    alone = jnp.asarray(np.array([np.nan, np.nan]).astype(dtype))
    assert np.isnan(float(jnp.nanmax(alone))) and int(jnp.nanargmin(alone)) == -1


def test_the_largest_and_smallest_of_powers_of_two_without_zero():
    x = jnp.asarray(np.array([np.nan, 1, 4, 0.5]).astype(jnp.float8_e8m0fnu))
    assert [float(f(x)) for f in (jnp.nanmax, jnp.nanmin)] == [4, 0.5]
    assert [int(f(x)) for f in (jnp.nanargmax, jnp.nanargmin)] == [2, 3]


@pytest.mark.parametrize("dtype", [*DTYPES, np.dtype(jnp.float8_e8m0fnu)], ids=str)
def test_sets_hold_one_nan(dtype):
    x = np.array([np.nan, 1, 2, np.nan, 2, 1, np.nan]).astype(dtype)
    values, first, inverse, counts = jnp.unique(
        jnp.asarray(x), return_index=True, return_inverse=True, return_counts=True
    )
    assert values.dtype == dtype and str(values.astype(float).tolist()) == "[1.0, 2.0, nan]"
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 0], [2, 0, 1, 2, 1, 0, 2], [2, 2, 3])
    sized = gradix.jit(lambda x: jnp.unique(x, size=3))(x)
    np.testing.assert_array_equal(sized.astype(float), values.astype(float))
    for function in (jnp.union1d, jnp.setxor1d, jnp.intersect1d, jnp.setdiff1d):
        want = getattr(np, function.__name__)(x.astype(float), x[1:3].astype(float))
        found = function(jnp.asarray(x), jnp.asarray(x[1:3]))
        np.testing.assert_array_equal(found.astype(float), want, function.__name__)
        assert found.dtype == dtype


@pytest.mark.parametrize(
    "a, b", [([1, 1, 2, 2, 2, 3], [2, 4, 4]), ([], [1, 1]), ([], []), ([1, np.nan, np.nan], [np.nan, 2])]
)
def test_setxor1d_counts_values_as_they_are_when_they_are_said_to_be_distinct(a, b):
    a, b = np.array(a, np.float32), np.array(b, np.float32)
    want = np.setxor1d(a, b, assume_unique=True)
    np.testing.assert_array_equal(jnp.setxor1d(a, b, assume_unique=True), want)
    if want.size:
        found = gradix.jit(lambda a, b: jnp.setxor1d(a, b, assume_unique=True, size=want.size))(a, b)
        np.testing.assert_array_equal(found, want)
