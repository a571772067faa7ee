"""Sorts on the CPU by NumPy, whose sort is vectorized.

XLA's sort calls a comparator, and takes many times as long (docs/kernels.md).
"""

from __future__ import annotations

import math

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.sorting.comparators import axis_last, comparable, fetch
from gradix._ops.sorting.ranked import ranked_p
from gradix._ops.sorting.sort import sort_p, top_k_p
from gradix._platforms.cpu.packed_keys import emit_order, is_packed
from gradix._platforms.records import Rewrite

_I32 = np.dtype("int32")
# NumPy pays from this product of elements and log2 of the sorted size on.
_LEAST = 1 << 12
_RANKS = 16  # up to so many ranks, finding each one is as quick as sorting
# The measured costs in nanoseconds. XLA's partial sort: to scan an element, a level of its heap.
# NumPy: to partition an element, a row; to compare an element with a bound, a row, a hit; to call.
_SCAN, _HEAP, _PARTITION, _PARTED, _COMPARE, _ROW, _FOUND, _CALL = (2.3, 30.0, 4.0, 200.0, 1.2, 1000.0, 60.0, 250_000.0)


def _is_long(aval, axis: int) -> bool:
    """Whether to sort along an axis by NumPy, as XLA's sort would take longer than a call of it."""
    if type(aval.size) is not int or not aval.size or aval.dtype in dtypes.NARROW_INTEGER | dtypes.NARROW_FLOAT:
        return False
    n = aval.shape[axis]
    return 1 < n < 1 << 31 and aval.size * math.log2(n) >= _LEAST


def _sort(em, site, *xs):
    axis, num_keys = site.params["dimension"], site.params["num_keys"]
    if not em.has_host_kernels(*[x.aval for x in xs[:num_keys]]):
        return NotImplemented
    keys = [to_rows(em, x, axis) for x in xs[:num_keys]]
    if len(xs) == 1 and xs[0].aval.dtype not in dtypes.COMPLEX:
        return [from_rows(em, em.host_kernel("sort", [keys[0].aval], *keys)[0], xs[0].aval.shape, axis)]
    if len(keys) == 1 and is_packed(keys[0].aval):
        places = emit_order(em, keys[0])
    else:
        (places,) = em.host_kernel("order", [make_aval(keys[0].aval.shape, _I32)], *keys)
    places = from_rows(em, places, xs[0].aval.shape, axis)
    return [places if x.counted_axis == axis and x.aval.dtype == _I32 else fetch(em, x, places, axis) for x in xs]


def _has_long_keys(site) -> bool:
    return all(_is_long(x.aval, site.params["dimension"]) for x in site.values[: site.params["num_keys"]])


def _ranked(em, site, x, ranks):
    if not em.has_host_kernels(x.aval):
        return NotImplemented
    rows, places = to_rows(em, x, 0), to_rows(em, ranks, 0)
    (found,) = em.host_kernel("at_ranks", [make_aval(places.aval.shape, x.aval.dtype)], rows, places)
    return from_rows(em, found, site.out.shape, 0)


def _has_few_ranks(site) -> bool:
    x, ranks = [v.aval for v in site.values]
    return bool(site.out.size) and type(ranks.shape[0]) is int and ranks.shape[0] <= _RANKS and _is_long(x, 0)


# -- rows ------------------------------------------------------------------------------------------


def to_rows(em, x, axis: int):
    """`x` as a matrix, with the sorted axis last and all others joined."""
    n = x.aval.shape[axis]
    return em.reshape(em.transpose(x, axis_last(x.aval.ndim, axis)), (x.aval.size // n, n))


def from_rows(em, rows, shape, axis: int):
    """The inverse of `to_rows`; the length of the axis may have changed."""
    order = axis_last(len(shape), axis)
    lengths = [*[shape[i] for i in order[:-1]], rows.aval.shape[1]]
    return em.transpose(em.reshape(rows, lengths), [order.index(i) for i in range(len(shape))])


# -- top_k -----------------------------------------------------------------------------------------


def _top_k(em, site, x):
    k, axis, dtype = site.params["k"], site.params["axis"], x.aval.dtype
    if not em.has_host_kernels(x.aval):
        return NotImplemented
    x = comparable(em, x)
    rows = to_rows(em, x, axis)
    shape = rows.aval.shape[0], k
    found = em.host_kernel("largest", [make_aval(shape, x.aval.dtype), make_aval(shape, _I32)], rows)
    values, places = [from_rows(em, v, x.aval.shape, axis) for v in found]
    return [em.convert(values, dtype), places]


def _is_worth_partition(site) -> bool:
    (x,), k, axis = site.values, site.params["k"], site.params["axis"]
    aval = x.aval
    if aval.dtype in dtypes.BOOL | dtypes.NARROW_INTEGER:
        aval = make_aval(aval.shape, np.dtype("int8"))
    return bool(site.out[0].size) and type(k) is int and _is_long(aval, axis) and _partition_pays(aval, k, axis)


def _partition_pays(aval, k: int, axis: int) -> bool:
    """Whether NumPy finds the largest sooner than XLA, whose partial sort is for float32 only."""
    n = aval.shape[axis]
    rows = aval.size // n
    partial_sort = rows * (n * _SCAN + k * math.log2(n) * _HEAP)
    bounded = aval.size * _COMPARE + rows * (_ROW + k * _FOUND)
    return aval.dtype != np.float32 or partial_sort > min(bounded, aval.size * _PARTITION + rows * _PARTED) + _CALL


REWRITES = (
    Rewrite("sorts_by_numpy", (sort_p,), _sort, _has_long_keys),
    Rewrite("top_k_by_numpy", (top_k_p,), _top_k, _is_worth_partition),
    Rewrite("ranks_by_numpy", (ranked_p,), _ranked, _has_few_ranks),
)
