"""A boolean times NaN or infinity is NaN where NumPy says so, compiled as well, though XLA makes a selection of it."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

X = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 2.5, -3.0], "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "product",
    [lambda m, x: m * x, lambda m, x: x * m, lambda m, x: m.astype(x.dtype) * x, lambda m, x: m[:, None] * x[None, :]],
    ids=["left", "right", "converted", "spread"],
)
def test_masks_keep_nan(product, dtype):
    x = jnp.array(X).astype(dtype)
    for mask in (np.zeros(7, bool), np.ones(7, bool), np.arange(7) % 2 == 0):
        got = np.asarray(gradix.jit(product)(jnp.array(mask), x), "float32")
        with np.errstate(invalid="ignore"):
            want = product(mask.astype("float32"), np.asarray(x, "float32"))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(want)[want == 0])


def test_the_loss_of_masked_logarithms():
    x = jnp.array([0.0, -1.0, 2.0])
    total = gradix.jit(lambda x: ((x > 0) * jnp.log(x)).sum())
    assert bool(jnp.isnan(total(x))) and bool(jnp.isnan(((x > 0) * jnp.log(x)).sum()))
