"""What drawn calls of `image` and `scipy.special` showed."""

import numpy as np
import pytest

import gradix
from gradix import image, nn, numpy as jnp
from gradix.scipy import special


def test_axes_without_pixels_may_stay():
    assert image.resize(np.zeros((0, 1, 3), np.float32), (0, 2, 6), "cubic").shape == (0, 2, 6)
    with pytest.raises(ValueError, match="without pixels"):
        image.resize(np.zeros((0, 1), np.float32), (2, 1), "linear")


@pytest.mark.parametrize(
    "shape, size",
    [((2, 8, 9, 4), (2, 5, 12, 4)), ((3, 8, 6), (3, 4, 9)), ((40, 3, 4), (40, 7, 4)), ((6, 5, 2), (3, 9, 4))],
)
def test_resizing_stacks_of_images(shape, size):
    """By the weights that resized unit vectors are; few copies of the weights, many, and none for the last axis."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    want = x
    for axis, (old, new) in enumerate(zip(shape, size)):
        if old != new:
            weights = np.asarray(image.resize(np.eye(old, dtype=np.float32), (old, new), "cubic"))
            want = np.moveaxis(np.tensordot(want, weights, ((axis,), (0,))), -1, axis)
    for f in (image.resize, gradix.jit(image.resize, static_argnums=(1, 2))):
        np.testing.assert_allclose(f(x, size, "cubic"), want, rtol=1e-4, atol=1e-5)


def test_the_size_of_one_axis_may_be_an_int():
    np.testing.assert_allclose(image.resize(np.array([0.0, 4.0], np.float32), 4, "linear"), [0, 1, 3, 4])
    with pytest.raises(TypeError, match="shape"):
        image.resize(np.ones(2, np.float32), "a", "linear")


@pytest.mark.parametrize("function", [special.rel_entr, special.kl_div])
def test_entropies_are_of_real_numbers(function):
    with pytest.raises(ValueError, match="complex"):
        function(np.ones(2, np.complex64), 1.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_residual_of_attention_has_the_dtype_of_the_query(dtype):
    q, k = jnp.ones((2, 1, 4), dtype), jnp.ones((3, 1, 4), dtype)
    out, residual = nn.dot_product_attention(q, k, k, return_residual=True)
    assert out.dtype == residual.dtype == dtype
    np.testing.assert_allclose(residual.astype("float32"), np.full((2, 1), 2 + np.log(3)), rtol=1e-2)
