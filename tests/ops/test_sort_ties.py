"""What sorting by value leaves in order: zeros of both signs, numbers that XLA takes for zeros, and NaNs, bit for bit.

The ranks are those of JAX 0.10.2 on the CPU, as it put these numbers in order.
"""
import numpy as np
import pytest

import gradix
from gradix import lax
from gradix._ops.sorting.kernels import Work, best_method

RANKS = {
    "float32": {0xFF800000: 0, 0xBF800000: 1, 0: 2, 0x80000000: 2, 1: 2, 0x80000001: 2, 0x007FFFFF: 2, 0x807FFFFF: 2, 0x3F800000: 3,
                0x7F800000: 4, 0x7FC00000: 5, 0xFFC00000: 5, 0x7FC00001: 5, 0x7F800001: 5, 0xFFFFFFFF: 5},
    "float16": {0xFC00: 0, 0xBC00: 1, 0x83FF: 2, 0x8001: 3, 0: 4, 0x8000: 4, 1: 5, 0x3FF: 6, 0x3C00: 7, 0x7C00: 8, 0x7E00: 9, 0xFE00: 9,
                0x7E01: 9, 0x7C01: 9},
    "float64": {0xFFF << 52: 0, 0xBFF << 52: 1, 0: 2, 1 << 63: 2, 1: 2, (1 << 63) + 1: 2, 0x3FF << 52: 3, 0x7FF << 52: 4, 0x7FF8 << 48: 5,
                0xFFF8 << 48: 5, (0x7FF8 << 48) + 5: 5, (0x7FF << 52) + 1: 5},
}
METHODS = {"xla": ((15,), 0), "digits": ((5000,), 0), "digits of long rows": ((1 << 16,), 0), "network": ((700, 9), 1),
           "network of columns": ((33, 300), 0)}


def drawn(dtype, shape):
    """Bits, and the rank of each."""
    table = RANKS[dtype]
    keys = np.array(list(table), f"uint{8 * np.dtype(dtype).itemsize}")
    draw = np.random.default_rng(len(shape)).integers(0, len(table), shape)
    return keys[draw], np.array(list(table.values()))[draw]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", RANKS)
def test_equal_floats_keep_their_order_and_their_bits(dtype, method):
    shape, axis = METHODS[method]
    n, rows = shape[axis], int(np.prod(shape)) // shape[axis]
    assert best_method(Work(rows, n, 8 * np.dtype(dtype).itemsize)) == method.split()[0]
    bits, ranks = drawn(dtype, shape)
    order = np.argsort(ranks, axis, kind="stable")
    with gradix.enable_x64():
        found = np.asarray(gradix.jit(lambda x: lax.sort(x, axis))(bits.view(dtype)))
    np.testing.assert_array_equal(found.view(bits.dtype), np.take_along_axis(bits, order, axis))


@pytest.mark.parametrize("shape", [(5000,), (700, 9)])
def test_an_unstable_sort_has_the_same_values(shape):
    x = np.random.default_rng(0).choice(np.array([0.0, -0.0, 1.5, -2.5, np.nan, np.inf], "float32"), shape)
    found = gradix.jit(lambda x: lax.sort(x, is_stable=False))(x)
    np.testing.assert_array_equal(found, np.sort(x))
