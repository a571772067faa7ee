"""Means, variances and standard deviations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy.arithmetic import multiply
from gradix.numpy.axes import axes_of, no_out, positions_and_names
from gradix.numpy.promotion import (
    as_operand,
    broadcast_to,
    convert,
    inexact_operand,
    number,
    operands,
    promote_dtypes_inexact,
    working_dtype,
)
from gradix.numpy.reductions import initial_value, keep_axes, mask_like, sum
from gradix.numpy.selection import where as choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes, DTypeLike

_DIRECT = frozenset(np.dtype(t) for t in ("float32", "float64", "complex64", "complex128"))


def count_of(shape: tuple, axes: tuple, names: tuple = ()) -> int:
    """The number of elements that are reduced into one, over axes and named axes."""
    return math.prod([shape[i] for i in axes] + [lax.axis_size(name) for name in names])


@replayed
def mean(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean of the elements, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to average over; all by default.
        dtype: the dtype of the mean; by default that of `a`, made floating. Half precision is
            summed in float32.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast to the shape of `a` and tell which elements count.

    Returns:
        An array with the shape of `a` without the reduced axes; NaN where no element counts.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([2., 3.], dtype=float32)
        >>> jnp.mean(jnp.array([1.0, 2.0, 6.0]), where=jnp.array([True, True, False]))
        Array(1.5, dtype=float32)

    See also:
        `jnp.average`, with weights; `jnp.median`, `jnp.std`, `jnp.nanmean`.
    """
    axis, names = positions_and_names(axis)
    if isinstance(a, Array) and dtype is None and where is None and out is None and not keepdims and not names:
        aval = a.aval
        if aval.dtype in _DIRECT and not aval.weak_type:
            axes = axes_of(axis, aval.ndim)
            return lax.div(lax.reduce_sum(a, axes), number(count_of(aval.shape, axes), aval.dtype))
    no_out("mean", out)
    x = as_operand("mean", a)
    own = x.aval.dtype
    result = dtypes.to_inexact_dtype(own) if dtype is None else dtypes.requested_dtype(dtype, "mean", stacklevel=3)
    work = working_dtype(result) if dtype is None else result
    shape = x.aval.shape
    axes = axes_of(axis, len(shape))
    if where is None:
        count = number(count_of(shape, axes, names), work)
    else:
        mask = mask_like("mean", where, shape)
        count = sum(convert(mask, work), axes + names, work, None, keepdims)
    total = sum(x, axes + names, work, None, keepdims, None, where)
    return convert(lax.div(total, count), result)


@overload
def average(a, axis=None, weights=None, returned: Literal[False] = False, keepdims: bool = False) -> Array: ...


@overload
def average(a, axis=None, weights=None, *, returned: Literal[True], keepdims: bool = False) -> tuple[Array, Array]: ...


@overload
def average(a, axis=None, weights=None, returned: bool = False, keepdims: bool = False) -> Any: ...


@replayed
def average(
    a: ArrayLike,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean of the elements, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to average over; all by default.
        weights: an array of the shape of `a`, or of its shape along `axis`; 1 by default.
        returned: whether to return the sums of the weights too.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array in a floating or complex dtype, with the shape of `a` without the reduced axes; or
        a pair of it and the sums of the weights, of the same shape.

    Raises:
        ValueError: the shapes of `a` and `weights` do not fit, or differ and no axis is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0]))
        Array(1.25, dtype=float32)
    """
    if weights is None:
        x = inexact_operand("average", a)
        mean_ = mean(x, axis, None, None, keepdims)
        if not returned:
            return mean_
        n = count_of(x.aval.shape, axes_of(axis, x.aval.ndim))
        return mean_, lax.full_like(mean_, number(n, mean_.aval.dtype))
    x, w = promote_dtypes_inexact("average", a, weights)
    dtype = x.aval.dtype
    x, w = [convert(v, working_dtype(dtype), v.aval.weak_type) for v in (x, w)]
    axes = axes_of(axis, x.aval.ndim)
    w, mask = _weights_like(x, w, axis, axes), as_operand("average", weights)
    mask = _weights_like(x, mask, axis, axes) if mask.aval.dtype in dtypes.BOOL else None
    total = sum(w, axes, None, None, keepdims)
    mean_ = lax.div(sum(multiply(x, w if mask is None else mask), axes, None, None, keepdims), total)
    mean_, total = [convert(v, dtype, v.aval.weak_type) for v in (mean_, total)]
    return (mean_, broadcast_to(total, mean_.aval.shape)) if returned else mean_


def _weights_like(x, w, axis, axes: tuple):
    """Weights that are given along `axes` only, broadcast to the array's shape."""
    shape, own = x.aval.shape, w.aval.shape
    if own == shape:
        return w
    if axis is None:
        raise ValueError(f"average: axis must be given, as a and weights differ in shape: {shape} and {own}.")
    if own != tuple([shape[i] for i in axes]):
        raise ValueError(
            f"average: weights must have the shape of a, {shape}, or its shape along axis={axis}, got {own}."
        )
    order = tuple(sorted(range(len(axes)), key=lambda i: axes[i]))
    return lax.broadcast_in_dim(lax.transpose(w, order), shape, tuple(sorted(axes)))


# -- spread ----------------------------------------------------------------------------------------


@replayed
def var(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The variance of the elements, their mean squared distance from their mean, over axes.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        dtype: the dtype of the result; by default that of the real part of `a`, made floating.
        out: not supported.
        ddof: the number that is subtracted from the number of elements in the divisor.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast to the shape of `a` and tell which elements count.
        mean: the mean, if it is known, with the reduced axes kept.
        correction: another name of `ddof`.

    Returns:
        A real array with the shape of `a` without the reduced axes; NaN where the divisor is not
        positive.

    Raises:
        ValueError: `ddof` and `correction` are both given, or `dtype` is real for complex `a`.
        TypeError: `dtype` is boolean.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.var(jnp.array([1.0, 3.0]))
        Array(1., dtype=float32)
    """
    return _variance(
        "var", a, axis, dtype, out, ddof, keepdims=keepdims, where=where, mean_=mean, correction=correction
    )


@replayed
def std(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The standard deviation of the elements, the square root of `var`, over axes.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        dtype: the dtype of the result; by default that of the real part of `a`, made floating.
        out: not supported.
        ddof: the number that is subtracted from the number of elements in the divisor.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast to the shape of `a` and tell which elements count.
        mean: the mean, if it is known, with the reduced axes kept.
        correction: another name of `ddof`.

    Returns:
        A real array with the shape of `a` without the reduced axes; NaN where the divisor is not
        positive.

    Raises:
        ValueError: `dtype` is integer or boolean, or real for complex `a`, or `ddof` and
            `correction` are both given.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.std(jnp.array([1.0, 5.0]))
        Array(2., dtype=float32)
    """
    if dtype is not None and dtypes.as_dtype(dtype) not in INEXACT:
        raise ValueError(f"std: dtype must be floating or complex (inexact), got {dtype}.")
    return lax.sqrt(
        _variance("std", a, axis, dtype, out, ddof, keepdims=keepdims, where=where, mean_=mean, correction=correction)
    )


def _variance(name, a, axis, dtype, out, ddof, *, keepdims, where, mean_, correction):
    no_out(name, out)
    if correction is not None:
        if ddof:
            raise ValueError(
                f"{name}: ddof and correction are two names of one number, got {ddof} and "
                f"{correction}. Give one of them."
            )
        ddof = correction
    x = as_operand(name, a)
    work, result = variance_dtypes(name, x.aval.dtype, dtype)
    x = convert(whole(x, result), work)
    shape = x.aval.shape
    axis, names = positions_and_names(axis)
    axes = axes_of(axis, len(shape))
    if mean_ is None and where is None and not names:
        mean_ = lax.div(keep_axes(lax.reduce_sum(x, axes), shape, axes), number(count_of(shape, axes), work))
    elif mean_ is None:
        mean_ = mean(x, axes + names, work, None, True, where=where)
    square = distance_squared(x, convert(whole(as_operand(name, mean_), result), work))
    real = square.aval.dtype
    if where is None:
        count = count_of(shape, axes, names)
        if type(ddof) is int and type(count) is int and count > ddof and result in INEXACT and not names:
            total = lax.reduce_sum(square, axes)
            total = keep_axes(total, shape, axes) if keepdims else total
            return convert(lax.div(total, number(count - ddof, real)), result)
        count = number(count, real)
    else:
        count = sum(convert(mask_like(name, where, shape), real), axes + names, real, None, keepdims)
    divisor = lax.sub(count, initial_value(name, ddof, real))
    value = lax.div(sum(square, axes + names, real, None, keepdims, None, where), divisor)
    value = convert(value, result)
    none = number(math.nan, result) if result in INEXACT else math.nan
    return choose(lax.gt(divisor, number(0, real)), value, none)


def variance_dtypes(name: str, own, dtype):
    """The dtype in which a variance is computed, and the dtype of the result."""
    if dtype is None:
        work = dtypes.to_inexact_dtype(own)
        result = dtypes.real_dtype(work)
        return working_dtype(work), result
    result = dtypes.requested_dtype(dtype, name, stacklevel=5)
    if own in COMPLEX and result not in COMPLEX:
        raise ValueError(
            f"{name}: dtype must be complex for complex a, got {dtype}. Leave it out: the result is real anyway."
        )
    work = dtypes.to_inexact_dtype(dtypes.canonicalize_dtype(dtypes.joined_dtype(own, result)))
    if result in dtypes.BOOL:
        raise TypeError(f"{name}: dtype must not be boolean, got {dtype}.")
    return work, result


def whole(x, result):
    """`x`, converted to integers if the result is one; the variance is then one of integers."""
    return convert(x, result) if result in dtypes.INTEGER else x


def distance_squared(x, center):
    """The squared absolute distances of elements from their center."""
    d = lax.sub(*operands("var", x, center))
    if d.aval.dtype in COMPLEX:
        return lax.real(lax.mul(d, lax.conj(d)))
    return lax.square(d)
