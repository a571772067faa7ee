"""Places of extrema in large arrays, found by rows, and extrema of half precisions that hold a NaN of either sign."""

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", ml_dtypes.bfloat16, "float32", "float64"]


@pytest.mark.parametrize("n", [1 << 16, (1 << 16) + 1, 100_003])
@pytest.mark.parametrize("dtype", [np.dtype(t) for t in DTYPES], ids=str)
def test_places_of_extrema(dtype, n):
    """The first of equal elements, in the last row as well, and the first NaN."""
    rng = np.random.default_rng(n)
    rows = [rng.integers(0, 2 if dtype.kind == "b" else 50, n).astype(dtype) for _ in range(3)]
    rows[1][:], rows[2][:] = 1, 0
    rows[2][-1] = 1
    if dtype.kind in "fV":
        rows += [rows[0].copy(), rows[0].copy()]
        rows[3][[n // 2, -1]], rows[4][-2:] = np.nan, np.nan
    with gradix.enable_x64():
        places = gradix.jit(lambda x: (jnp.argmax(x), jnp.argmin(x), jnp.argmax(x[None, :, None], 1)[0, 0]))
        for x in rows:
            plain = x.astype("float64")
            assert [int(i) for i in places(x)] == [plain.argmax(), plain.argmin(), plain.argmax()]


CASES = [((16, 4096), 1), ((4096, 16), 0), ((65_536,), 0), ((3, 70_000), 1), ((16, 40), 1)]


def lost(dtype, function):
    """How many NaN are missing from the extrema of arrays with one each."""
    rng, missing = np.random.default_rng(0), 0
    for shape, axis in CASES:
        extrema = gradix.jit(lambda x, axis=axis: function(x, axis))
        for k in range(4):
            x = rng.standard_normal(shape).astype(dtype)
            x.flat[rng.integers(x.size)] = np.nan if k % 2 else -np.nan
            missing += 1 - np.isnan(np.asarray(extrema(x)).astype("float32")).sum()
    return missing


@pytest.mark.parametrize("function", [jnp.max, jnp.min])
@pytest.mark.parametrize("dtype", [np.dtype("float16"), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_extrema_of_halves_keep_nan(dtype, function):
    before = gradix.config.gradix_rewrites
    try:
        gradix.config.update("gradix_rewrites", "off")
        assert lost(dtype, function), "XLA keeps NaN of either sign now: drop the rewrite half_extrema_keep_nan"
        for option in ("correctness", "all"):
            gradix.config.update("gradix_rewrites", option)
            assert not lost(dtype, function)
    finally:
        gradix.config.update("gradix_rewrites", before)
