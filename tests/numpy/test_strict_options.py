"""Options that forbid promotion are meant for the user's code: functions work on arguments that need none."""
import pytest

import gradix
import gradix.numpy as jnp
from gradix import image, lax
from gradix.scipy.special import logsumexp

X = jnp.arange(6, dtype="float32").reshape(2, 3)
ROW = jnp.arange(1, 6, dtype="float32")
STATISTICS = ("var", "std", "nanvar", "nanstd", "cov", "mean", "nanmean", "median", "nanmedian", "corrcoef", "average", "sinc",
              "i0", "trapezoid", "gradient", "diff")


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "bfloat16"])
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_need_no_promotion(name, dtype):
    function, x = getattr(jnp, name), X.astype(dtype)
    want = gradix.tree.map(lambda v: (v.shape, v.dtype), function(x))
    with gradix.numpy_rank_promotion("raise"), gradix.numpy_dtype_promotion("strict"):
        assert gradix.tree.map(lambda v: (v.shape, v.dtype), function(x)) == want


@pytest.mark.x32
@pytest.mark.parametrize("call", [
    lambda: jnp.polyfit(ROW, ROW ** 2, 2), lambda: jnp.polyfit(ROW, jnp.stack([ROW, ROW ** 2], 1), 2, w=ROW),
    lambda: jnp.add.outer(ROW, X), lambda: jnp.fft.fft(X), lambda: jnp.fft.rfft2(X), lambda: image.resize(X, (4, 4), "linear"),
    lambda: logsumexp(X, axis=1), lambda: lax.scan(lambda c, v: (c + v, c), jnp.float32(0), ROW, unroll=2)[0]],
    ids=["polyfit", "polyfit of columns", "outer", "fft", "rfft2", "resize", "logsumexp", "scan"])
def test_functions_need_no_promotion(call):
    want = call()
    with gradix.numpy_rank_promotion("raise"), gradix.numpy_dtype_promotion("strict"):
        got = call()
    assert gradix.tree.map(lambda a, b: bool(jnp.allclose(a, b)), got, want)
    assert got.shape == want.shape
