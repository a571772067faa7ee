"""Changes of the elements of an array at an index; the methods of `x.at[index]` call them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from gradix import lax
from gradix._api.mapping.vmap import vmap
from gradix._base.errors import NonConcreteBooleanIndexError
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.aval import dtype_name, seen
from gradix._core.dimensions.expression import has_counts
from gradix._core.dtypes import INEXACT, INTEGER
from gradix._core.promotion import promote_pair
from gradix._core.trace import Tracer
from gradix.numpy.conversion import asarray
from gradix.numpy.index_plan import IndexPlan, plan_of
from gradix.numpy.index_reader import check_mask_shape, read_index
from gradix.numpy.indexing import index_array, take_index
from gradix.numpy.promotion import BESIDE, broadcast_to, convert, number

_SCATTERS = {
    "set": "scatter",
    "add": "scatter_add",
    "sub": "scatter_sub",
    "mul": "scatter_mul",
    "min": "scatter_min",
    "max": "scatter_max",
}
_COMBINE = {"set": lambda x, y: y, "add": lax.add, "sub": lax.sub, "mul": lax.mul, "min": lax.min, "max": lax.max}


def change_at(x, index, values, how, are_sorted, unique, mode, wrap):
    """The array with elements changed by the scatter that `how` names, or a function of factors."""
    if type(how) is not str:
        return _by_factors(how, x, index, values, are_sorted, unique, mode, wrap)
    aval = x.aval
    if how != "set" and dtypes.is_extended(aval.dtype):
        raise TypeError(
            f"x.at[...].{how} computes with numbers, but x of type {aval.str_short()} holds random "
            "keys. Only set and get take keys."
        )
    y = _beside(aval, values)
    if y is not None and mode is None and wrap:
        out = lax._host_update(x, index, y, how)
        if out is not None:
            return out
    if y is None:
        x, y = _promoted(x, values, how)
    masked = _split_mask(x, index) if seen.counts is None or not has_counts(y.aval.shape) else None
    if masked is not None and (y.aval.ndim == 0 or not masked.mask._decides):
        out = _update_where(x, masked, y, _COMBINE[how], wrap=wrap)
    else:
        out = _scatter(x, index, y, how, are_sorted=are_sorted, unique=unique, mode=mode, wrap=wrap)
    return convert(out, aval.dtype, aval.weak_type)


def _beside(aval, values):
    """The values as an array of the dtype of `aval`, or None if they have to be converted."""
    t = type(values)
    if t is ArrayImpl:
        return values if values.aval.dtype == aval.dtype else None
    if t is bool and aval.dtype in INTEGER | INEXACT:
        return number(int(values), aval.dtype)
    return number(values, aval.dtype) if aval.dtype in BESIDE.get(t, ()) else None


def _promoted(x, values, op: str):
    """The array and the values in the dtype in which the change is computed."""
    y = asarray(values)
    a, b = x.aval, y.aval
    if a.dtype == b.dtype:
        # This makes the gradient with respect to a weakly typed value weakly typed too.
        return x, convert(y, a.dtype, a.weak_type and b.weak_type)
    dtype, weak = promote_pair(a.dtype, a.weak_type, b.dtype, b.weak_type, dtypes.promotion_mode())
    if dtype != a.dtype:
        warnings.warn(
            f"x.at[...].{op}: cannot safely cast values of dtype {dtype_name(b.dtype)} to dtype "
            f"{dtype_name(a.dtype)} of the array; this will become an error. Convert one of them: "
            "values.astype(x.dtype) or x.astype(...).",
            FutureWarning,
            stacklevel=5,
        )
        if op != "set":
            return convert(x, dtype, weak), convert(y, dtype)
    return x, convert(y, a.dtype)


def _scatter(x, index, y, op: str, *, are_sorted=False, unique=False, mode=None, wrap):
    shape = x.aval.shape
    x, key, arrays = read_index(x, index)
    plan = plan_of(x.aval.shape, key, wrap)
    if plan.trivial and x.aval.ndim == len(shape):
        return _COMBINE[op](x, to_selection(y, plan))
    indices = index_array(plan, arrays, wrap)
    y = to_selection(y, plan)
    if 0 not in plan.inner:
        x = getattr(lax, _SCATTERS[op])(
            x,
            indices,
            y,
            _numbers(plan),
            mode=_scatter_mode(mode),
            indices_are_sorted=are_sorted or plan.distinct,
            unique_indices=unique or plan.distinct,
        )
    return x if x.aval.ndim == len(shape) else lax.reshape(x, shape)


def apply_at(x, index, func, are_sorted, unique, mode, *, wrap):
    """The array with a function of one scalar applied to the elements at an index."""
    masked = _split_mask(x, index)
    if masked is not None:
        elementwise = vmap(func)
        return _update_where(
            x,
            masked,
            None,
            lambda v, _: lax.reshape(elementwise(lax.reshape(v, (v.aval.size,))), v.aval.shape),
            wrap=wrap,
        )
    shape = x.aval.shape
    x, key, arrays = read_index(x, index)
    plan = plan_of(x.aval.shape, key, wrap)
    if 0 not in plan.inner:
        x = lax.scatter_apply(
            x,
            index_array(plan, arrays, wrap),
            func,
            _numbers(plan),
            update_shape=plan.inner,
            mode=_scatter_mode(mode),
            indices_are_sorted=are_sorted or plan.distinct,
            unique_indices=unique or plan.distinct,
        )
    return x if x.aval.ndim == len(shape) else lax.reshape(x, shape)


def _by_factors(function, x, index, values, *options):
    """`function(x, f)` for factors f that are 1 but at the index, where all values multiply up."""
    ones = lax.broadcast_in_dim(number(1, x.aval.dtype, x.aval.weak_type), x.aval.shape, ())
    return function(x, change_at(ones, index, values, "mul", *options))


def _numbers(plan: IndexPlan):
    found = plan.memo.get("scatter")
    if found is None:
        found = plan.memo["scatter"] = lax.ScatterDimensionNumbers(
            update_window_dims=plan.offsets,
            inserted_window_dims=plan.collapsed,
            scatter_dims_to_operand_dims=plan.indexed,
        )
    return found


def _scatter_mode(mode):
    return lax.GatherScatterMode.FILL_OR_DROP if mode is None else lax.GatherScatterMode.asked(mode)


def to_selection(y, plan: IndexPlan):
    """`y` broadcast to the selected elements, in the order in which a scatter takes them.

    Raises:
        ValueError: `y` does not broadcast to their shape.
    """
    own = y.aval.shape
    if not own:
        return lax.broadcast_in_dim(y, plan.inner, ()) if plan.inner else y
    y = _broadcast(y, plan.shape)
    if plan.shape != plan.inner:
        y = lax.squeeze(y, tuple([i for i in range(len(plan.shape)) if i not in plan.kept]))
    return lax.rev(y, plan.reversed) if plan.reversed else y


def _broadcast(y, shape: tuple):
    own = y.aval.shape
    if own == shape:
        return y
    if len(own) > len(shape):
        raise ValueError(
            f"Values of shape {own} have more axes than the elements that the index selects, which "
            f"have shape {shape}. The values must broadcast to that shape."
        )
    if any(n not in (1, m) for n, m in zip(own[::-1], shape[::-1])):
        raise ValueError(
            f"Incompatible types for broadcasting: values of type {y.aval.str_short()}, and "
            f"selected elements of shape {shape}. The values must broadcast to that shape."
        )
    return broadcast_to(y, shape)


# -- traced masks ----------------------------------------------------------------------------------


class _Masked(NamedTuple):
    """An index with a traced mask: its place in the result, and the index with slices for it.

    The axis of selected elements is the first of the values if `leads`, since an integer apart from the mask takes
    part in the selection, as index arrays do; else it has the place of the mask.
    """

    mask: Tracer
    place: int
    rest: tuple
    leads: bool


def _split_mask(x, index) -> _Masked | None:
    """An index with a traced mask, taken apart.

    Returns:
        None if the index has no traced mask.

    Raises:
        NonConcreteBooleanIndexError: the index has several, or index arrays beside it.
        IndexError: the mask does not have the shape of the axes it indexes.
    """
    entries = index if type(index) is tuple else (index,)
    masks = [i for i, e in enumerate(entries) if isinstance(e, Tracer) and e.aval.dtype == bool]
    if not masks:
        return None
    i = masks[0]
    mask = entries[i]
    others = [e for k, e in enumerate(entries) if k != i]
    plain = all(e is None or e is Ellipsis or type(e) in (int, slice) for e in others)
    if len(masks) > 1 or not plain:
        if mask._decides:
            return None
        raise NonConcreteBooleanIndexError(mask)
    shape, k = x.aval.shape, mask.aval.ndim
    used = sum([e is not None and e is not Ellipsis for e in others])
    before = [len(shape) - used - k if e is Ellipsis else 1 for e in entries[:i] if type(e) is not int]
    place = sum(before)
    first = place + i - len(before) - sum([e is None for e in entries[:i]])
    check_mask_shape(mask.aval.shape, shape[first : first + k], first)
    rest = (*entries[:i], *((slice(None),) * k or (None,)), *entries[i + 1 :])
    chosen = [j for j, e in enumerate(entries) if j == i or type(e) is int]
    return _Masked(mask, place, rest, chosen[-1] - chosen[0] >= len(chosen))


def _update_where(x, masked: _Masked, y, combine, *, wrap: bool):
    """The update at a traced mask; it is computed everywhere, and taken where the mask is true."""
    mask, place, rest, leads = masked
    k = mask.aval.ndim
    now = take_index(x, rest, wrap_negative_indices=wrap)
    shape = now.aval.shape
    if y is not None:
        others = len(shape) - max(k, 1)
        y = _without_count(y, mask, others if leads else others - place)
        if leads:
            y = _apart_at(y, place, max(k, 1), others)
        y = _broadcast(y, shape)
    new = combine(now, y)
    where = lax.broadcast_in_dim(mask, shape, tuple(range(place, place + k)))
    new = lax.select_n(where, now, convert(new, now.aval.dtype, now.aval.weak_type))
    return _scatter(x, rest, new, "set", wrap=wrap)


def _without_count(y, mask, after: int):
    """Values for the elements that a mask selects, shaped to broadcast to all elements.

    Their axis for the selected elements must have size 1; axes of the mask take its place.
    """
    shape = y.aval.shape
    if len(shape) <= after:
        return y
    at = len(shape) - after - 1
    if shape[at] != 1:
        raise NonConcreteBooleanIndexError(mask)
    return lax.reshape(y, (*shape[:at], *(1,) * max(mask.aval.ndim, 1), *shape[at + 1 :]))


def _apart_at(y, place: int, k: int, others: int):
    """Values for `others` axes, behind the axes of a mask if they have these, with `k` of size 1 at `place`."""
    own = y.aval.shape[-others:] if others else ()
    own = (1,) * (others - len(own)) + own
    return lax.reshape(y, (*own[:place], *(1,) * k, *own[place:]))
