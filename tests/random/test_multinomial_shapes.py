"""Shapes and types of multinomial draws."""

import numpy as np
import pytest

from gradix import numpy as jnp, random


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "float32"])
def test_shape_has_the_axis_of_categories(dtype):
    got = random.multinomial(random.key(0), 10, jnp.array([0.2, 0.3, 0.5]), shape=(4, 3), dtype=dtype)
    assert got.shape == (4, 3) and got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got, int).sum(-1), 10)


def test_the_default_shape_is_that_of_the_probabilities():
    assert random.multinomial(random.key(0), 10, jnp.full((2, 4), 0.25)).shape == (2, 4)


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_shapes_without_the_categories(shape):
    with pytest.raises(ValueError, match="multinomial"):
        random.multinomial(random.key(0), 10, jnp.ones(3) / 3, shape=shape)
