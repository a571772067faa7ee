"""What `Ragged` is made of: its parts looked at, and rows put into a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix._base.errors import class_of
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array
from gradix._core.dimensions.counts import bound_of
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix._ops.convert import convert_element_type
from gradix._ops.counted import whole
from gradix._ops.creation import full
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.indexing.slicing import pad
from gradix._ops.joining import stack

_GIVEN = (Array, np.ndarray, np.generic, list, tuple)
_FLOAT0 = dtypes.float0


def parts(buffer, counts, axes) -> tuple:
    """The buffer and the counts as arrays that fit together.

    What stands in the place of both, such as types, places, or axes for `vmap`, is returned as it is.

    Raises:
        TypeError: one of them is no array, or the counts or axes are no integers.
        ValueError: their shapes do not fit together, or a count is negative or beyond the buffer.
    """
    check_axes(axes)
    if type(buffer) not in (list, tuple) and not isinstance(buffer, _GIVEN) and not isinstance(counts, _GIVEN):
        return buffer, counts
    for name, x in (("buffer", buffer), ("counts", counts)):
        if not isinstance(x, _GIVEN):
            raise TypeError(f"Ragged: the {name} must be an array, got {x!r} of type {class_of(x)}.")
    if isinstance(counts, (list, tuple)):
        counts = np.asarray(counts) if len(counts) else np.zeros(0, np.int32)
    if isinstance(counts, np.generic):
        counts = np.asarray(counts)
    check_dtype(counts)
    buffer = buffer if isinstance(buffer, Array) else as_array(np.asarray(buffer))
    _check_shapes(buffer.shape, counts.shape, axes)
    check_values(buffer.shape, counts, axes)
    return buffer, counts if isinstance(counts, Array) or counts.dtype == _FLOAT0 else as_array(counts)


def check_axes(axes) -> None:
    if isinstance(axes, tuple) and axes:
        numbers, least = list(axes), 0
    else:
        numbers, least = [axes], 1
    if any(isinstance(a, bool) or not isinstance(a, (int, np.integer)) for a in numbers):
        raise TypeError(f"Ragged: axes must be a number of axes, or a tuple of axes such as (0, 1), got {axes!r}.")
    if len(set(numbers)) < len(numbers) or min(numbers) < least:
        raise ValueError(
            f"Ragged: axes must be a number from 1, or a tuple of axes of a row, counted from 0, without repetition, "
            f"got {axes!r}."
        )


def check_dtype(counts) -> None:
    """Raise for counts that are numbers but no integers, as a function of arithmetic makes them."""
    dtype = getattr(counts, "dtype", None)
    if getattr(dtype, "kind", "i") in "iuV":
        return
    raise TypeError(
        f"Ragged: the counts of rows must be integers, got {dtypes.dtype_name(dtype)} of shape {counts.shape}. "
        "tree.map maps the counts as well as the elements: write Ragged(f(rows.buffer), rows.counts), or rows.map(f) "
        "for each row."
    )


def _check_shapes(buffer: tuple, counts: tuple, axes) -> None:
    own = list(axes) if isinstance(axes, tuple) else list(range(axes))
    rows = counts[:-1] if isinstance(axes, tuple) else counts
    if isinstance(axes, tuple) and counts[-1:] != (len(axes),):
        raise ValueError(
            f"Ragged with axes={axes} needs counts with a column for each of them, got counts of shape {counts}."
        )
    if buffer[: len(rows)] != rows or len(buffer) <= len(rows) + max(own):
        raise ValueError(
            f"Ragged: a buffer of shape {buffer} and counts of shape {counts} do not fit together. The buffer has the "
            f"{'axes' if len(rows) > 1 else 'axis'} of rows, then {max(own) + 1} with the elements of a row; counts "
            "has a number for each row."
        )


def check_values(shape: tuple, counts, axes, row: int | None = None) -> None:
    """Raise for known counts that are negative, or more than the buffer has room for."""
    if isinstance(counts, Tracer) or not _is_read(counts):
        return
    found = np.asarray(counts)
    if found.dtype == _FLOAT0:
        raise TypeError(
            "Ragged: this tangent or cotangent of counts, of dtype float0, is no number of elements. Take the counts "
            "from the rows that it belongs to, as Ragged(tangent.buffer, rows.counts)."
        )
    rank = found.ndim - isinstance(axes, tuple)
    sizes = shape[rank:]
    room = np.asarray([sizes[a] for a in axes] if isinstance(axes, tuple) else min(sizes[:axes]), np.int64)
    wrong = (found < 0) | (found > room)
    if wrong.any():
        at = tuple(int(i[0]) for i in wrong.nonzero())
        most = int(room if room.ndim == 0 else room[at[-1]])
        which = f" of row {at[0] if row is None else row}" if rank or row is not None else ""
        raise ValueError(
            f"Ragged: the count{which} is {int(found[at])}, but must be from 0 to {most}, the number of elements that "
            "a row of the buffer has room for."
        )


def _is_read(counts) -> bool:
    """Whether the values of counts can be read here."""
    if not isinstance(counts, Array):
        return True
    return type(counts) is ArrayImpl and not counts.is_deleted() and counts.is_fully_addressable


def filled(rows: Sequence, bound: int | None, dtype) -> tuple:
    """A buffer with the rows, and their lengths, as `Ragged.of` says it."""
    try:
        rows = list(rows)
    except TypeError:
        raise TypeError(f"Ragged.of takes a sequence of rows, got {rows!r} of type {class_of(rows)}.") from None
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, (int, np.integer))):
        raise TypeError(f"Ragged.of: bound must be an integer, got {bound!r} of type {class_of(bound)}.")
    if any(isinstance(r, Tracer) for r in rows):
        return _filled_with_traced([r if isinstance(r, Array) else as_array(_row(r)) for r in rows], bound, dtype)
    arrays = [_row(r) for r in rows]
    # a list without elements does not say which shape they would have
    shapes = {a.shape[1:] for a in arrays if a.size or a.ndim > 1} or {()}
    _check_rows(arrays, shapes)
    longest = max([a.shape[0] for a in arrays], default=0)
    _check_bound(bound, longest)
    if dtype is None:
        dtype = dtypes.result_type(*_typed(rows, arrays)) if arrays else np.float32
    shape = len(arrays), longest if bound is None else bound, *shapes.pop()
    buffer = np.zeros(shape, dtype)
    for row, a in zip(buffer, arrays):
        if len(a):
            row[: len(a)] = a
    return as_array(buffer), as_array(np.asarray([len(a) for a in arrays], np.int32).reshape(len(arrays)))


def _row(r) -> np.ndarray:
    if type(r).__module__.startswith("numpy.ma"):
        as_array(r)  # raises: its mask would be lost
    try:
        a = np.asarray(r)
    except ValueError as e:
        if "inhomogeneous" not in str(e):
            raise
        raise ValueError(
            f"Ragged.of: the elements of a row have different shapes, in {r!r}. Elements of rows have one shape; rows "
            "of rows of different lengths are Ragged.of(rows) for each, in a list."
        ) from None
    if a.dtype.kind in "OUSMm":
        raise TypeError(f"Ragged.of, in the row {r!r}: {dtypes.refusal(a.dtype)}")
    if a.dtype.kind in "iu" and not hasattr(r, "dtype") and a.size:
        for x in (int(a.min()), int(a.max())):
            dtypes.check_python_int(x, dtypes.canonicalize_dtype(a.dtype))
    return a


def _typed(rows, arrays) -> list:
    """The dtypes that decide that of all; lists without elements have none, if others have."""
    full = [a for r, a in zip(rows, arrays) if a.size or hasattr(r, "dtype")]
    return [dtypes.canonicalize_dtype(a.dtype) for a in full or arrays]


def _check_rows(arrays, shapes) -> None:
    if len(shapes) > 1 or any(not a.ndim for a in arrays):
        raise ValueError(
            "Ragged.of: each row must be a sequence of elements of one shape, got rows of shapes "
            f"{', '.join(map(str, dict.fromkeys([a.shape for a in arrays])))}."
        )


def _check_bound(bound, longest) -> None:
    if bound is not None and longest > bound:
        raise ValueError(f"Ragged.of: bound={bound} is less than the length of the longest row, {longest}.")


def _filled_with_traced(rows: list, bound: int | None, dtype) -> tuple:
    """As `filled`, of arrays of which some are traced and may have sizes that values decide."""
    _check_rows(rows, {r.shape[1:] for r in rows})
    longest = max([bound_of(r.shape[0]) for r in rows])
    _check_bound(bound, longest)
    room = longest if bound is None else bound
    dtype = dtypes.canonicalize_dtype(dtype) if dtype is not None else dtypes.result_type(*[r.dtype for r in rows])
    buffers = []
    for r in rows:
        x = whole(convert_element_type(r, dtype), 0)
        rest = [(0, room - x.aval.shape[0], 0), *[(0, 0, 0)] * (x.aval.ndim - 1)]
        buffers.append(pad(x, full((), 0, x.aval.dtype), rest))
    counts = [convert_element_type(_length(r), np.int32) for r in rows]
    return stack(buffers, 0), stack(counts, 0)


def _length(r) -> Any:
    n = r.shape[0]
    return as_array(np.int32(n)) if isinstance(n, int) else dim_as_value(n)


def cut(values, offsets, bound: int | None) -> tuple:
    """A buffer with the rows of one array, and their lengths, as `Ragged.from_offsets` says it."""
    for name, x in (("values", values), ("offsets", offsets)):
        if not isinstance(x, _GIVEN):
            raise TypeError(f"Ragged.from_offsets: {name} must be an array, got {x!r} of type {class_of(x)}.")
    at = offsets if isinstance(offsets, Array) else np.asarray(offsets)
    if at.ndim != 1 or not at.size:
        raise ValueError(
            f"Ragged.from_offsets: offsets must be a vector with one number more than there are rows, got shape "
            f"{at.shape}."
        )
    if at.dtype.kind not in "iu":
        raise TypeError(f"Ragged.from_offsets: offsets must be integers, got dtype {dtypes.dtype_name(at.dtype)}.")
    if not isinstance(values, Array):
        values = as_array(_row(values))
    if not values.ndim:
        raise ValueError("Ragged.from_offsets: values must have an axis of elements, got a single number.")
    total = values.shape[0]
    if not isinstance(at, Tracer):
        at = np.asarray(at)
        lengths = np.diff(at.astype(np.int64))
        if (lengths < 0).any() or at[0] < 0 or at[-1] > total:
            raise ValueError(
                f"Ragged.from_offsets: offsets must not decrease and lie between 0 and the {total} values, got "
                f"{at.tolist()}."
            )
        longest = int(lengths.max(initial=0))
        _check_bound(bound, longest)
        bound = longest if bound is None else bound
        at = as_array(at.astype(np.int32))
    bound = total if bound is None else bound
    starts = at[:-1]
    counts = convert_element_type(at[1:] - starts, np.int32)
    if not total or not bound:
        return full((starts.shape[0], bound, *values.shape[1:]), 0, values.dtype), counts
    places = starts[:, None] + as_array(np.arange(bound, dtype=np.int32))
    return values.at[places].get(mode="clip"), counts


def number(i, count: int) -> int:
    """The number of a row, from an index."""
    if isinstance(i, (bool, np.bool_)) or not hasattr(i, "__index__"):
        raise TypeError(
            f"the index of a row must be an integer, a slice, or an array of integers or booleans, got {i!r}. Write "
            "rows[i][j] for an element of a row."
        )
    i = i.__index__()
    if not -count <= i < count:
        raise IndexError(f"row {i} is out of range for a Ragged of {count} rows.")
    return i % count
