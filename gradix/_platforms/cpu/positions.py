"""argmax and argmin of large arrays on the CPU: the best row first, then the place in that row.

XLA compares all elements with the extremum, and reduces candidates of 32 or 64 bits. The extrema of
rows are reductions in the elements' own type; only one row is looked through.
"""

from __future__ import annotations

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._ops.arithmetic import add, min as minimum, mul
from gradix._ops.operands import scalar_like
from gradix._ops.reductions import argmax_p, argmin_p, reduce_and, reduce_max, reduce_min, reduce_or
from gradix._ops.shape import reshape
from gradix._platforms.records import Rewrite

_dynamic_slicing = lazy_module("gradix._ops.indexing.dynamic_slicing")
_joining = lazy_module("gradix._ops.joining")
_slicing = lazy_module("gradix._ops.indexing.slicing")
_trace = lazy_module("gradix._core.trace")
_ROW = 1 << 12
_FEWEST = 1 << 16


def _is_of_one_large_axis(site) -> bool:
    size = site.values[0].aval.size
    return site.is_static() and site.out.size == 1 and size >= _FEWEST


def _by_rows(em, site, x):
    if em.is_divided:
        return NotImplemented
    (place,) = em.expand(_first_place, x, find=site.primitive)
    return em.reshape(em.convert(place, site.out.dtype), site.out.shape)


def _first_place(x, *, find):
    n = x.aval.size
    flat, rows = reshape(x, (n,)), n // _ROW
    counter = np.dtype("int64" if n >= 1 << 31 else "int32")
    body = flat if n == rows * _ROW else _slicing.slice_in_dim(flat, 0, rows * _ROW)
    best = _extremum(find, reshape(body, (rows, _ROW)))
    if n != rows * _ROW:
        # The last elements are a row that begins early enough to be whole, and loses where equal.
        last = _extremum(find, reshape(_slicing.slice_in_dim(flat, n - _ROW, n), (1, _ROW)))
        best = _joining.concatenate([best, last], 0)
    row = _trace.bind(find, (best,), {"axes": (0,), "index_dtype": counter})
    start = minimum(mul(row, scalar_like(row, _ROW)), scalar_like(row, n - _ROW))
    within = _dynamic_slicing.dynamic_slice(flat, (start,), (_ROW,), allow_negative_indices=False)
    place = _trace.bind(find, (within,), {"axes": (0,), "index_dtype": counter})
    return [add(start, place)]


def _extremum(find, rows):
    if rows.aval.dtype == bool:
        return (reduce_or if find is argmax_p else reduce_and)(rows, (1,))
    return (reduce_max if find is argmax_p else reduce_min)(rows, (1,))


REWRITES = (Rewrite("positions_by_rows", (argmax_p, argmin_p), _by_rows, _is_of_one_large_axis),)
