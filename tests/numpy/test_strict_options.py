"""Options that forbid promotion are meant for the user's code: functions work on arguments that need none."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import image, lax
from gradix.scipy.special import logsumexp

X = jnp.arange(6, dtype="float32").reshape(2, 3)
ROW = jnp.arange(1, 6, dtype="float32")
STATISTICS = (
    "var",
    "std",
    "nanvar",
    "nanstd",
    "cov",
    "mean",
    "nanmean",
    "median",
    "nanmedian",
    "corrcoef",
    "average",
    "sinc",
    "i0",
    "trapezoid",
    "gradient",
    "diff",
)


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "bfloat16"])
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_need_no_promotion(name, dtype):
    function, x = getattr(jnp, name), X.astype(dtype)
    want = gradix.tree.map(lambda v: (v.shape, v.dtype), function(x))
    with gradix.numpy_rank_promotion("raise"), gradix.numpy_dtype_promotion("strict"):
        assert gradix.tree.map(lambda v: (v.shape, v.dtype), function(x)) == want


@pytest.mark.x32
@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.polyfit(ROW, ROW**2, 2),
        lambda: jnp.polyfit(ROW, jnp.stack([ROW, ROW**2], 1), 2, w=ROW),
        lambda: jnp.add.outer(ROW, X),
        lambda: jnp.trapezoid(X, ROW[:3]),
        lambda: jnp.trapezoid(X, ROW[:2], axis=0),
        lambda: jnp.fft.fft(X),
        lambda: jnp.fft.rfft2(X),
        lambda: image.resize(X, (4, 4), "linear"),
        lambda: logsumexp(X, axis=1),
        lambda: lax.scan(lambda c, v: (c + v, c), jnp.float32(0), ROW, unroll=2)[0],
    ],
    ids=[
        "polyfit",
        "polyfit of columns",
        "outer",
        "trapezoid",
        "trapezoid of columns",
        "fft",
        "rfft2",
        "resize",
        "logsumexp",
        "scan",
    ],
)
def test_functions_need_no_promotion(call):
    want = call()
    with gradix.numpy_rank_promotion("raise"), gradix.numpy_dtype_promotion("strict"):
        got = call()
    assert gradix.tree.map(lambda a, b: bool(jnp.allclose(a, b)), got, want)
    assert got.shape == want.shape


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.linspace(0.0, 1.0, 5, dtype="float16"),
        lambda: jnp.linspace(0, jnp.float32(1), 3, dtype="float16"),
        lambda: jnp.logspace(0.0, 1.0, 3, dtype="bfloat16"),
        lambda: jnp.var(X.astype("float16"), dtype="float32"),
        lambda: jnp.std(X.astype("int32"), dtype="float16"),
        lambda: jnp.fft.fft(jnp.ones((0, 3), "float32")),
    ],
    ids=["linspace", "linspace of arrays", "logspace", "var", "std", "fft of nothing"],
)
def test_the_dtype_asked_for_is_no_promotion(call):
    want = call()
    with gradix.numpy_dtype_promotion("strict"):
        got = call()
    assert (got.shape, got.dtype) == (want.shape, want.dtype)


def test_axes_are_vectors_of_numpy_too():
    axes = np.array([0, -1])
    assert jnp.sum(X, axes) == X.sum() and jnp.expand_dims(X, axes).shape == (1, 2, 3, 1) and X.max(axes) == 5
    assert jnp.roll(X, (1, 1), range(2)).tolist() == jnp.roll(X, (1, 1), axes).tolist() == [[5, 3, 4], [2, 0, 1]]
    with pytest.raises(ValueError, match="duplicate"):
        jnp.sum(X, np.array([0, 0]))
    with pytest.raises(TypeError, match="axis must be an integer"):
        jnp.sum(X, np.array([0.0]))


def test_truth_values_of_python_update_numbers():
    with gradix.numpy_dtype_promotion("strict"):
        np.testing.assert_array_equal(jnp.arange(3).at[2].set(False), [0, 1, 0])
        np.testing.assert_array_equal(jnp.arange(3.0).at[1].add(True), [0, 2, 2])
        assert jnp.arange(3).at[2].set(False).dtype == jnp.arange(3).dtype
        with pytest.raises(ValueError, match="strict"):
            jnp.arange(3).at[1].set(np.bool_(False))


@pytest.mark.parametrize("axis, distances", [(0, (5,)), (1, (3, 5)), (1, (5,)), (2, (4, 1)), (0, (2, 4, 5))])
def test_distances_of_trapezoids_may_have_fewer_axes(axis, distances):
    rng = np.random.default_rng(0)
    y, dx = rng.random((3, 4, 5), np.float32), rng.random(distances, np.float32)
    with gradix.numpy_rank_promotion("raise"):
        np.testing.assert_allclose(jnp.trapezoid(y, dx=dx, axis=axis), np.trapezoid(y, dx=dx, axis=axis), rtol=1e-6)
