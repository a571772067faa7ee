"""Mask rules of operations that make, move and join elements."""

from __future__ import annotations

from math import prod

from gradix._api.counted.masking import INDEX, fitted, refuse, rule
from gradix._core.dimensions.expression import SymbolicDim
from gradix._ops.arithmetic import div, max as max_, rem
from gradix._ops.clamp import clamp
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota, full
from gradix._ops.indexing.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from gradix._ops.indexing.gather import gather
from gradix._ops.indexing.gather_dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.select import select
from gradix._ops.shape import broadcast_in_dim, reshape


@rule(
    "broadcast_in_dim", "iota", "empty", "transpose", "squeeze", "stack", "unstack",
    "copy", "copy_p", "name", "stop_gradient", "optimization_barrier", "dce_sink", "device_put",
    "sharding_constraint", "xla_metadata_value",
    "pvary", "reshard", "to_auto", "layout_constraint",
    "add_any", "select_n", "clamp", "convert_element_type", "bitcast_convert_type", "reduce_precision", "conj",
    "expand_dims", "platform_index",
)  # fmt: skip
def _same(S, e, *xs):
    return S.same(e, xs)


# -- moves along an axis ---------------------------------------------------------------------------


def moved_down(x, by, axis: int):
    """A buffer whose element i is the element i + `by`; `by` is at most the size of the axis."""
    if type(by) is int:
        return fitted(slice_in_dim(x, min(by, x.aval.shape[axis]), None, axis=axis), axis, x.aval.shape[axis])
    n = x.aval.shape[axis]
    wide = fitted(x, axis, 2 * n)
    return dynamic_slice_in_dim(wide, by, n, axis)


@rule("rev")
def _rev(S, e, x):
    out = S.same(e, [x])
    shape = e.invars[0].aval.shape
    for axis in S.open(shape, e.params["dimensions"]):
        out = moved_down(out, x.aval.shape[axis] - S.value(shape[axis]), axis)
    return out


@rule("concatenate")
def _concatenate(S, e, *xs):
    axis, shape = e.params["dimension"], e.outvars[0].aval.shape
    if not S.open(shape, (axis,)):
        return S.same(e, xs)
    total = list(S.shape(shape))
    bound = total[axis]
    total[axis] = sum([x.aval.shape[axis] for x in xs])
    out = full(tuple(total), 0, xs[0].aval.dtype)
    at = 0
    # each part overwrites what the one before it has past its size
    for x, v in zip(xs, e.invars):
        out = dynamic_update_slice_in_dim(out, x, at, axis)
        at = at + S.value(v.aval.shape[axis])
    return fitted(out, axis, bound)


@rule("split")
def _split(S, e, x):
    axis, sizes = e.params["axis"], e.params["sizes"]
    outs, at = [], 0
    if not S.open(e.invars[0].aval.shape, (axis,)):
        return S.same(e, [x])
    for size in sizes:
        outs.append(fitted(moved_down(x, at, axis), axis, S.bound(size)))
        at = at + S.value(size)
    return outs


@rule("tile")
def _tile(S, e, x):
    for d, r in zip(e.invars[0].aval.shape, e.params["reps"]):
        if S.is_open(r) or (S.is_open(d) and not (type(r) is int and r == 1)):
            raise refuse(
                e,
                f"tile repeats an axis of size {d} {r} times",
                "write jnp.tile(x, reps), which takes the elements by their places",
            )
    return S.same(e, [x])


@rule("slice")
def _slice(S, e, x):
    shape, starts = e.outvars[0].aval.shape, e.params["start_indices"]
    strides = e.params["strides"] or (1,) * x.aval.ndim
    for axis, (size, start, step) in enumerate(zip(S.shape(shape), starts, strides)):
        if S.is_open(start):
            x, start = moved_down(x, S.value(start), axis), 0
        n = x.aval.shape[axis]
        start = min(start, n) if type(n) is int else start
        stop = start + max(size - 1, 0) * step + 1 if type(size) is int and size else start
        stop = min(stop, n) if type(n) is int and type(stop) is int else start + size
        x = fitted(slice_in_dim(x, start, stop, step, axis), axis, size)
    return x


@rule("pad")
def _pad(S, e, x, value):
    ins, shape, config = e.invars[0].aval.shape, e.outvars[0].aval.shape, e.params["padding_config"]
    if S.open(ins):
        fill = broadcast_in_dim(value, x.aval.shape, ())
        x = select(S.live(ins, S.open(ins)), x, fill)
    for axis, (low, high, inner) in enumerate(config):
        size = S.bound(shape[axis])
        if not (S.is_open(ins[axis]) or S.is_open(low) or S.is_open(high)):
            x = pad(x, value, [(low, high, inner) if i == axis else (0, 0, 0) for i in range(x.aval.ndim)])
            continue
        n = x.aval.shape[axis]
        spread = n + max(n - 1, 0) * inner
        if inner:
            x = pad(x, value, [(0, 0, inner if i == axis else 0) for i in range(x.aval.ndim)])
        # what comes before the first element, or is cut there, may be a number known at run time
        room = max(size, spread)
        x = pad(x, value, [(room, room, 0) if i == axis else (0, 0, 0) for i in range(x.aval.ndim)])
        x = dynamic_slice_in_dim(x, room - S.value(low), size, axis)
        if S.is_open(ins[axis]) and not (type(high) is int and high >= 0):
            continue  # what is cut at the end lies past the size of the result
    return x


# -- reshape ---------------------------------------------------------------------------------------


@rule("reshape")
def _reshape(S, e, x):
    ins, outs = e.invars[0].aval.shape, e.outvars[0].aval.shape
    bounds = S.shape(outs)
    if _keeps_prefix(S, ins, outs):
        n = prod(bounds)
        flat = fitted(reshape(x, (prod(x.aval.shape),)), 0, n)
        return reshape(flat, bounds)
    at = full(bounds, 0, INDEX)
    for i, d in enumerate(outs):
        at = at * S.value(d) + broadcasted_iota(INDEX, bounds, i)
    places = []
    for d in reversed(ins):
        n = max_(convert_element_type(S.value(d), INDEX), full((), 1, INDEX))
        limit = max(S.bound(d) - 1, 0)
        places.append(clamp(full((), 0, INDEX), rem(at, broadcast_in_dim(n, bounds, ())), full((), limit, INDEX)))
        at = div(at, broadcast_in_dim(n, bounds, ()))
    return taken(x, places[::-1], bounds)


def _keeps_prefix(S, ins, outs) -> bool:
    """Whether the elements of the result are the first of the buffer, in the same order."""
    one, other = [[d for d in shape if not (type(d) is int and d == 1)] for shape in (ins, outs)]
    if one == other:
        return True
    # only the first axis has a size that values decide, so that its elements are the first ones
    return all(len(S.open(s)) == 1 and S.is_open(s[0]) for s in (one, other) if s) and bool(one and other)


def taken(x, places, shape):
    """The elements of a buffer at indices, an array for each axis."""
    flat, step = None, 1
    for i, n in zip(reversed(places), reversed(x.aval.shape)):
        term = i if step == 1 else i * step
        flat, step = term if flat is None else flat + term, step * n
    whole = reshape(x, (step,))
    if flat is None or not step:
        return full(shape, 0, x.aval.dtype) if not step else reshape(whole, shape)
    count = prod(shape)
    numbers = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    out = gather(whole, reshape(flat, (count, 1)), numbers, (1,), mode=GatherScatterMode.CLIP)
    return reshape(out, shape)


def is_number(d) -> bool:
    return type(d) is not SymbolicDim
