"""`x[index]` for all of NumPy's indices; it becomes slices instead of a gather where possible."""

from __future__ import annotations

import numpy as np

from gradix import lax
from gradix._base import config
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, wrap_host
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix.numpy.index_plan import IndexPlan, Number, Picked, plan_of
from gradix.numpy.index_reader import read_index
from gradix.numpy.promotion import convert, number


def getitem(x: Array, index) -> Array:
    """`x[index]`; integers out of bounds select the nearest element."""
    out = lax._host_get(x, index)
    return take_index(x, index) if out is None else out


def take_index(
    x: Array,
    index,
    *,
    mode=None,
    fill_value=None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Array:
    """`x[index]`, with a choice of what integers out of bounds give.

    Args:
        x: an array.
        index: an index as NumPy takes it.
        mode: "clip" or None for the nearest element, "fill" for `fill_value`, "promise_in_bounds"
            as a promise that there are none.
        fill_value: by default NaN, the least signed integer, the largest unsigned one, or True.
        indices_are_sorted, unique_indices: promises about the index arrays.
        wrap_negative_indices: whether negative indices count from the end.
    """
    x, key, arrays = read_index(x, index)
    plan = plan_of(x.aval.shape, key, wrap_negative_indices)
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else lax.GatherScatterMode.asked(mode)
    filled = mode.fills
    if plan.outside and mode is lax.GatherScatterMode.PROMISE_IN_BOUNDS:
        _check_promise(x, index)
    if plan.kind == "static" and not plan.outside:
        return _take_static(x, plan)
    if plan.kind == "static" and not (filled and (plan.is_symbolic or _is_seen(plan))):
        if filled:
            return _filled(x, plan, fill_value)
        clips = mode is lax.GatherScatterMode.CLIP or not _is_seen(plan)
        return _take_static(x, plan) if clips else _take_outside(x, plan)
    # who asks for the nearest element gets no error of it from a check of the program's indices
    is_asked = mode is lax.GatherScatterMode.CLIP and state.stage is not None
    if plan.kind == "dynamic" and not filled and not is_asked:
        return _take_dynamic(x, plan, arrays, wrap_negative_indices)
    out = _gather(
        x,
        plan,
        arrays,
        wrap_negative_indices,
        mode=mode,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted or plan.distinct,
        unique_indices=unique_indices or plan.distinct,
    )
    if plan.reversed:
        out = lax.rev(out, plan.reversed)
    return _expanded(out, plan)


def _check_promise(x, index) -> None:
    """Refuse integers that are known to be out of bounds, if an option asks for this."""
    if config.state.jax_check_static_indices:
        raise IndexError(
            f"index {index} is out of bounds for an array of shape {x.aval.shape}, and the option "
            "jax_check_static_indices asks for this check. Use x.at[index].get(mode='clip') for the "
            "nearest element, or mode='fill' for a value of your own."
        )


def _expanded(x, plan: IndexPlan):
    """`x` with the new axes of the index added."""
    return x if plan.shape == plan.inner else lax.broadcast_in_dim(x, plan.shape, plan.kept)


def _take_static(x, plan: IndexPlan):
    if not plan.trivial:
        x = lax.slice(x, plan.starts, plan.limits, plan.strides)
    return _finished(x, plan)


def _is_seen(plan: IndexPlan) -> bool:
    """Whether a check of the program's indices is to find the integers that are out of bounds."""
    return state.stage is not None and (plan.is_counted or not plan.is_symbolic)


def _take_outside(x, plan: IndexPlan):
    """The nearest elements, with the integers that are out of bounds left in the program."""
    numbers = {i: c.value for i, c in zip(plan.indexed, plan.columns) if i in plan.squeezed}
    shape = x.aval.shape
    places = [numbers.get(i, 0) for i in range(len(shape))]
    starts: list = [n if type(n) is SymbolicDim else np.asarray(n, plan.index_dtype) for n in places]
    sizes = [1 if i in numbers else n for i, n in enumerate(shape)]
    x = lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    starts, limits = [
        [end if i in numbers else at for i, at in enumerate(ends)] for end, ends in ((0, plan.starts), (1, plan.limits))
    ]
    return _finished(lax.slice(x, starts, limits, plan.strides), plan)


def _finished(x, plan: IndexPlan):
    """The result of an index, given the slice of the operand that it takes."""
    if plan.flipped:
        x = lax.rev(x, plan.flipped)
    if plan.squeezed:
        x = lax.squeeze(x, plan.squeezed)
    return _expanded(x, plan)


def _take_dynamic(x, plan: IndexPlan, arrays, wrap: bool):
    dtype = _common_index_dtype(plan, arrays)
    starts = [s if type(s) is int else lax._fitted_index(as_array(arrays[s[0]]), dtype) for s in plan.starts]
    sizes = [b - a if type(a) is int else 1 for a, b in zip(plan.starts, plan.limits)]
    return _finished(lax.dynamic_slice(x, starts, sizes, allow_negative_indices=wrap), plan)


def _filled(x, plan: IndexPlan, fill_value):
    """The result of a static index that is out of bounds: the fill value everywhere."""
    dtype = x.aval.dtype
    if fill_value is None:
        fill_value = default_fill(dtype)
    return lax.broadcast_in_dim(convert(as_array(fill_value), dtype, x.aval.weak_type), plan.shape, ())


def default_fill(dtype):
    """The value that the mode "fill" puts where an index is out of bounds."""
    if dtype in dtypes.INEXACT:
        return np.nan
    if dtype in dtypes.INTEGER:
        info = dtypes.iinfo(dtype)
        return int(info.min if info.min else info.max)
    return True


# -- gathers ---------------------------------------------------------------------------------------


def _gather(x, plan: IndexPlan, arrays, wrap: bool, **options):
    aval = x.aval
    if 0 in plan.inner and not dtypes.is_extended(aval.dtype):
        return convert(lax.full(plan.inner, number(0, aval.dtype)), aval.dtype, aval.weak_type)
    numbers = plan.memo.get("gather")
    if numbers is None:
        numbers = plan.memo["gather"] = lax.GatherDimensionNumbers(
            offset_dims=plan.offsets, collapsed_slice_dims=plan.collapsed, start_index_map=plan.indexed
        )
    return lax.gather(x, index_array(plan, arrays, wrap), numbers, plan.window, **options)


def index_array(plan: IndexPlan, arrays, wrap: bool = True) -> Array:
    """The start indices of a gather or scatter, with an entry for each indexed axis, last."""
    staging = state.stage is not None
    if (
        not plan.is_symbolic
        and all(type(a) is np.ndarray or (type(a) is ArrayImpl and a._host is not None) for a in arrays)
        and (arrays or not staging or not plan.columns)
    ):
        if arrays:
            return wrap_host(_host_indices(plan, arrays, wrap))
        found = plan.memo.get("indices")
        if found is None:
            found = plan.memo["indices"] = wrap_host(_host_indices(plan, arrays, wrap))
        return found
    dtype = _common_index_dtype(plan, arrays)
    if not plan.columns:
        return lax.full((*plan.batch, 0), number(0, dtype))
    shape = (*plan.batch, 1)
    picked = {c.place: _picked(c, arrays, dtype, wrap) for c in plan.columns if type(c) is Picked}
    columns = [_column(c, picked, shape, dtype) for c in plan.columns]
    return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(plan.batch))


def _host_indices(plan: IndexPlan, arrays, wrap: bool) -> np.ndarray:
    out = np.empty((*plan.batch, len(plan.columns)), plan.index_dtype)
    for i, c in enumerate(plan.columns):
        if type(c) is Picked:
            a = arrays[c.place]
            out[..., i] = _host_column(a if type(a) is np.ndarray else a._host, c, plan, wrap)
        elif type(c) is Number:
            out[..., i] = c.value
        else:
            line = np.arange(c.start, c.start + c.step * c.count, c.step)
            out[..., i] = line.reshape([-1 if k == c.axis else 1 for k in range(len(plan.batch))])
    return out


def _host_column(a: np.ndarray, c: Picked, plan: IndexPlan, wrap: bool) -> np.ndarray:
    # A value that does not fit the dtype is clipped, and so stays out of bounds.
    if a.itemsize >= plan.index_dtype.itemsize:
        info = np.iinfo(plan.index_dtype)
        a = np.clip(a, max(info.min, np.iinfo(a.dtype).min), min(info.max, np.iinfo(a.dtype).max))
    a = a.astype(plan.index_dtype)
    if wrap:
        a = a + (a < 0) * plan.index_dtype.type(c.size)
    return a.reshape([a.shape[c.axes.index(k)] if k in c.axes else 1 for k in range(len(plan.batch))])


def _picked(c: Picked, arrays, dtype, wrap: bool) -> Array:
    a = arrays[c.place]
    a = as_array(a) if type(a) is np.ndarray else a
    return lax._fitted_index(lax._index_from_end(a, c.size) if wrap else a, dtype)


def _column(c, picked: dict, shape, dtype) -> Array:
    if type(c) is Picked:
        return lax.broadcast_in_dim(picked[c.place], shape, c.axes)
    if type(c) is Number:
        return lax.broadcast_in_dim(number(c.value, dtype), shape, ())
    line = lax.iota(dtype, c.count)
    line = lax.add(lax.mul(line, number(c.step, dtype)), number(c.start, dtype))
    return lax.broadcast_in_dim(line, shape, (c.axis,))


def _common_index_dtype(plan: IndexPlan, arrays):
    """The dtype of indices: int32, or int64 if an axis is longer or an index array holds int64."""
    if any(isinstance(a, Array) and a.aval.dtype == np.int64 for a in arrays):
        return np.dtype("int64")
    return plan.index_dtype
