"""pad: arrays with elements added at the ends of their axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._api.mapping.vmap import vmap
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.dimensions.expression import as_dim, is_symbolic_dim, is_symbolic_shape, smaller
from gradix._core.operators import Array
from gradix._core.trace import is_unknown
from gradix.numpy.arithmetic import minimum
from gradix.numpy.extremes import max, min
from gradix.numpy.indexing import take_index
from gradix.numpy.moments import mean
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.quantiles import median
from gradix.numpy.ranges import arange
from gradix.numpy.rounding_and_parts import round
from gradix.numpy.shapes import moveaxis

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_STATISTICS: dict[str, Callable] = {"maximum": max, "minimum": min, "mean": mean, "median": median}
_OPTIONS: dict[str, frozenset] = {
    "constant": frozenset({"constant_values"}),
    "linear_ramp": frozenset({"end_values"}),
    "reflect": frozenset({"reflect_type"}),
    "symmetric": frozenset({"reflect_type"}),
    **{m: frozenset({"stat_length"}) for m in _STATISTICS},
    **{m: frozenset() for m in ("edge", "wrap", "empty")},
}


@replayed
def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """The array with elements added at the ends of its axes.

    Args:
        array: an array.
        pad_width: the numbers of elements to add: an int, a pair (before, after), or such a pair
            for each axis.
        mode: what to add: "constant" (`constant_values`, by default 0), "edge", "reflect" and
            "symmetric" (`reflect_type` "even" or "odd"), "wrap", "linear_ramp" (`end_values`),
            "maximum", "minimum", "mean" and "median" (`stat_length`), "empty", or a function of
            `(row, (before, after), axis, kwargs)` that returns the padded row.
        **kwargs: the options that are named with the modes.

    Returns:
        An array of the dtype of `array`; each axis is longer by its two widths.

    Raises:
        ValueError: a width is negative, the mode does not take an option, or an axis that has to be
            extended is empty.
        TypeError: the widths are not integers.
        NotImplementedError: `mode` is unknown.
        ConcretizationTypeError: `pad_width` is traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.pad(jnp.arange(3), (1, 2), mode="edge")
        Array([0, 0, 1, 2, 2, 2], dtype=int32)
    """
    x = as_operand("pad", array)
    widths = _widths(pad_width, x.aval.ndim)
    if callable(mode):
        return _pad_by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise NotImplementedError(f"pad: mode must be a function or one of {', '.join(_OPTIONS)}, got {mode!r}.")
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ValueError(
            f"pad: mode {mode!r} takes {', '.join(_OPTIONS[mode]) or 'no options'}, got {', '.join(sorted(unknown))}."
        )
    if mode == "constant":
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    if mode == "empty":
        return _pad_constant(x, widths, 0)
    empty = [i for i, (n, w) in enumerate(zip(x.aval.shape, widths)) if n == 0 and w != (0, 0)]
    if empty:
        raise ValueError(
            f"pad: mode {mode!r} cannot extend the empty axis {empty[0]} of shape {x.aval.shape}. "
            "Use 'constant' or 'empty'."
        )
    for axis, (lo, hi) in enumerate(widths):
        if lo or hi:
            x = _pad_axis(x, axis, lo, hi, mode, kwargs)
    return x


def _widths(pad_width, ndim: int) -> list:
    if isinstance(pad_width, dict):
        raise TypeError(
            f"pad: pad_width must not be a dict, got {pad_width}. Write a pair of integers for each of the {ndim} axes."
        )
    if is_unknown(pad_width):
        raise ConcretizationTypeError(pad_width, "The pad_width argument of jnp.pad determines a shape.")
    pairs = _pairs("pad_width", np.asarray(pad_width, dtype=object), ndim)
    try:
        widths = [tuple([as_dim(w) for w in p]) for p in pairs]
    except TypeError:
        raise TypeError(f"pad: pad_width must hold integers, got {pad_width}.") from None
    if any(w < 0 for p in widths for w in p):
        raise ValueError(
            f"pad: pad_width must not be negative, got {pad_width}. lax.pad takes negative widths, "
            "and removes elements."
        )
    return widths


def _pairs(name: str, values: np.ndarray, ndim: int) -> list:
    """A pair of values for each axis, from one value, one pair, or a value or pair per axis."""
    if values.ndim != 1 or values.shape in ((1,), (2,)):
        try:
            return [tuple(p) for p in np.broadcast_to(values, (ndim, 2)).tolist()]
        except ValueError:
            pass
    raise ValueError(
        f"pad: {name} has shape {values.shape} for {ndim} axes. Give it the shape (), (1,), (2,), "
        f"(1, 2) or ({ndim}, 2)."
    )


# -- constants -------------------------------------------------------------------------------------


def _value_pairs(name: str, values, x) -> list:
    """A pair of scalars of the dtype of `x` for each axis, for the places before and after it."""
    dtype, ndim = x.aval.dtype, x.aval.ndim
    if isinstance(values, (int, float, complex)):
        value = (
            number(values, dtype)
            if not (isinstance(values, float) and dtype in dtypes.INTEGER)
            else convert(as_operand("pad", values), dtype)
        )
        return [(value, value)] * ndim
    if not isinstance(values, Array):
        held = np.asarray(values, dtype=object)
        if held.dtype == object and any(isinstance(v, Array) for v in held.reshape(-1)):
            return [tuple([convert(as_operand("pad", v), dtype) for v in p]) for p in _pairs(name, held, ndim)]
        values = np.asarray(values)
    values = convert(as_operand("pad", values), dtype)
    table = _pairs(name, np.arange(values.aval.size).reshape(values.aval.shape), ndim)
    flat = lax.reshape(values, (values.aval.size,))
    return [tuple([take_index(flat, i) for i in p]) for p in table]


def _pad_constant(x, widths, values):
    if not widths:  # a scalar stays as it is, whatever would be added
        return x
    pairs = _value_pairs("constant_values", values, x)
    kinds = {id(v) for p in pairs for v in p}
    if len(kinds) <= 1:
        value = pairs[0][0] if pairs else None
        return x if value is None else lax.pad(x, _weak_like(value, x), [(lo, hi, 0) for lo, hi in widths])
    for axis, ((lo, hi), (before, after)) in enumerate(zip(widths, pairs)):
        for ends, value in (((lo, 0, 0), before), ((0, hi, 0), after)):
            if ends != (0, 0, 0):
                x = lax.pad(x, value, [ends if i == axis else (0, 0, 0) for i in range(x.aval.ndim)])
    return x


def _weak_like(value, x):
    return convert(value, x.aval.dtype, x.aval.weak_type)


# -- copies of the elements ------------------------------------------------------------------------


def _pad_axis(x, axis: int, lo: int, hi: int, mode: str, options: dict):
    n = x.aval.shape[axis]
    kind = options.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}.")
    if mode == "linear_ramp":
        return _pad_ramp(x, axis, lo, hi, _value_pairs("end_values", options.get("end_values", 0), x)[axis])
    if mode in _STATISTICS:
        return _pad_statistic(x, axis, lo, hi, mode, options.get("stat_length"))
    if kind == "odd" and not (mode == "reflect" and n == 1):
        return _pad_odd(x, axis, lo, hi, 0 if mode == "symmetric" else 1)
    if mode == "reflect" and n == 1:
        mode = "edge"
    ends = None if is_symbolic_shape((*x.aval.shape, lo, hi)) else _ends(x, axis, lo, hi, mode)
    if ends is not None:
        before, after = ends
        return lax.concatenate([*([before] if lo else ()), x, *([after] if hi else ())], axis)
    if is_symbolic_shape((n, lo, hi)):
        at, least = arange(-lo, n + hi), minimum
    else:
        at, least = np.arange(-lo, n + hi), np.minimum
    if mode == "edge":
        at = at.clip(0, n - 1)
    elif mode == "wrap":
        at = at % n
    elif mode == "symmetric":
        at = at % (2 * n)
        at = least(at, 2 * n - 1 - at)
    else:
        at = at % (2 * n - 2)
        at = least(at, 2 * n - 2 - at)
    return take_index(x, (*[slice(None)] * axis, at.astype(np.int32)))


def _ends(x, axis: int, lo: int, hi: int, mode: str):
    """The parts to put before and after; None if the array is too short for one copy of each."""
    n = x.aval.shape[axis]
    if mode == "edge":
        return _spread(_part(x, axis, 0, 1), axis, lo), _spread(_part(x, axis, n - 1, n), axis, hi)
    gap = 1 if mode == "reflect" else 0
    if builtin_max(lo, hi) > n - gap:
        return None
    if mode == "wrap":
        return _part(x, axis, n - lo, n), _part(x, axis, 0, hi)
    return [lax.rev(_part(x, axis, a, b), (axis,)) for a, b in ((gap, gap + lo), (n - gap - hi, n - gap))]


def _part(x, axis: int, start, stop, step=None):
    return take_index(x, (*[slice(None)] * axis, slice(start, stop, step)))


def _pad_odd(x, axis: int, lo: int, hi: int, gap: int):
    """Pad by reflection at the end points, `2·edge − x`; with `gap` 1, the edge is not repeated."""
    while lo or hi:
        n = x.aval.shape[axis]
        a, b = [builtin_min(w, n - gap) for w in (lo, hi)]
        first, last = _part(x, axis, 0, 1), _part(x, axis, n - 1, n)
        before = 2 * first - _part(x, axis, gap, gap + a)[(*[slice(None)] * axis, slice(None, None, -1))]
        after = 2 * last - _part(x, axis, n - gap - b, n - gap)[(*[slice(None)] * axis, slice(None, None, -1))]
        x, lo, hi = lax.concatenate([before, x, after], axis), lo - a, hi - b
    return x


def builtin_min(a: int, b: int) -> int:
    return a if a < b else b


def builtin_max(a: int, b: int) -> int:
    return a if a > b else b


def _spread(edge, axis: int, count: int):
    shape = edge.aval.shape
    return lax.broadcast_in_dim(edge, (*shape[:axis], count, *shape[axis + 1 :]), range(len(shape)))


def _pad_statistic(x, axis: int, lo: int, hi: int, mode: str, length):
    n, dtype = x.aval.shape[axis], x.aval.dtype
    sizes = (
        (None, None) if length is None else _pairs("stat_length", np.asarray(length, dtype=object), x.aval.ndim)[axis]
    )
    parts = []
    for size, before in zip(sizes, (True, False)):
        size = n if size is None else smaller(as_dim(size), n)
        if type(size) is int and size < 1:
            raise ValueError(f"pad: stat_length must be at least 1, got {length}.")
        part = _part(x, axis, 0, size) if before else _part(x, axis, n - size, n)
        value = _STATISTICS[mode](part, axis, keepdims=True)
        if mode in ("mean", "median") and dtype in dtypes.INTEGER:
            value = round(value)
        parts.append(convert(value, dtype))
    return lax.concatenate([_spread(parts[0], axis, lo), x, _spread(parts[1], axis, hi)], axis)


def _pad_ramp(x, axis: int, lo: int, hi: int, ends):
    n, dtype = x.aval.shape[axis], x.aval.dtype
    pieces = [x]
    for width, end, before in ((lo, ends[0], True), (hi, ends[1], False)):
        if not width:
            continue
        edge = _part(x, axis, 0, 1) if before else _part(x, axis, n - 1, n)
        work = dtypes.to_inexact_dtype(dtype)
        shape = [width if i == axis else 1 for i in range(x.aval.ndim)]
        if is_symbolic_dim(width):
            steps = lax.broadcasted_iota(work, shape, axis)
            if not before:
                steps = lax.rev(steps, (axis,))
            share = steps / convert(as_operand("pad", width), work)
        else:
            steps = np.arange(width) / width if before else np.arange(width, 0, -1) / width - 1 / width
            share = as_operand("pad", np.reshape(steps, shape).astype(work))
        end = convert(end, work)
        ramp = end + (convert(edge, work) - end) * share
        ramp = convert(_toward_zero(ramp, dtype), dtype)
        pieces = [ramp, *pieces] if before else [*pieces, ramp]
    return lax.concatenate(pieces, axis)


def _toward_zero(ramp, dtype):
    return lax.floor(ramp) if dtype in dtypes.INTEGER else ramp


def _pad_by_function(x, widths, function, kwargs):
    x = _pad_constant(x, widths, 0)
    for axis, (lo, hi) in enumerate(widths):
        rows = moveaxis(x, axis, -1)
        flat = lax.reshape(rows, (rows.aval.size // (rows.aval.shape[-1] or 1), rows.aval.shape[-1]))
        done = vmap(partial(_called, function, (lo, hi), axis, kwargs))(flat)
        x = moveaxis(lax.reshape(done, rows.aval.shape), -1, axis)
    return x


def _called(function, width, axis: int, kwargs, row):
    return function(row, width, axis, kwargs)
