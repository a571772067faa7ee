"""How sorts are spelled.

XLA:CPU sorts one integer array by a plain less-than 4 to 10 times faster than floats by a comparator that knows NaN,
and pairs far slower than single arrays. So floats are sorted as integers of the same order, and on large arrays
pairs as one 64-bit integer that holds the key and the place.
"""
from __future__ import annotations

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval

_I32, _I64, _U64 = np.dtype("int32"), np.dtype("int64"), np.dtype("uint64")
_LARGE = 1 << 13          # elements from which on sorting packed places pays for its longer compilation


def emit_sort(em, xs, axis: int, is_stable: bool, num_keys: int):
    """The sorted operands."""
    key = xs[0].aval
    if not key.size:
        return list(xs)
    if em.platform == "cpu" and num_keys == 1 and key.size >= _LARGE and _has_integer_key(key.dtype):
        if len(xs) == 1:
            return [_sort_single(em, xs[0], axis)]
        if key.dtype.itemsize <= 4 and key.shape[axis] < 1 << 31:
            return _sort_packed(em, xs, axis)
    return _sort(em, xs, axis, is_stable, lambda *scalars: _before(em, scalars, num_keys))


def _has_integer_key(dtype) -> bool:
    return dtype in dtypes.ORDERED and dtype not in dtypes.NARROW_INTEGER | dtypes.NARROW_FLOAT


def _sort(em, xs, axis, is_stable, less):
    scalars = [make_aval((), x.aval.dtype) for x in xs for _ in (0, 1)]
    return em.ops("sort", [x.aval for x in xs], *xs, regions=(em.region(scalars, less),),
                  attrs=f"dimension = {axis} : i64, is_stable = {str(is_stable).lower()}")


def _less(em):
    return lambda a, b: em.compare(a, b, "LT")


def _sort_single(em, x, axis):
    key, = _sort(em, [_ordered_bits(em, x, merge_zeros=False)], axis, False, _less(em))
    return em.bitcast(_flipped(em, key), x.aval) if x.aval.dtype in dtypes.FLOAT else key


def _ordered_bits(em, x, merge_zeros: bool):
    """Integers in the order of `x`; all NaNs are one, the largest."""
    aval = x.aval
    if aval.dtype not in dtypes.FLOAT:
        return x
    bits = make_aval(aval.shape, np.dtype(f"int{8 * aval.dtype.itemsize}"))
    if merge_zeros:
        zero = em.constant(0, aval)
        x = em.select(em.compare(x, zero, "EQ"), zero, x)
    key = _flipped(em, em.bitcast(x, bits))
    nan = np.array(np.nan, aval.dtype).view(bits.dtype)[()]
    return em.select(em.compare(x, x, "NE"), em.constant(abs(nan), bits), key)


def _flipped(em, bits):
    """Sign and magnitude to two's complement, and back."""
    negative = em.compare(bits, em.constant(0, bits.aval), "LT")
    largest = em.constant(np.iinfo(bits.aval.dtype).max, bits.aval)
    return em.select(negative, em.op("xor", bits.aval, bits, largest), bits)


def _sort_packed(em, xs, axis):
    """Sort (key, place) pairs as integers, then fetch every operand from its place."""
    aval = xs[0].aval
    key = _ordered_bits(em, xs[0], merge_zeros=True)
    packed = _packed(em, key, axis)
    if aval.dtype in dtypes.FLOAT:
        return [_fetch(em, x, _places(em, packed), axis) for x in xs]
    shift = "shift_right_logical" if packed.aval.dtype == _U64 else "shift_right_arithmetic"
    first = em.op(shift, packed.aval, packed, em.constant(32, packed.aval))
    return [em.convert(first, aval.dtype), *[_fetch(em, x, _places(em, packed), axis) for x in xs[1:]]]


def _packed(em, key, axis):
    """Sorted 64-bit integers of the keys, which stand in the high half, and their places."""
    aval = key.aval
    wide = make_aval(aval.shape, _U64 if aval.dtype in dtypes.UNSIGNED or aval.dtype in dtypes.BOOL else _I64)
    high = em.op("shift_left", wide, em.op("convert", wide, key), em.constant(32, wide))
    return _sort(em, [em.op("or", wide, high, em.iota(wide, axis))], axis, False, _less(em))[0]


def _places(em, packed):
    return em.convert(em.op("and", packed.aval, packed, em.constant(0xFFFFFFFF, packed.aval)), _I32)


def _fetch(em, x, places, axis):
    ndim = x.aval.ndim
    column = em.reshape(places, (*places.aval.shape, 1))
    others = [i for i in range(ndim) if i != axis]
    return em.op("gather", make_aval(places.aval.shape, x.aval.dtype), x, column, attrs=(
        f"dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [{axis}], operand_batching_dims = {others}, "
        f"start_indices_batching_dims = {others}, start_index_map = [{axis}], index_vector_dim = {ndim}>, "
        f"slice_sizes = array<i64: {', '.join(['1'] * ndim)}>, indices_are_sorted = false"))


# -- top_k --------------------------------------------------------------------------------------------------------

def emit_top_k(em, outs, x, k: int, axis: int):
    """The largest `k` in IEEE's total order and their places."""
    dtype, ndim = x.aval.dtype, x.aval.ndim
    if not outs[0].size:
        return [em.constant(0, o) for o in outs]
    if dtype in dtypes.BOOL | dtypes.NARROW_INTEGER:
        signed = dtype in dtypes.SIGNED
        x = em.convert(x, np.dtype("int8" if signed else "uint8"))
    if em.platform == "cpu" and dtype != np.float32 and x.aval.size >= _LARGE and dtype.itemsize <= 4:
        values, places = _top_k_packed(em, outs, x, axis)         # XLA has a quick top_k for float32 only
    else:
        last = [i for i in range(ndim) if i != axis] + [axis]
        moved, back = em.transpose(x, last), [last.index(i) for i in range(ndim)]
        shape = (*moved.aval.shape[:-1], k)
        types = [make_aval(shape, x.aval.dtype), make_aval(shape, _I32)]
        found = em.ops("chlo.top_k", types, moved, attrs=f"k = {k} : i64")
        values, places = [em.transpose(v, back) for v in found]
    return [em.convert(values, dtype), places]


def _top_k_packed(em, outs, x, axis):
    key = x
    if x.aval.dtype in dtypes.FLOAT:
        key = _flipped(em, em.bitcast(x, make_aval(x.aval.shape, np.dtype(f"int{8 * x.aval.dtype.itemsize}"))))
    places = _places(em, _packed(em, em.op("not", key.aval, key), axis))
    shape, ndim = outs[0].shape, x.aval.ndim
    places = em.op("slice", make_aval(shape, _I32), places, attrs=(
        f"start_indices = array<i64: {', '.join(['0'] * ndim)}>, "
        f"limit_indices = array<i64: {', '.join(map(str, shape))}>, "
        f"strides = array<i64: {', '.join(['1'] * ndim)}>"))
    return _fetch(em, x, places, axis), places


# -- comparators --------------------------------------------------------------------------------------------------

def _before(em, scalars, num_keys):
    """Whether the first of each pair of scalars comes first: a < b, or a = b and the next key decides."""
    pairs = [p for i in range(num_keys) for p in _parts(em, scalars[2 * i], scalars[2 * i + 1])]
    flag = make_aval((), np.dtype(bool))
    result = _smaller(em, *pairs[-1])
    for a, b in reversed(pairs[:-1]):
        result = em.op("or", flag, _smaller(em, a, b), em.op("and", flag, _equal(em, a, b), result))
    return result


def _parts(em, a, b):
    if a.aval.dtype not in dtypes.COMPLEX:
        return [(a, b)]
    part = make_aval((), dtypes.real_dtype(a.aval.dtype))
    return [(em.op(name, part, a), em.op(name, part, b)) for name in ("real", "imag")]


def _smaller(em, a, b):
    less = em.compare(a, b, "LT")
    if a.aval.dtype not in dtypes.FLOAT:
        return less
    only_b_is_nan = em.op("and", less.aval, em.compare(b, b, "NE"), em.compare(a, a, "EQ"))
    return em.op("or", less.aval, less, only_b_is_nan)


def _equal(em, a, b):
    equal = em.compare(a, b, "EQ")
    if a.aval.dtype not in dtypes.FLOAT:
        return equal
    return em.op("or", equal.aval, equal, em.op("and", equal.aval, em.compare(a, a, "NE"), em.compare(b, b, "NE")))
