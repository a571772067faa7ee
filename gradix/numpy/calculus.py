"""Differences, integrals, interpolation and convolution of sampled functions."""

from __future__ import annotations

import math
from functools import partial
from operator import index as as_int
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dimensions.expression import is_count, is_known_at_most, may_be_empty
from gradix._core.dtypes import COMPLEX, INEXACT, INTEGER
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.arithmetic import add, multiply, subtract
from gradix.numpy.axes import axes_of, axis_of
from gradix.numpy.division import remainder, true_divide
from gradix.numpy.logic import isfinite
from gradix.numpy.promotion import (
    as_operand,
    broadcast_to,
    convert,
    inexact_operand,
    like,
    matching,
    number,
    promote_dtypes,
    promote_dtypes_inexact,
    raise_rank,
    working_dtype,
)
from gradix.numpy.reductions import sum
from gradix.numpy.selection import where
from gradix.numpy.shapes import moveaxis
from gradix.numpy.taking import take

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes

_BOOL = np.dtype(bool)


# -- differences -----------------------------------------------------------------------------------


@replayed
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """The `n`-th differences of neighbours along an axis; for booleans, whether they differ.

    Args:
        a: an array with at least one axis.
        n: how many times to take differences.
        axis: the axis.
        prepend: values to put before the array; a scalar, or an array that fits beside it.
        append: values to put after the array, likewise.

    Returns:
        An array of the dtype of `a` (promoted with the values put at its ends), in which the size
        of the axis is smaller by `n`, down to 0.

    Raises:
        ValueError: `n` is negative, or the array has no axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.diff(jnp.array([1, 4, 9]))
        Array([3, 5], dtype=int32)
    """
    x = as_operand("diff", a)
    n = as_int(n)
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}.")
    if not x.aval.ndim:
        raise ValueError("diff: a must have at least one axis, got a scalar. Write jnp.ravel(a).")
    if not n:
        return x
    axis = axis_of(axis, x.aval.ndim)
    ends = [None if v is None else _end_piece(v, x, axis) for v in (prepend, append)]
    pieces = [v for v in (ends[0], x, ends[1]) if v is not None]
    if len(pieces) > 1:
        x = lax.concatenate([convert(p, p.aval.dtype) for p in promote_dtypes("diff", *pieces)], axis)
    op = lax.ne if x.aval.dtype == _BOOL else lax.sub
    for _ in [None] * n:
        size = x.aval.shape[axis]
        first = lax.slice_in_dim(x, 1, None, axis=axis) if size else x
        x = op(first, lax.slice_in_dim(x, 0, -1, axis=axis) if size else x)
    return x


def _end_piece(value, x, axis: int):
    value = as_operand("diff", value)
    if value.aval.ndim:
        return value
    return lax.broadcast_in_dim(value, tuple([1 if i == axis else n for i, n in enumerate(x.aval.shape)]), ())


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbours in the array taken as one row, as a vector.

    Args:
        ary: an array of numbers, of any shape.
        to_end: values to put after the differences; they are converted to the dtype of `ary`.
        to_begin: values to put before the differences, likewise.

    Returns:
        A vector of the dtype of `ary`.

    Raises:
        TypeError: `ary` is boolean.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=0)
        Array([3, 5, 0], dtype=int32)
    """
    x = as_operand("ediff1d", ary)
    if x.aval.dtype == _BOOL:
        raise TypeError(
            "ediff1d: ary is boolean, and booleans have no difference. Use jnp.diff, which tells "
            "whether neighbours differ, or convert ary with .astype(int)."
        )
    x = lax.reshape(x, (x.aval.size,))
    out = diff(x)
    ends = [None if v is None else as_operand("ediff1d", v) for v in (to_begin, to_end)]
    ends = [None if v is None else convert(lax.reshape(v, (v.aval.size,)), x.aval.dtype) for v in ends]
    pieces = [v for v in (ends[0], out, ends[1]) if v is not None]
    return lax.concatenate([convert(p, x.aval.dtype) for p in pieces], 0) if len(pieces) > 1 else out


@replayed
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axes | None = None, edge_order: int | None = None) -> Any:
    """The derivative of a sampled function along each axis, by central differences.

    At the ends of an axis, differences are one-sided.

    Args:
        f: an array of samples.
        *varargs: the distances of neighbouring samples: one for all axes, or one for each axis,
            where a vector gives the coordinates of the samples instead.
        axis: an axis, or several; all by default.
        edge_order: not supported.

    Returns:
        An array of the shape of `f` and a floating or complex dtype for one axis, a list of arrays
        for several.

    Raises:
        TypeError: there are neither no spacings, nor one, nor one for each axis.
        ValueError: an axis has less than two elements, or coordinates do not fit their axis.
        NotImplementedError: `edge_order` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0, 9.0]))
        Array([1., 2., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError(
            f"gradient: edge_order is not supported, got {edge_order}. Leave it out for one-sided "
            "differences at the ends."
        )
    x, *spaces = promote_dtypes_inexact("gradient", f, *varargs)
    axes = axes_of(axis, x.aval.ndim)
    if len(spaces) not in (0, 1, len(axes)):
        raise TypeError(
            f"gradient: got {len(spaces)} spacings for {len(axes)} axes (axis={axis}). Give none, "
            "one for all axes, or one for each axis."
        )
    if any(not is_count(x.aval.shape[i]) and x.aval.shape[i] < 2 for i in axes):
        raise ValueError(
            f"gradient: f of shape {x.aval.shape} needs at least 2 elements along each of the axes "
            f"{axes}. Name the longer axes with axis=."
        )
    spaces = spaces * len(axes) if len(spaces) == 1 else spaces or [None] * len(axes)  # type: ignore[list-item]
    out = [_gradient(x, h, i) for h, i in zip(spaces, axes)]
    return out[0] if len(out) == 1 else out


def _gradient_by_places(x, h, axis: int):
    """As `_gradient`, of as many samples as values decide: by the places of neighbours, which ends lack."""
    n = x.aval.shape[axis]
    place = lax.iota(np.dtype("int32"), n)
    last = convert(as_operand("gradient", n - 1), place.aval.dtype)
    before, after = [lax.clamp(matching(place, 0), p, last) for p in (place - 1, place + 1)]
    left, right = [take(x, p, axis, mode="clip") for p in (before, after)]
    stretched = lambda v: lax.reshape(v, tuple([n if i == axis else 1 for i in range(x.aval.ndim)]))  # noqa: E731
    if h is None or h.aval.ndim == 0:
        out = true_divide(subtract(right, left), stretched(subtract(after, before)))
        return convert(out if h is None else true_divide(out, h), x.aval.dtype, x.aval.weak_type)
    places = [take(h, p, 0, mode="clip") for p in (before, after)]
    low, high = stretched(subtract(h, places[0])), stretched(subtract(places[1], h))
    at_start, at_end = [stretched(p) for p in (before == place, after == place)]
    one = matching(low, 1)
    low, high = where(at_start, one, low), where(at_end, one, high)
    a = true_divide(lax.neg(high), multiply(low, add(low, high)))
    b = true_divide(subtract(high, low), multiply(low, high))
    c = true_divide(low, multiply(high, add(low, high)))
    inner = add(add(multiply(a, left), multiply(b, x)), multiply(c, right))
    ends = where(at_start, true_divide(subtract(right, x), high), true_divide(subtract(x, left), low))
    weak = x.aval.weak_type and h.aval.weak_type
    return convert(where(lax.bitwise_or(at_start, at_end), ends, inner), x.aval.dtype, weak)


def _gradient(x, h, axis: int):
    """The derivative along an axis; `h` is the samples' distance, coordinates, or None for 1."""
    if is_count(x.aval.shape[axis]):
        return _gradient_by_places(x, h, axis)
    part = lambda start, stop: lax.slice_in_dim(x, start, stop, axis=axis)  # noqa: E731
    if h is None or h.aval.ndim == 0:
        inner = true_divide(subtract(part(2, None), part(0, -2)), matching(x, 2))
        first, last = subtract(part(1, 2), part(0, 1)), subtract(part(-1, None), part(-2, -1))
        if h is not None:
            first, inner, last = [true_divide(v, h) for v in (first, inner, last)]
    else:
        if h.aval.ndim != 1 or h.aval.shape[0] != x.aval.shape[axis]:
            raise ValueError(
                f"gradient: the spacing of axis {axis}, of size {x.aval.shape[axis]}, has shape "
                f"{h.aval.shape}. Give a scalar, or a vector with a coordinate for each sample."
            )
        steps = diff(h)
        steps = lax.reshape(steps, tuple([steps.aval.size if i == axis else 1 for i in range(x.aval.ndim)]))
        low, high = (lax.slice_in_dim(steps, start, stop, axis=axis) for start, stop in ((0, -1), (1, None)))
        # The weights make the formula exact for parabolas.
        a = true_divide(lax.neg(high), multiply(low, add(low, high)))
        b = true_divide(subtract(high, low), multiply(low, high))
        c = true_divide(low, multiply(high, add(low, high)))
        inner = add(add(multiply(a, part(0, -2)), multiply(b, part(1, -1))), multiply(c, part(2, None)))
        first = true_divide(subtract(part(1, 2), part(0, 1)), lax.slice_in_dim(steps, 0, 1, axis=axis))
        last = true_divide(subtract(part(-1, None), part(-2, -1)), lax.slice_in_dim(steps, -1, None, axis=axis))
    weak = x.aval.weak_type and (h is None or h.aval.weak_type)
    pieces = [convert(p, x.aval.dtype, weak) for p in (first, inner, last)]
    return lax.concatenate(pieces, axis)


@replayed
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of a sampled function along an axis, by the trapezoidal rule.

    Args:
        y: an array of samples.
        x: the coordinates of the samples, a vector or an array; by default, they are `dx` apart.
        dx: the distance of neighbouring samples if `x` is not given.
        axis: the axis to integrate along.

    Returns:
        An array of the shape of `y` without the axis, in a floating or complex dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]))
        Array(4., dtype=float32)
    """
    if x is None:
        y = inexact_operand("trapezoid", y)
        axis = axis_of(axis, y.aval.ndim)
        n = y.aval.shape[axis]
        if not is_known_at_most(n, 1) and not may_be_empty(n) and np.ndim(dx) == 0:
            wide = convert(y, working_dtype(y.aval.dtype), y.aval.weak_type)
            area = multiply(dx, _inner_and_half_the_ends(wide, axis))
            if wide is y:
                return area
            return convert(area, multiply(dx, like(y, 1.0)).aval.dtype)
        step = dx  # axes of an array of distances are aligned from the last one on, whatever its rank
        if np.ndim(dx):
            step = as_operand("trapezoid", dx, 2)
            step = raise_rank(step, max(step.aval.ndim, y.aval.ndim))
    else:
        y, x = promote_dtypes_inexact("trapezoid", y, x)
        if x.aval.ndim == 1:
            axis, step = axis_of(axis, y.aval.ndim), diff(x)
            step = lax.expand_dims(step, [i for i in range(y.aval.ndim) if i != axis])
        else:  # The other axes of x and y are aligned from the last one on.
            y, step, axis = moveaxis(y, axis, -1), diff(moveaxis(x, axis, -1)), -1
    first = lax.slice_in_dim(y, 1, None, axis=axis) if y.aval.shape[axis] else y
    pairs = add(first, lax.slice_in_dim(y, 0, -1, axis=axis) if y.aval.shape[axis] else y)
    return multiply(like(y, 0.5), sum(multiply(step, pairs), axis))


@partial(custom_jvp, nondiff_argnums=(1,))
def _inner_and_half_the_ends(y, axis: int):
    """The sum along an axis less half of each end; XLA's library only takes sums of whole rows."""
    total, half = sum(y, axis), _half_the_ends(y, axis)
    return where(isfinite(half), subtract(total, half), total)  # ∞ - ∞/2 is ∞


@_inner_and_half_the_ends.defjvp
def _inner_and_half_the_ends_jvp(axis: int, primals, tangents):
    (y,), (t,) = primals, tangents
    return _inner_and_half_the_ends(y, axis), subtract(sum(t, axis), _half_the_ends(t, axis))


def _half_the_ends(y, axis: int):
    n = y.aval.shape[axis]
    first, last = [lax.squeeze(lax.slice_in_dim(y, i, i + 1, axis=axis), (axis,)) for i in (0, n - 1)]
    return multiply(like(y, 0.5), add(first, last))


@replayed(host=host_implementations.unwrap)
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi) -> Array:
    """Angles shifted by multiples of the period so that neighbours differ by at most half of it.

    Args:
        p: an array of angles.
        discont: how far neighbours may differ; half of the period by default, and at least that.
        axis: the axis along which neighbours are compared.
        period: the period.

    Returns:
        An array of the shape of `p`, in the promoted dtype of `p` and `period`.

    Raises:
        ValueError: `p` is complex, or `axis` is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unwrap(jnp.array([0.0, 3.0, 6.0, 1.0]), period=6.0)
        Array([0., 3., 6., 7.], dtype=float32)
    """
    p = as_operand("unwrap", p)
    if p.aval.dtype in COMPLEX:
        raise ValueError(f"unwrap: p must be real, got dtype {p.aval.dtype}. Take jnp.angle of complex numbers.")
    p, period = promote_dtypes("unwrap", p, period)
    dtype, axis = p.aval.dtype, axis_of(axis, p.aval.ndim)
    if not p.aval.shape[axis]:
        return p
    steps = diff(p, axis=axis)
    half = _halved(period)
    limit = half if discont is None else convert(as_operand("unwrap", discont), dtype)
    wrapped = subtract(remainder(add(steps, half), period), half)
    at_low = lax.bitwise_and(
        lax.eq(wrapped, lax.neg(broadcast_to(half, wrapped.aval.shape))), lax.gt(steps, like(steps, 0))
    )
    wrapped = where(at_low, half, wrapped)
    change = where(lax.lt(lax.abs(steps), limit), like(steps, 0), subtract(wrapped, steps))
    total = lax.cumsum(change, axis=axis)
    rest = add(lax.slice_in_dim(p, 1, None, axis=axis), total)
    first = lax.slice_in_dim(p, 0, 1, axis=axis)
    return lax.concatenate([convert(first, rest.aval.dtype, rest.aval.weak_type), rest], axis)


def _halved(period):
    dtype = period.aval.dtype
    return lax.div(period, like(period, 2)) if dtype in INTEGER or dtype in INEXACT else period


# -- interpolation ---------------------------------------------------------------------------------


@replayed
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The values at `x` of the piecewise linear function through given points.

    Args:
        x: an array of places where to evaluate the function.
        xp: a vector of the points' coordinates, increasing.
        fp: a vector of the points' values, real or complex.
        left: the value before the first point, or 'extrapolate'; by default the first value.
        right: the value after the last point, or 'extrapolate'; by default the last value.
        period: the period of a periodic function; then `left` and `right` have no meaning.

    Returns:
        An array of the shape of `x`, in a floating or complex dtype.

    Raises:
        ValueError: `xp` and `fp` are not vectors of one length, `x` or `xp` is complex, `period` is
            not a scalar, or `left` or `right` is an unknown string.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.interp(1.5, jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0]))
        Array(15., dtype=float32)
    """
    xp, fp = as_operand("interp", xp, 1), as_operand("interp", fp, 2)
    if xp.aval.shape != fp.aval.shape or xp.aval.ndim != 1:
        raise ValueError(
            f"interp: xp and fp must be vectors of one size, got shapes {xp.aval.shape} and {fp.aval.shape}."
        )
    for name, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"interp: {name} must be a number or 'extrapolate', got {value!r}.")
    x, xp = promote_dtypes_inexact("interp", x, xp)
    fp = inexact_operand("interp", fp)
    if x.aval.dtype in COMPLEX:
        raise ValueError(f"interp: x and xp must be real, got dtype {x.aval.dtype}.")
    x, xp = convert(x, x.aval.dtype), convert(xp, xp.aval.dtype)
    if period is not None:
        x, xp, fp = _one_period(x, xp, fp, period)
        left = right = None
    return _interpolated(x, xp, fp, left, right, period is not None)


def _one_period(x, xp, fp, period):
    """The arguments brought into one period, with a point of each neighbouring period added."""
    period = convert(as_operand("interp", period), xp.aval.dtype)
    if period.aval.ndim:
        raise ValueError(f"interp: period must be a scalar, got shape {period.aval.shape}.")
    period = lax.abs(period)
    x, xp = remainder(x, period), remainder(xp, period)
    xp, fp = lax.sort((xp, fp), dimension=0, num_keys=1)
    xp = lax.concatenate([lax.sub(xp[-1:], period), xp, lax.add(xp[:1], period)], 0)
    return x, xp, lax.concatenate([fp[-1:], fp, fp[:1]], 0)


def _interpolated(x, xp, fp, left, right, periodic: bool):
    n = xp.aval.shape[0]
    place = xp.searchsorted(x, side="right")
    kind = place.aval.dtype
    place = lax.clamp(number(1, kind), place, number(n - 1, kind))
    before = lax.sub(place, number(1, kind))
    x0, f0 = xp[before], fp[before]
    x1, f1 = xp[place], fp[place]
    width, rise = lax.sub(x1, x0), lax.sub(f1, f0)
    # Where two points share a coordinate, there is no slope.
    level = lax.le(lax.abs(width), number(float(dtypes.finfo(xp.aval.dtype).smallest_normal), xp.aval.dtype))
    safe = where(level, like(width, 1), width)
    out = where(level, f0, add(f0, multiply(true_divide(lax.sub(x, x0), safe), rise)))
    # Between infinite values: the value at a point itself, or from the point after, as in NumPy.
    from_next = add(f1, multiply(lax.sub(x, x1), true_divide(rise, safe)))
    level = lax.bitwise_and(lax.eq(f0, f1), lax.eq(x, x))
    from_next = where(lax.bitwise_and(lax.ne(from_next, from_next), level), f0, from_next)
    from_next = lax.stop_gradient(from_next)
    at_point = where(lax.eq(x, x0), f0, where(lax.eq(x, x1), f1, from_next))
    out = where(lax.ne(out, out), at_point, out)
    if periodic:
        return out
    for outside, value, end in ((lax.lt(x, xp[0]), left, fp[0]), (lax.gt(x, xp[-1]), right, fp[-1])):
        if not isinstance(value, str):
            value = end if value is None else convert(as_operand("interp", value), out.aval.dtype)
            out = where(outside, value, out)
    return out
