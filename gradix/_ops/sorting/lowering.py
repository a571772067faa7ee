"""How sorts are spelled.

On the CPU they are left to NumPy, whose loops partition in the processor's vectors: XLA's sort by a comparator takes 10 to 60
times as long.
"""
from __future__ import annotations

import math

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.sorting.packed import emit_order, is_packed

_I32 = np.dtype("int32")
_LEAST = 1 << 12            # elements times levels of halving below which XLA's sort takes no longer than a call of NumPy
_RANKS = 16                 # ranks up to which finding them one by one takes no longer than sorting
# Nanoseconds, measured: XLA's partial sort, scanning an element, and one level of its heap; NumPy's partition of an
# element, and of a row; comparing one with a bound, a row of them, and one that is found; the call.
_SCAN, _HEAP, _PARTITION, _PARTED, _COMPARE, _ROW, _FOUND, _CALL = 2.3, 30.0, 4.0, 200.0, 1.2, 1000.0, 60.0, 250_000.0


def emit_sort(em, xs, axis: int, is_stable: bool, num_keys: int):
    """The sorted operands."""
    if not xs[0].aval.size:
        return list(xs)
    if not all(is_hosted(em, x.aval, axis) for x in xs[:num_keys]):
        return _sort(em, xs, axis, is_stable, lambda *scalars: _before(em, scalars, num_keys))
    keys = [to_rows(em, x, axis) for x in xs[:num_keys]]
    if len(xs) == 1 and xs[0].aval.dtype not in dtypes.COMPLEX:
        return [from_rows(em, em.host_kernel("sort", [keys[0].aval], *keys)[0], xs[0].aval.shape, axis)]
    if len(keys) == 1 and is_packed(keys[0].aval):
        places = emit_order(em, keys[0])
    else:
        places, = em.host_kernel("order", [make_aval(keys[0].aval.shape, _I32)], *keys)
    places = from_rows(em, places, xs[0].aval.shape, axis)
    return [places if x.counted_axis == axis and x.aval.dtype == _I32 else fetch(em, x, places, axis) for x in xs]


def is_hosted(em, aval, axis: int) -> bool:
    """Whether NumPy may and should order an array along an axis."""
    if not em.has_host_kernels(aval) or aval.dtype in dtypes.NARROW_INTEGER | dtypes.NARROW_FLOAT:
        return False
    n = aval.shape[axis]
    return 1 < n < 1 << 31 and aval.size * math.log2(n) >= _LEAST


def ranks_are_found(ranks: int) -> bool:
    """Whether so many elements of a row are found one by one rather than by sorting it."""
    return ranks <= _RANKS


def _sort(em, xs, axis, is_stable, less):
    scalars = [make_aval((), x.aval.dtype) for x in xs for _ in (0, 1)]
    return em.ops("sort", [x.aval for x in xs], *xs, regions=(em.region(scalars, less),),
                  attrs=f"dimension = {axis} : i64, is_stable = {str(is_stable).lower()}")


def _order(ndim: int, axis: int) -> list[int]:
    return [*[i for i in range(ndim) if i != axis], axis]


def to_rows(em, x, axis: int):
    """A matrix with the axis last, the others joined."""
    n = x.aval.shape[axis]
    return em.reshape(em.transpose(x, _order(x.aval.ndim, axis)), (x.aval.size // n, n))


def from_rows(em, rows, shape, axis: int):
    """What `to_rows` made the rows of, whose axis may have got another length."""
    order = _order(len(shape), axis)
    lengths = [*[shape[i] for i in order[:-1]], rows.aval.shape[1]]
    return em.transpose(em.reshape(rows, lengths), [order.index(i) for i in range(len(shape))])


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
        x = em.convert(x, np.dtype("int8" if dtype in dtypes.SIGNED else "uint8"))
    if is_hosted(em, x.aval, axis) and _partition_pays(x.aval, k, axis):
        rows = to_rows(em, x, axis)
        shape = rows.aval.shape[0], k
        found = em.host_kernel("largest", [make_aval(shape, x.aval.dtype), make_aval(shape, _I32)], rows)
        values, places = [from_rows(em, v, x.aval.shape, axis) for v in found]
    else:
        moved, back = em.transpose(x, _order(ndim, axis)), [_order(ndim, axis).index(i) for i in range(ndim)]
        shape = (*moved.aval.shape[:-1], k)
        found = em.top_k(moved, k, [make_aval(shape, moved.aval.dtype), make_aval(shape, _I32)])
        values, places = [em.transpose(v, back) for v in found]
    return [em.convert(values, dtype), places]


def _partition_pays(aval, k: int, axis: int) -> bool:
    """Whether NumPy finds the largest quicker than XLA's partial sort, which there is for float32 only."""
    n = aval.shape[axis]
    rows = aval.size // n
    partial_sort = rows * (n * _SCAN + k * math.log2(n) * _HEAP)
    bounded = aval.size * _COMPARE + rows * (_ROW + k * _FOUND)
    return aval.dtype != np.float32 or partial_sort > min(bounded, aval.size * _PARTITION + rows * _PARTED) + _CALL


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
