"""The order of short keys, by sorting numbers that hold a key above the bits of its place."""

from __future__ import annotations

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._platforms.cpu.kernel_loops import apart

_I32, _I64, _F64 = np.dtype("int32"), np.dtype("int64"), np.dtype("float64")


def is_packed(aval) -> bool:
    """Whether key and place fit into a number of a type for which NumPy's sort is vectorized."""
    return aval.dtype.itemsize <= 4 and 8 * aval.dtype.itemsize + _place_bits(aval) < 62


def _place_bits(aval) -> int:
    return max(1, (aval.shape[1] - 1).bit_length())


def emit_order(em, keys):
    """The places that sort each row of `keys`; equal keys keep their order.

    Numbers of more than 32 bits are stored as positive normal float64, since AVX2 compares floats
    of 64 bits, but not integers.
    """
    aval, places = keys.aval, _place_bits(keys.aval)
    short = 8 * aval.dtype.itemsize + places <= 32
    numbers = make_aval(aval.shape, np.dtype(f"{'u' if aval.dtype.kind == 'u' else 'i'}4") if short else _I64)
    packed = make_aval(aval.shape, numbers.dtype if short else _F64)
    # XLA must not fuse this with the computation of the keys: a loop with 64-bit values has half
    # the lanes.
    together = apart(em, "keys_with_places", packed, lambda x: _with_places(em, x, places, numbers, packed), keys)
    (found,) = em.host_kernel("sort_numbers", [packed], together, aliases={0: 0})
    found = em.op("and", numbers, em.bitcast(found, numbers), em.constant((1 << places) - 1, numbers))
    return em.convert(found, _I32)


def _with_places(em, keys, places: int, numbers, packed):
    key = em.convert(_integers(em, keys), numbers.dtype)
    found = em.op("add", numbers, em.op("shift_left", numbers, key, em.constant(places, numbers)), em.iota(numbers, 1))
    if packed is numbers:
        return found
    offset = (1 << 62) + (0 if keys.aval.dtype.kind in "bu" else 1 << 8 * keys.aval.dtype.itemsize - 1 + places)
    return em.bitcast(em.op("add", numbers, found, em.constant(offset, numbers)), packed)


def _integers(em, keys):
    """Integers in the order of the keys, with one integer for all zeros and one for all NaN."""
    aval = keys.aval
    dtype = aval.dtype
    if dtype in dtypes.BOOL:
        return em.convert(keys, np.dtype("uint8"))
    if dtype not in dtypes.FLOAT:
        return keys
    whole = make_aval(aval.shape, np.dtype(f"i{dtype.itemsize}"))
    largest = int(np.iinfo(whole.dtype).max)
    infinity, nan = [int(np.array(v, dtype).view(whole.dtype)) & largest for v in (np.inf, np.nan)]
    # XLA compares float16 as float32
    least = 1 if dtype == np.float16 else infinity & -infinity
    bits = em.bitcast(keys, whole)
    magnitude = em.op("and", whole, bits, em.constant(largest, whole))
    sign = em.op("shift_right_arithmetic", whole, bits, em.constant(8 * dtype.itemsize - 1, whole))
    found = em.op("xor", whole, bits, em.op("and", whole, sign, em.constant(largest, whole)))
    found = em.select(em.compare(magnitude, em.constant(least, whole), "LT"), em.constant(0, whole), found)
    return em.select(em.compare(magnitude, em.constant(infinity, whole), "GT"), em.constant(nan, whole), found)
