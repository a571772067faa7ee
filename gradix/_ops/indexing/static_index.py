"""Indexing of concrete arrays by NumPy, which is quicker in eager programs than a primitive."""

from __future__ import annotations

from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from gradix._base.config import guards_transfers
from gradix._core.array import ArrayImpl
from gradix._core.aval import located, make_aval
from gradix._core.dtypes import is_extended
from gradix._core.trace import state

# An array that is only on the device is fetched for this if it has at most so many elements.
_FETCHED = 1 << 17
_BASIC = frozenset({int, slice, NoneType, EllipsisType})
_COMBINE: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def _value(x: ArrayImpl) -> np.ndarray | None:
    h = x._host
    return h if h is not None or x.aval.size > _FETCHED else x.host


def _numpy_index(index) -> Any:
    """The index in NumPy's form; None where a part is traced or of a type NumPy does not take."""
    if type(index) is tuple:
        if _BASIC.issuperset(map(type, index)):
            return index
        parts = []
        for e in index:
            if type(e) not in _BASIC:
                e = _numpy_index(e)
                if e is None:
                    return None
            parts.append(e)
        return tuple(parts)
    if type(index) in _BASIC:
        return index if index is not None else (None,)
    if type(index) is ArrayImpl:
        index = _value(index)
    elif type(index) is not np.ndarray or guards_transfers():
        return None
    if index is None or index.dtype.kind not in "iub" or (not index.ndim and index.dtype.kind == "b"):
        return None
    return index


def host_get(x, index) -> ArrayImpl | None:
    """`x[index]` by NumPy for a concrete array outside staging; None where a primitive must do it.

    It must where an index is out of bounds: NumPy raises, while gather clamps or fills by mode.
    """
    if type(x) is not ArrayImpl or state.stage is not None:
        return None
    place = x.aval.place
    if place is not None and not place.is_whole:
        return None
    h = x._host
    if h is None:
        h = _value(x)
    where = index if type(index) is int or type(index) is slice else _numpy_index(index)
    if where is None or h is None:
        return None
    try:
        out = h[where]
    except (IndexError, OverflowError, TypeError, ValueError):
        return None
    aval = x.aval
    if type(out) is not np.ndarray:
        # A key stays a view, as the check of key reuse identifies keys by their position in memory.
        view = is_extended(aval.dtype) and type(index) is int
        out = h[index, ...] if view else np.asarray(out, h.dtype)
    found = make_aval(out.shape, aval.dtype, aval.weak_type)
    return ArrayImpl(out, found if place is None else located(found, place.of_rank(found.ndim)))


def host_update(x, index, y, op: str) -> ArrayImpl | None:
    """`x` with `x[index]` updated by NumPy, for concrete arrays of one dtype; else None.

    Args:
        op: "set", "add", "sub", "mul", "min" or "max"; repeated indices are applied in order.
    """
    if type(x) is not ArrayImpl or type(y) is not ArrayImpl or state.stage is not None:
        return None
    if x.aval.place is not y.aval.place:
        return None
    h, value = _value(x), _value(y)
    where = _numpy_index(index)
    if h is None or value is None or where is None:
        return None
    try:
        if value.ndim and value.ndim > h[where].ndim:
            return None
        out = h.copy()
        if op == "set":
            out[where] = value
        elif h.dtype.kind in "iuf":
            with np.errstate(all="ignore"):
                _combine(out, where, value, _COMBINE[op])
        else:
            return None
    except (IndexError, OverflowError, TypeError, ValueError):
        return None
    return ArrayImpl(out, x.aval)


def _combine(out: np.ndarray, where, value: np.ndarray, function: np.ufunc) -> None:
    parts = where if type(where) is tuple else (where,)
    if _BASIC.issuperset(map(type, parts)):
        part = out[where if Ellipsis in parts else (*parts, ...)]
        function(part, value, out=part)
    else:
        function.at(out, where, value)
