"""What sorting by value leaves in order: zeros of both signs, numbers that XLA takes for zeros, and NaNs, bit for bit.

The ranks are those of JAX 0.10.2 on the CPU, as it put these numbers in order.
"""

import numpy as np
import pytest

import gradix
from gradix import lax
from gradix._base import config

RANKS = {
    "float32": {
        0xFF800000: 0,
        0xBF800000: 1,
        0: 2,
        0x80000000: 2,
        1: 2,
        0x80000001: 2,
        0x007FFFFF: 2,
        0x807FFFFF: 2,
        0x3F800000: 3,
        0x7F800000: 4,
        0x7FC00000: 5,
        0xFFC00000: 5,
        0x7FC00001: 5,
        0x7F800001: 5,
        0xFFFFFFFF: 5,
    },
    "float16": {
        0xFC00: 0,
        0xBC00: 1,
        0x83FF: 2,
        0x8001: 3,
        0: 4,
        0x8000: 4,
        1: 5,
        0x3FF: 6,
        0x3C00: 7,
        0x7C00: 8,
        0x7E00: 9,
        0xFE00: 9,
        0x7E01: 9,
        0x7C01: 9,
    },
    "float64": {
        0xFFF << 52: 0,
        0xBFF << 52: 1,
        0: 2,
        1 << 63: 2,
        1: 2,
        (1 << 63) + 1: 2,
        0x3FF << 52: 3,
        0x7FF << 52: 4,
        0x7FF8 << 48: 5,
        0xFFF8 << 48: 5,
        (0x7FF8 << 48) + 5: 5,
        (0x7FF << 52) + 1: 5,
    },
}
SHAPES = {
    "short": ((15,), 0),
    "long": ((5000,), 0),
    "very long": ((1 << 16,), 0),
    "rows": ((700, 9), 1),
    "columns": ((33, 300), 0),
    "shared rows": ((9, 1 << 15), 1),
}


def drawn(dtype, shape):
    """Bits, and the rank of each."""
    table = RANKS[dtype]
    keys = np.array(list(table), f"uint{8 * np.dtype(dtype).itemsize}")
    draw = np.random.default_rng(len(shape)).integers(0, len(table), shape)
    return keys[draw], np.array(list(table.values()))[draw]


@pytest.mark.parametrize("host_kernels", [True, False], ids=["numpy", "xla"])
@pytest.mark.parametrize("shape, axis", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", RANKS)
def test_equal_floats_keep_their_order_and_their_bits(dtype, shape, axis, host_kernels):
    bits, ranks = drawn(dtype, shape)
    order = np.argsort(ranks, axis, kind="stable")
    with gradix.enable_x64(), config.Setting("gradix_host_kernels", "")(host_kernels):
        found = np.asarray(gradix.jit(lambda x: lax.sort(x, axis))(bits.view(dtype)))
        places = gradix.jit(lambda x: lax.sort_key_val(x, lax.broadcasted_iota("int32", shape, axis), axis)[1])(
            bits.view(dtype)
        )
    np.testing.assert_array_equal(found.view(bits.dtype), np.take_along_axis(bits, order, axis))
    np.testing.assert_array_equal(places, order)


@pytest.mark.parametrize("shape", [(5000,), (700, 9)])
def test_an_unstable_sort_has_the_same_values(shape):
    x = np.random.default_rng(0).choice(np.array([0.0, -0.0, 1.5, -2.5, np.nan, np.inf], "float32"), shape)
    found = gradix.jit(lambda x: lax.sort(x, is_stable=False))(x)
    np.testing.assert_array_equal(found, np.sort(x))
