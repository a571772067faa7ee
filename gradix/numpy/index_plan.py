"""Plans of indexing: what an index selects of an array of a given shape.

A plan is made once for a shape and a key, and kept. The key is the index with shapes in place of
arrays: a tuple of `int`, `(SLICE, start, stop, step)`, `(ARRAY, shape)`, `None` for a new axis, and
`...`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradix import lax
from gradix._base.bounded import BoundedCache
from gradix._base.errors import InconclusiveDimensionOperation
from gradix._core.dimensions.expression import has_counts, is_symbolic_shape, larger, smaller

SLICE, ARRAY = 0, 1
_INT32_END = 2**31
_WHOLE = (SLICE, None, None, None)


class Number(NamedTuple):
    """A column of the index array in which all elements are one number."""

    value: int


class Steps(NamedTuple):
    """A column that counts along one axis of the index array: `start + step * i`, `i < count`."""

    start: int
    step: int
    count: int  # type: ignore[assignment]
    axis: int


class Picked(NamedTuple):
    """A column that is an array of the index.

    It holds the array's place in the index, the axes of the index array that it spans, and the size
    of the operand's axis that it indexes.
    """

    place: int
    axes: tuple
    size: Any


class IndexPlan:
    """What `x[index]` selects of an array of one shape, for one key.

    - `kind`: "static" (slices alone), "dynamic" (scalar arrays and contiguous slices) or "gather".
    - `shape`: the shape of the result; `inner` is the shape without new axes, and `kept` are the
      axes that are not new.
    - `reversed`: the axes of `inner` that run backwards.
    - `starts`, `limits`, `strides`: the part of each axis that a static or dynamic plan takes; the
      nearest element where an integer is out of bounds. It is `trivial` if it takes everything.
    - `flipped`, `squeezed`: the axes of that part to reverse, and then those to drop.
    - `columns`, `batch`: the columns of the index array of a gather or scatter, and the shape of
      that array without its last axis.
    - `offsets`, `collapsed`, `indexed`, `window`: the dimension numbers and slice sizes of a gather
      or scatter.
    - `distinct`: whether no element is selected twice.
    - `outside`: whether an integer is out of bounds, or may be where the size of its axis is symbolic.
    - `is_symbolic`, `is_counted`: whether the operand has a symbolic size, or one that values decide.
    - `picked`: the shape to which the arrays of the index broadcast.
    - `memo`: what users of the plan derive from it.
    """

    __slots__ = (
        "kind",
        "shape",
        "inner",
        "kept",
        "reversed",
        "starts",
        "limits",
        "strides",
        "trivial",
        "flipped",
        "squeezed",
        "columns",
        "batch",
        "offsets",
        "collapsed",
        "indexed",
        "window",
        "distinct",
        "outside",
        "picked",
        "index_dtype",
        "is_symbolic",
        "is_counted",
        "memo",
    )

    kind: str
    shape: tuple
    inner: tuple
    kept: tuple
    reversed: tuple
    starts: Any
    limits: Any
    strides: Any
    trivial: bool
    flipped: tuple
    squeezed: tuple
    columns: Any
    batch: Any
    offsets: Any
    collapsed: Any
    indexed: Any
    window: Any
    distinct: bool
    outside: bool
    picked: Any
    index_dtype: Any
    is_symbolic: bool
    is_counted: bool
    memo: dict


class _Axis:
    """How one axis of the operand is indexed.

    It is indexed by an integer, `at`, or by an `array` (its place and shape), or else as a range.
    """

    __slots__ = ("size", "at", "array", "start", "limit", "count", "step")

    def __init__(self, size):
        self.size, self.at, self.array = size, None, None
        self.start, self.limit, self.count, self.step = 0, size, size, 1

    @property
    def is_range(self) -> bool:
        return self.at is None and self.array is None

    @property
    def stride(self):
        """The distance of the elements in the operand."""
        return self.step if self.step > 0 else -self.step

    @property
    def is_window(self) -> bool:
        """Whether the elements lie side by side."""
        return self.is_range and self.step in (1, -1)

    @property
    def is_whole(self) -> bool:
        """Whether a window takes all elements."""
        return self.count is self.size or self.start == 0 and self.count == self.size


_plans: BoundedCache[tuple, IndexPlan] = BoundedCache(4096)


def plan_of(shape: tuple, key: tuple, wrap: bool = True) -> IndexPlan:
    """The plan of an index; it is made at its first use.

    Args:
        shape: the shape of the indexed array.
        key: the key, as described at the top of this file.
        wrap: whether negative integers count from the end.

    Raises:
        IndexError: there are too many indices, or an integer indexes an axis without elements.
        ValueError: the index arrays do not broadcast, or a slice's step is zero.
    """
    found = _plans.get((shape, key, wrap))
    if found is None:
        found = _make(shape, key, wrap)
        _plans.keep((shape, key, wrap), found)
    return found


def _make(shape, key, wrap) -> IndexPlan:
    plan = IndexPlan()
    plan.memo, plan.outside = {}, False
    plan.is_symbolic = is_symbolic_shape(shape)
    plan.is_counted = plan.is_symbolic and has_counts(shape)
    whole, dots = _complete(shape, key)
    entries = _read(plan, shape, whole, wrap)
    axes = [e for e in entries if e is not None]
    arrays = [e.array[1] for e in axes if e.array is not None]
    plan.picked = _broadcast(arrays)
    plan.distinct = not any(arrays)
    plan.index_dtype = np.dtype("int64" if any(type(n) is int and n >= _INT32_END for n in shape) else "int32")
    if not arrays:
        plan.kind = "static"
    elif plan.distinct and all(e.is_window for e in axes if e.is_range):
        plan.kind = "dynamic"
    else:
        plan.kind = "gather"
    _take_windows(plan, axes)
    _lay_out(plan, entries, axes, dots)
    return plan


# -- reading the index -----------------------------------------------------------------------------


def _read(plan, shape, key, wrap) -> list:
    """The index as a list of None for new axes and an `_Axis` for each axis of the operand."""
    entries: list = []
    n, place = 0, 0
    for e in key:
        if e is None:
            entries.append(None)
            continue
        axis = _Axis(shape[n])
        if type(e) is int:
            axis.at = _position(plan, e, axis.size, n, wrap)
        elif e[0] == ARRAY:
            if e[1] == () and type(axis.size) is int and axis.size == 0:
                raise IndexError(
                    f"index is out of bounds for axis {n} with size 0, which has no elements; the "
                    f"array has shape {shape}."
                )
            axis.array = place, e[1]
            place += 1
        elif e is not _WHOLE and e != _WHOLE:
            _take_range(axis, e[1:])
        entries.append(axis)
        n += 1
    return entries


def _complete(shape, key) -> tuple[tuple, int | None]:
    """The key with an entry for each axis: whole slices take the place of `...`, or come last.

    If `...` stands for no axis, its place is returned as well, else None.
    """
    used = sum([e is not None and e is not Ellipsis for e in key])
    dots = [i for i, e in enumerate(key) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"an index may hold one ellipsis ('...'), got {len(dots)}.")
    if used > len(shape):
        raise too_many_indices(used, shape)
    i = dots[0] if dots else len(key)
    return (*key[:i], *[_WHOLE] * (len(shape) - used), *key[i + 1 :]), i if used == len(shape) else None


def too_many_indices(used: int, shape: tuple) -> IndexError:
    """The error for an index with more entries than the array has axes."""
    return IndexError(f"Too many indices: got {used} for an array of shape {shape}, which has {len(shape)} axes.")


def _position(plan, i: int, n, axis: int, wrap: bool) -> int:
    """A static index counted from the front, out of bounds or not."""
    if type(n) is int and n == 0:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size 0, which has no elements.")
    at = i + n if i < 0 and wrap else i
    try:
        plan.outside = plan.outside or not 0 <= at < n
    except InconclusiveDimensionOperation:
        plan.outside = True
    return at


def _take_range(axis: _Axis, ends: tuple) -> None:
    if is_symbolic_shape((axis.size, *ends)):
        return _take_symbolic_range(axis, *ends)
    found = range(*slice(*ends).indices(axis.size))
    axis.count = len(found)
    axis.start = min(found[0], found[-1]) if found else min(max(found.start, 0), axis.size)
    if len(found) > 1:
        axis.step = found.step
        axis.limit = found.stop if found.step > 0 else found[0] + 1
    else:
        axis.limit = axis.start + axis.count


def _take_symbolic_range(axis: _Axis, start, stop, step) -> None:
    """Take a slice with a symbolic size or end; the formulas are those for numbers."""
    n, by = axis.size, 1 if step is None else step
    if by == 0:
        raise ValueError(f"slice step cannot be zero, got it for an axis of size {n}.")
    _check_sign(by, n)
    low, high = (0, n) if by > 0 else (-1, n - 1)
    first = (low if by > 0 else high) if start is None else _end_of_slice(start, n, low, high)
    last = (high if by > 0 else low) if stop is None else _end_of_slice(stop, n, low, high)
    ahead = by > 0
    stride, reach = (by, larger(last - first, 0)) if ahead else (-by, larger(first - last, 0))
    axis.count = (reach + (stride - 1)) // stride
    axis.step = by
    if ahead:
        axis.start, axis.limit = first, first + reach
    elif type(axis.count) is int and axis.count == 0:
        axis.start = axis.limit = 0
    elif type(stride) is int and stride > 1:  # no elements have no first one
        axis.start = larger(first - larger(axis.count - 1, 0) * stride, 0)
        axis.limit = axis.start + larger((axis.count - 1) * stride + 1, 0)
    else:
        axis.start, axis.limit = first - (axis.count - 1) * stride, first + 1


def _check_sign(step, n) -> None:
    try:
        _ = step > 0
    except InconclusiveDimensionOperation as e:
        raise InconclusiveDimensionOperation(
            f"A slice of an axis of size {n} has the step {step}, whose sign is not known. {e}"
        ) from None


def _end_of_slice(end, n, low, high):
    """An end of a slice, counted from the front and brought into the axis."""
    try:
        return smaller(end, high) if end >= 0 else larger(end + n, low)
    except InconclusiveDimensionOperation as e:
        raise InconclusiveDimensionOperation(
            f"A slice of an axis of size {n} has the end {end}, whose sign is not known. {e}"
        ) from None


def _broadcast(shapes) -> tuple:
    try:
        return lax.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            "Incompatible shapes for broadcasting of index arrays: "
            f"{', '.join(map(str, shapes))}. Index arrays broadcast against each other; "
            "x[i[:, None], j] takes every pair."
        ) from None


# -- the result ------------------------------------------------------------------------------------


def _take_windows(plan: IndexPlan, axes) -> None:
    """Set the part of each axis that static and dynamic plans take."""
    starts, limits, strides = [], [], []
    for e in axes:
        if e.is_range:
            starts.append(e.start)
            limits.append(e.limit)
            strides.append(e.stride)
        else:
            at = 0 if e.at is None else smaller(larger(e.at, 0), e.size - 1)
            starts.append(at if e.array is None else e.array)
            limits.append(at + 1)
            strides.append(1)
    plan.starts, plan.limits = tuple(starts), tuple(limits)
    plan.strides = tuple(strides) if any(s != 1 for s in strides) else None
    plan.trivial = plan.strides is None and all(e.is_range and e.is_whole for e in axes)
    plan.flipped = tuple([i for i, e in enumerate(axes) if e.step < 0])
    plan.squeezed = tuple([i for i, e in enumerate(axes) if not e.is_range])


def _lay_out(plan: IndexPlan, entries, axes, dots) -> None:
    """Set the axes of the result: new ones, the block of the index arrays' axes, and ranges.

    The block stands in the place of the arrays if these are neighbours, and first otherwise. A `...` between them
    parts them although it stands for no axis: then it is at the place `dots`.
    """
    advanced = [i for i, e in enumerate(entries) if e is not None and not e.is_range] if plan.kind != "static" else []
    side_by_side = bool(advanced) and advanced[-1] - advanced[0] == len(advanced) - 1
    if dots is not None and side_by_side:
        side_by_side = not advanced[0] < dots <= advanced[-1]
    block_at = (advanced[0] if side_by_side else 0) if advanced else None
    # Each axis of the result is a pair of its size and None, an _Axis, or "picked".
    dims: list = []
    for i, e in enumerate(entries):
        if i == block_at:
            dims += [(n, "picked") for n in plan.picked]
        if e is None:
            dims.append((1, None))
        elif e.is_range:
            dims.append((e.count, e))
    inner = [d for d in dims if d[1] is not None]
    plan.shape, plan.inner = tuple([n for n, _ in dims]), tuple([n for n, _ in inner])
    plan.kept = tuple([i for i, d in enumerate(dims) if d[1] is not None])
    plan.reversed = tuple([i for i, (_, e) in enumerate(inner) if e != "picked" and e.step < 0])
    _number(plan, inner, axes)


def _number(plan: IndexPlan, inner, axes) -> None:
    """Set the dimension numbers of a gather or scatter, and the columns of its index array."""
    batch, steps_axis, block = [], {}, None
    plan.offsets = tuple([i for i, (_, e) in enumerate(inner) if e != "picked" and e.is_window])
    for n, e in inner:
        if e == "picked":
            block = len(batch) if block is None else block
            batch.append(n)
        elif not e.is_window:
            steps_axis[id(e)] = len(batch)
            batch.append(n)
    plan.batch = tuple(batch)
    end = (block or 0) + len(plan.picked)
    columns: list[Number | Steps | Picked] = []
    indexed = []
    for i, e in enumerate(axes):
        if e.array is not None:
            place, shape = e.array
            columns.append(Picked(place, tuple(range(end - len(shape), end)), e.size))
        elif e.at is not None:
            columns.append(Number(_held(e.at, plan.index_dtype)))
        elif not e.is_window:
            columns.append(Steps(e.start, e.stride, e.count, steps_axis[id(e)]))
        elif type(e.start) is int and e.start == 0:
            continue
        else:
            columns.append(Number(e.start))
        indexed.append(i)
    plan.columns, plan.indexed = tuple(columns), tuple(indexed)
    plan.collapsed = tuple([i for i, e in enumerate(axes) if not e.is_window])
    plan.window = tuple([e.count if e.is_window else 1 for e in axes])


def _held(i, dtype):
    """An integer that the dtype of the index array holds; others are out of bounds and stay so."""
    if type(i) is not int:
        return i
    info = np.iinfo(dtype)
    return min(max(i, int(info.min)), int(info.max))
