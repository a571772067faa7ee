"""Shifts of integers narrower than NumPy's."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


@pytest.mark.parametrize("dtype", ["int2", "int4", "int8"])
def test_arithmetic_shifts_of_narrow_integers_keep_the_sign(dtype):
    bits = int(dtype[3:])
    x = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1))
    for n in range(min(bits, 2 ** (bits - 1))):
        operands = jnp.asarray(x).astype(dtype), jnp.full(x.shape, n).astype(dtype)
        for shift in (lax.shift_right_arithmetic, gradix.jit(lax.shift_right_arithmetic)):
            np.testing.assert_array_equal(np.asarray(shift(*operands)).astype(int), x >> n)
