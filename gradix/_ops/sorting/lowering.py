"""How sorts are spelled.

On the CPU, floats are sorted as integers of the same order by kernels of our own wherever their model says that they
beat XLA's sort by a comparator, which is 4 to 60 times slower on floats; operands that are carried along are fetched
from the sorted places.
"""
from __future__ import annotations

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.sorting.digits import sort_by_digits
from gradix._ops.sorting.kernels import Work, best_method, largest_pays
from gradix._ops.sorting.network import sort_rows
from gradix._ops.sorting.rank_kernel import find_smallest
from gradix._ops.sorting.ties import in_order_of_input

_I32, _U32, _U64 = np.dtype("int32"), np.dtype("uint32"), np.dtype("uint64")
_LONG = 1 << 16           # elements of a row from which on carrying each with its key takes longer than looking for equal ones
_LARGE = 1 << 13          # elements from which on the largest are found by a kernel


def emit_sort(em, xs, axis: int, is_stable: bool, num_keys: int):
    """The sorted operands."""
    key = xs[0].aval
    if not key.size:
        return list(xs)
    if em.platform == "cpu" and all(type(n) is int for n in key.shape) and key.shape[axis] < 1 << 31:
        found = _by_kernel(em, xs, axis, is_stable, num_keys)
        if found is not None:
            return found
    return _sort(em, xs, axis, is_stable, lambda *scalars: _before(em, scalars, num_keys))


def _by_kernel(em, xs, axis: int, is_stable: bool, num_keys: int):
    """The sorted operands by a kernel of ours, or None where XLA's sort is the quicker."""
    parts = [p for x in xs[:num_keys] for p in _real_parts(em, x)]
    if not all(_has_integer_key(p.aval.dtype) for p in parts):
        return None
    n, bits = xs[0].aval.shape[axis], [8 * p.aval.dtype.itemsize for p in parts]
    carries = len(xs) > 1 or len(parts) > 1
    work = Work(xs[0].aval.size // n, n, sum(bits), carries, parts[0].aval.dtype in dtypes.FLOAT)
    method = best_method(work)
    if method == "xla":
        return None
    if not carries:
        return [_sort_single(em, xs[0], axis, is_stable, method)]
    if method == "digits" and len(xs) == 2 and num_keys == 1 and _packs(xs):
        return _sort_with_value(em, xs, axis)
    places = None
    for part in reversed(parts):
        places = _places(em, unsigned_bits(em, part, merge_zeros=True), axis, method, places)
    return [places if x.counts == axis and x.aval.dtype == _I32 else fetch(em, x, places, axis) for x in xs]


def _real_parts(em, x) -> list:
    if x.aval.dtype not in dtypes.COMPLEX:
        return [x]
    part = make_aval(x.aval.shape, dtypes.real_dtype(x.aval.dtype))
    return [em.op("real", part, x), em.op("imag", part, x)]


def _has_integer_key(dtype) -> bool:
    return dtype in dtypes.ORDERED and dtype not in dtypes.NARROW_INTEGER | dtypes.NARROW_FLOAT


def _sort(em, xs, axis, is_stable, less):
    scalars = [make_aval((), x.aval.dtype) for x in xs for _ in (0, 1)]
    return em.ops("sort", [x.aval for x in xs], *xs, regions=(em.region(scalars, less),),
                  attrs=f"dimension = {axis} : i64, is_stable = {str(is_stable).lower()}")


# -- keys ---------------------------------------------------------------------------------------------------------

def unsigned_bits(em, x, merge_zeros: bool, merge_nans: bool = True):
    """Unsigned integers in the order of `x`; all NaNs are one, the largest, or stand in IEEE's total order."""
    dtype, shape = x.aval.dtype, x.aval.shape
    if dtype in dtypes.UNSIGNED:
        return x
    if dtype in dtypes.BOOL:
        return em.convert(x, np.dtype("uint8"))
    own, nan = x, None
    if dtype in dtypes.FLOAT:
        nan = em.compare(x, x, "NE") if merge_nans else None
        if merge_zeros:
            zero = em.constant(0, x.aval)
            x = em.select(em.compare(x, zero, "EQ"), zero, x)
        x = _flipped(em, em.bitcast(x, make_aval(shape, np.dtype(f"int{8 * dtype.itemsize}"))))
    key = _signed_to_unsigned(em, x, np.dtype(f"uint{8 * dtype.itemsize}"))
    if nan is None:
        return key
    largest = np.array(np.nan, own.aval.dtype).view(f"int{8 * dtype.itemsize}")
    first = np.iinfo(key.aval.dtype).max // 2 + 1
    return em.select(nan, em.constant(first + int(abs(largest)), key.aval), key)


def _signed_to_unsigned(em, x, dtype):
    """The same order; and, given unsigned integers and a signed dtype, back."""
    own = np.iinfo(x.aval.dtype)
    turned = em.op("xor", x.aval, x, em.constant(own.min if own.min else own.max // 2 + 1, x.aval))
    return em.bitcast(turned, make_aval(x.aval.shape, dtype))


def from_bits(em, key, aval):
    """The numbers that `unsigned_bits` made `key` of."""
    dtype = aval.dtype
    if dtype in dtypes.UNSIGNED:
        return key
    if dtype in dtypes.BOOL:
        return em.convert(key, dtype)
    signed = _signed_to_unsigned(em, key, np.dtype(f"int{8 * dtype.itemsize}"))
    return em.bitcast(_flipped(em, signed), aval) if dtype in dtypes.FLOAT else signed


def _flipped(em, bits):
    """Sign and magnitude to two's complement, and back."""
    negative = em.compare(bits, em.constant(0, bits.aval), "LT")
    largest = em.constant(np.iinfo(bits.aval.dtype).max, bits.aval)
    return em.select(negative, em.op("xor", bits.aval, bits, largest), bits)


# -- kernels on axes ----------------------------------------------------------------------------------------------

def _sort_single(em, x, axis, is_stable, method):
    dtype = x.aval.dtype
    if dtype not in dtypes.FLOAT or not is_stable:
        key = unsigned_bits(em, x, merge_zeros=False)
        return from_bits(em, _run(em, key, axis, method, _bits(key)), x.aval)
    if method == "digits" and x.aval.shape[axis] < _LONG:
        return _with_own_bits(em, x, axis)
    key = unsigned_bits(em, x, merge_zeros=False)
    out = from_bits(em, _run(em, key, axis, method, _bits(key)), x.aval)
    to = 0 if axis == 0 else -1
    rows = in_order_of_input(em, _to_matrix(em, x, axis, to), _to_matrix(em, out, axis, to), 1 if to else 0)
    return _from_matrix(em, rows, x.aval.shape, axis, to)


def _with_own_bits(em, x, axis):
    """Floats sorted by keys in which equal ones are alike, each carried along with its key."""
    key, width = unsigned_bits(em, x, merge_zeros=True), 8 * x.aval.dtype.itemsize
    own = make_aval(x.aval.shape, key.aval.dtype)
    bits = em.bitcast(x, own)
    if width == 64:
        _, bits = sort_by_digits(em, _to_matrix(em, key, axis, -1), range(64), _to_matrix(em, bits, axis, -1))
        return em.bitcast(_from_matrix(em, bits, x.aval.shape, axis, -1), x.aval)
    wide = make_aval(x.aval.shape, np.dtype(f"uint{2 * width}"))
    high = em.op("shift_left", wide, em.convert(key, wide.dtype), em.constant(width, wide))
    packed = em.op("or", wide, high, em.convert(bits, wide.dtype))
    return em.bitcast(em.convert(_run(em, packed, axis, "digits", range(width, 2 * width)), own.dtype), x.aval)


def _bits(key) -> range:
    return range(8 * key.aval.dtype.itemsize)


def _run(em, key, axis, method, bits):
    """A kernel on integers along any axis."""
    if method == "network":
        to = 0 if axis == 0 else -1                                # rows as well as columns, so that nothing is transposed
        return _from_matrix(em, sort_rows(em, _to_matrix(em, key, axis, to), 1 if to else 0), key.aval.shape, axis, to)
    rows, = sort_by_digits(em, _to_matrix(em, key, axis, -1), bits)
    return _from_matrix(em, rows, key.aval.shape, axis, -1)


def _order(ndim: int, axis: int, to: int) -> list[int]:
    others = [i for i in range(ndim) if i != axis]
    return [axis, *others] if to == 0 else [*others, axis]


def _to_matrix(em, x, axis: int, to: int):
    """The axis first or last, the others joined."""
    n, rest = x.aval.shape[axis], x.aval.size // x.aval.shape[axis]
    x = em.transpose(x, _order(x.aval.ndim, axis, to))
    return em.reshape(x, (n, rest) if to == 0 else (rest, n))


def _from_matrix(em, matrix, shape, axis: int, to: int):
    order = _order(len(shape), axis, to)
    return em.transpose(em.reshape(matrix, [shape[i] for i in order]), [order.index(i) for i in range(len(shape))])


def _places(em, key, axis, method, before=None):
    """The places that put the keys in order; `before` is an order to which ties, and the keys themselves, are brought."""
    places = em.iota(make_aval(key.aval.shape, _I32), axis) if before is None else before
    key = key if before is None else fetch(em, key, before, axis)
    if key.aval.dtype.itemsize <= 4:
        packed = _run(em, _packed(em, key, places), axis, method, _high(key))
        return em.convert(packed, _I32)
    matrix, carried = [_to_matrix(em, v, axis, -1) for v in (key, places)]
    _, carried = sort_by_digits(em, matrix, range(64), carried)
    return _from_matrix(em, carried, key.aval.shape, axis, -1)


def _high(key) -> range:
    return range(32, 32 + 8 * key.aval.dtype.itemsize)


def _packed(em, key, low):
    """64-bit integers with the keys in the high half and 32-bit integers in the low one."""
    wide = make_aval(key.aval.shape, _U64)
    high = em.op("shift_left", wide, em.convert(key, _U64), em.constant(32, wide))
    bits = low if low.aval.dtype == _U32 else em.bitcast(low, make_aval(low.aval.shape, _U32))
    return em.op("or", wide, high, em.convert(bits, _U64))


def _packs(xs) -> bool:
    """Whether key and value fit in 64 bits, out of which both can be had again."""
    key, value = [x.aval.dtype for x in xs]
    return key not in dtypes.FLOAT and key.itemsize <= 4 and value in dtypes.NUMERIC and value.itemsize == 4


def _sort_with_value(em, xs, axis):
    """Sort integers and one other array by digits of both in one."""
    key = unsigned_bits(em, xs[0], merge_zeros=True)
    value = xs[1].aval
    low = xs[1] if value.dtype == _U32 else em.bitcast(xs[1], make_aval(value.shape, _U32))
    packed = _run(em, _packed(em, key, low), axis, "digits", _high(key))
    first = em.op("shift_right_logical", packed.aval, packed, em.constant(32, packed.aval))
    low = em.convert(packed, _U32)
    return [from_bits(em, em.convert(first, key.aval.dtype), xs[0].aval),
            low if value.dtype == _U32 else em.bitcast(low, make_aval(value.shape, value.dtype))]


def fetch(em, x, places, axis):
    """`x` at `places` along an axis, all other axes running together."""
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
    if em.platform == "cpu" and _is_selected(x.aval, k, axis):
        values, places = _top_k_selected(em, x, k, axis)
    else:
        last = [i for i in range(ndim) if i != axis] + [axis]
        moved, back = em.transpose(x, last), [last.index(i) for i in range(ndim)]
        found = _top_k_of_rows(em, moved, (*moved.aval.shape[:-1], k))
        values, places = [em.transpose(v, back) for v in found]
    return [em.convert(values, dtype), places]


def _is_selected(aval, k: int, axis: int) -> bool:
    """Whether to find the largest by rank: where that is quicker than XLA's partial sort, or that takes no such numbers."""
    if not all(type(n) is int for n in aval.shape) or not _has_integer_key(aval.dtype) or aval.size < _LARGE:
        return False
    n, bits = aval.shape[axis], 8 * aval.dtype.itemsize
    return n < 1 << 31 and (bits == 64 or largest_pays(Work(aval.size // n, n, bits), k))


def _top_k_selected(em, x, k: int, axis: int):
    key = unsigned_bits(em, x, merge_zeros=False, merge_nans=False)
    key = em.op("not", key.aval, key)
    shape = tuple([k if i == axis else n for i, n in enumerate(x.aval.shape)])
    places = _from_matrix(em, find_smallest(em, _to_matrix(em, key, axis, -1), k), shape, axis, -1)
    method = best_method(Work(places.aval.size // k, k, 8 * key.aval.dtype.itemsize, True))
    places = _places(em, key, axis, "digits" if method == "xla" else method, places)
    return fetch(em, x, places, axis), places


def _top_k_of_rows(em, x, shape):
    """XLA's. It has a quick one on the CPU for float32 only, as which other types of 32 bits and less can pass."""
    types = [make_aval(shape, x.aval.dtype), make_aval(shape, _I32)]
    if em.platform != "cpu" or x.aval.dtype == np.float32 or not _has_integer_key(x.aval.dtype) or x.aval.dtype.itemsize > 4:
        return em.ops("chlo.top_k", types, x, attrs=f"k = {shape[-1]} : i64")
    floats = np.dtype("float32")
    key = em.convert(unsigned_bits(em, x, merge_zeros=False, merge_nans=False), _U32)
    passed = from_bits(em, key, make_aval(x.aval.shape, floats))
    values, places = em.ops("chlo.top_k", [make_aval(shape, floats), types[1]], passed, attrs=f"k = {shape[-1]} : i64")
    key = em.convert(unsigned_bits(em, values, merge_zeros=False, merge_nans=False), np.dtype(f"uint{8 * x.aval.dtype.itemsize}"))
    return [from_bits(em, key, types[0]), places]


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
