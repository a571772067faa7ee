"""Mask rules of gathers, scatters, and slices at traced places."""

from __future__ import annotations

import numpy as np

from gradix._api.counted import structural  # noqa: F401  (the rules of slice and pad)
from gradix._api.counted.in_place import selected_rows
from gradix._api.counted.masking import INDEX, refuse, rule
from gradix._core.dtypes import INEXACT
from gradix._core.trace import bind
from gradix._ops.arithmetic import max as max_, min as min_
from gradix._ops.bitwise import bitwise_and, bitwise_or
from gradix._ops.clamp import clamp
from gradix._ops.comparison import ge, gt, le, lt
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota, full
from gradix._ops.indexing.dynamic_slicing import dynamic_slice, dynamic_slice_in_dim, dynamic_update_slice
from gradix._ops.indexing.gather_dimension_numbers import GatherScatterMode
from gradix._ops.indexing.slicing import pad, slice, slice_in_dim
from gradix._ops.joining import stack
from gradix._ops.reduction_identities import highest, lowest
from gradix._ops.select import select
from gradix._ops.shape import broadcast_in_dim, expand_dims, squeeze


def _all_of(conditions):
    out = None
    for c in conditions:
        out = c if out is None else bitwise_and(out, c)
    return out


def _columns(indices) -> list:
    """The last axis of an array of indices, as a list of arrays."""
    n = indices.aval.ndim - 1
    return [squeeze(slice_in_dim(indices, j, j + 1, axis=n), (n,)) for j in range(indices.aval.shape[n])]


def _filling(dtype, fill):
    if fill is not None:
        return fill
    if dtype in INEXACT:
        return np.nan
    return highest(dtype) if dtype.kind == "u" else lowest(dtype) if dtype != np.bool_ else True


@rule("gather")
def _gather(S, e, x, indices):
    shape, numbers = e.invars[0].aval.shape, e.params["dimension_numbers"]
    windows, outside = e.params["slice_sizes"], []
    is_filling = "FILL" in str(e.params["mode"]).upper()
    # indices past the size may be anything, and so may what is taken there
    columns = _columns(indices) if S.open(shape, numbers.start_index_map) else []
    for j, axis in enumerate(numbers.start_index_map):
        if not S.is_open(shape[axis]):
            continue
        column = columns[j]
        top = S.value(shape[axis]) - S.value(windows[axis])
        top = broadcast_in_dim(convert_element_type(top, column.aval.dtype), column.aval.shape, ())
        zero = full(column.aval.shape, 0, column.aval.dtype)
        if is_filling:
            outside.append(bitwise_or(lt(column, zero), gt(column, top)))
        columns[j] = clamp(zero, column, max_(top, zero))
    if columns:
        indices = stack([convert_element_type(c, indices.aval.dtype) for c in columns], indices.aval.ndim - 1)
    if any(type(n) is int and n < w for n, w in zip(x.aval.shape, S.shape(windows)) if type(w) is int):
        x = pad(x, full((), 0, x.aval.dtype), [(0, max(w - n, 0), 0) for n, w in zip(x.aval.shape, S.shape(windows))])
    out = S.same(e, [x, indices], slice_sizes=S.shape(windows), indices_are_sorted=False, unique_indices=False)
    for o in outside:
        axes = [d for d in range(out.aval.ndim) if d not in numbers.offset_dims]
        fill = full(out.aval.shape, _filling(out.aval.dtype, e.params["fill_value"]), out.aval.dtype)
        out = select(broadcast_in_dim(o, out.aval.shape, axes), fill, out)
    return out


@rule("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "scatter-sub",
      "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub")  # fmt: skip
def _scatter(S, e, x, indices, updates):
    shape, numbers, new = (e.invars[0].aval.shape, e.params["dimension_numbers"], e.invars[2].aval.shape)
    found = selected_rows(S, e)
    if found is not None:
        combine = e.primitive.combine
        value = found.array if combine is None else bind(combine, [x, found.array], {})
        return select(found.selected(), value, x)
    batch = [d for d in range(len(new)) if d not in numbers.update_window_dims]
    kept = []
    if S.open(new, numbers.update_window_dims) and not batch and not numbers.operand_batching_dims:
        return _scatter_window(S, e, x, indices, updates)
    if S.open(new, numbers.update_window_dims):
        # a window of a size that values decide must span its axis, where what is past it is arbitrary
        inside = [
            d for d in range(len(shape)) if d not in (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        ]
        for axis, d in zip(inside, numbers.update_window_dims):
            if S.is_open(new[d]) and (new[d] is not shape[axis] or axis in numbers.scatter_dims_to_operand_dims):
                raise refuse(
                    e,
                    f"{e.primitive.name} writes windows of size {new[d]} into an axis of size {shape[axis]}",
                    "write to single elements, x.at[jnp.arange(n)].set(y)",
                )
    places = indices.aval.shape[:-1]
    for k, d in enumerate(batch):
        if S.is_open(new[d]):
            at = broadcasted_iota(INDEX, places, k)
            kept.append(lt(at, broadcast_in_dim(S.value(new[d]), places, ())))
    columns = _columns(indices)
    for j, axis in enumerate(numbers.scatter_dims_to_operand_dims):
        if S.is_open(shape[axis]):
            column = convert_element_type(columns[j], INDEX)
            kept.append(ge(column, full(places, 0, INDEX)))
            kept.append(lt(column, broadcast_in_dim(S.value(shape[axis]), places, ())))
    if not kept:
        return S.same(e, [x, indices, updates])
    far = full(indices.aval.shape, np.iinfo(indices.aval.dtype).max, indices.aval.dtype)
    keep = broadcast_in_dim(_all_of(kept), indices.aval.shape, range(len(places)))
    return S.same(
        e,
        [x, select(keep, indices, far), updates],
        mode=GatherScatterMode.FILL_OR_DROP,
        indices_are_sorted=False,
        unique_indices=False,
    )


@rule("true_places")
def _true_places(S, e, mask):
    shape = e.invars[0].aval.shape
    return S.same(e, [S.filled(mask, shape, (len(shape) - 1,), False)])


@rule("dynamic_slice")
def _dynamic_slice(S, e, x, *starts):
    ins, outs = e.invars[0].aval.shape, e.outvars[0].aval.shape
    if not S.open(ins) and not S.open(outs):
        return S.same(e, [x, *starts])
    for axis, start in enumerate(starts):
        size = S.bound(outs[axis])
        start = _start(S, start, ins[axis], outs[axis])
        if S.is_open(ins[axis]) or S.is_open(outs[axis]):
            pads = [(0, size if i == axis else 0, 0) for i in range(x.aval.ndim)]
            x = pad(x, full((), 0, x.aval.dtype), pads)
        x = dynamic_slice_in_dim(x, start, size, axis)
    return x


def _start(S, start, whole, part):
    """Where a slice starts, moved into bounds."""
    room = S.value(whole) - S.value(part)
    start = convert_element_type(start, INDEX)
    return max_(min_(start, convert_element_type(room, INDEX)), full((), 0, INDEX))


@rule("dynamic_update_slice")
def _dynamic_update_slice(S, e, x, update, *starts):
    ins, new = e.invars[0].aval.shape, e.invars[1].aval.shape
    starts = [_start(S, s, n, m) for s, n, m in zip(starts, ins, new)]
    if not S.open(new):
        return dynamic_update_slice(x, update, starts)
    wide = pad(x, full((), 0, x.aval.dtype), [(0, b, 0) for b in update.aval.shape])
    now = dynamic_slice(wide, starts, update.aval.shape)
    update = select(S.live(new, S.open(new)), update, now)
    wide = dynamic_update_slice(wide, update, starts)
    return slice(wide, (0,) * x.aval.ndim, x.aval.shape)


def _scatter_window(S, e, x, indices, update):
    """The scatter of a single window, some sizes of which are decided by values."""
    shape, numbers, new = (e.invars[0].aval.shape, e.params["dimension_numbers"], e.invars[2].aval.shape)
    update = expand_dims(update, numbers.inserted_window_dims)
    rest = iter(new)
    sizes = [1 if i in numbers.inserted_window_dims else next(rest) for i in range(len(shape))]
    starts: list = [full((), 0, INDEX)] * len(shape)
    columns = _columns(indices)
    for j, axis in enumerate(numbers.scatter_dims_to_operand_dims):
        starts[axis] = convert_element_type(columns[j], INDEX)
    inside = [full((), True)]
    for start, n, m in zip(starts, shape, sizes):
        inside.append(ge(start, full((), 0, INDEX)))
        inside.append(le(start, convert_element_type(S.value(n) - S.value(m), INDEX)))
    wide = pad(x, full((), 0, x.aval.dtype), [(0, b, 0) for b in update.aval.shape])
    starts = [max_(min_(s, full((), n, INDEX)), full((), 0, INDEX)) for s, n in zip(starts, x.aval.shape)]
    now = dynamic_slice(wide, starts, update.aval.shape)
    combine = e.primitive.combine
    value = update if combine is None else bind(combine, [now, update], {})
    is_live = S.live(tuple(sizes), S.open(tuple(sizes)))
    is_live = bitwise_and(is_live, broadcast_in_dim(_all_of(inside), update.aval.shape, ()))
    wide = dynamic_update_slice(wide, select(is_live, value, now), starts)
    return slice(wide, (0,) * x.aval.ndim, x.aval.shape)
