"""Reductions that ignore NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.dtypes import INEXACT
from gradix._core.operators import Array
from gradix.numpy import extremes, moments, reductions, row_host_implementations
from gradix.numpy.axes import axes_of, no_out, positions_and_names
from gradix.numpy.promotion import as_operand, broadcast_to, common_shape, convert, number, working_dtype
from gradix.numpy.selection import where as choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes, DTypeLike


def _isnan(x):
    return lax.ne(x, x)


def _without(name: str, x, value):
    """`x` with NaN replaced by a value, a number of Python or a scalar of the dtype."""
    if x.aval.dtype not in INEXACT:
        return x
    known = isinstance(value, np.generic)
    return choose(_isnan(x), as_array(value) if known else number(value, x.aval.dtype), x)


def _extreme(name: str, reduce, fill, a, axis, out, *, keepdims, initial, where):
    no_out(name, out)
    x = as_operand(name, a)
    if x.aval.dtype not in INEXACT:
        return reduce(x, axis, None, keepdims, initial, where)
    y = reduce(_without(name, x, fill(x.aval.dtype)), axis, None, keepdims, initial, where)
    if initial is not None:
        return y
    none = reductions.all(_isnan(x), axis, None, keepdims)
    return choose(none, number(math.nan, y.aval.dtype), y)


@replayed
def nanmax(
    a: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element that is not NaN, over all axes or some; NaN where all elements are.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a lower bound of the result.
        where: booleans that broadcast with `a` and tell which elements count; it needs `initial`.

    Returns:
        An array of the dtype of `a`, with its shape without the reduced axes.

    Raises:
        ValueError: there are no elements, or `where` is given, and there is no initial value.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
        Array(3., dtype=float32)
    """
    return _extreme("nanmax", extremes.max, lax._lowest, a, axis, out, keepdims=keepdims, initial=initial, where=where)


@replayed
def nanmin(
    a: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element that is not NaN, over all axes or some; NaN where all elements are.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: an upper bound of the result.
        where: booleans that broadcast with `a` and tell which elements count; it needs `initial`.

    Returns:
        An array of the dtype of `a`, with its shape without the reduced axes.

    Raises:
        ValueError: there are no elements, or `where` is given, and there is no initial value.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    return _extreme("nanmin", extremes.min, lax._highest, a, axis, out, keepdims=keepdims, initial=initial, where=where)


@replayed
def nansum(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum of the elements that are not NaN, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to sum over; all by default.
        dtype: the dtype of the sum; by default that of `a`, and for booleans and integers of fewer
            bits the default integers.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a number to add.
        where: booleans that broadcast with `a` and tell which elements count.

    Returns:
        An array with the shape of `a` without the reduced axes; 0 where all elements are NaN.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
        Array(4., dtype=float32)
    """
    x = as_operand("nansum", a)
    return reductions.sum(_without("nansum", x, 0), axis, dtype, out, keepdims, initial, where)


@replayed
def nanprod(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product of the elements that are not NaN, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to multiply over; all by default.
        dtype: the dtype of the product; by default that of `a`, and for booleans and integers of
            fewer bits the default integers.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a number to multiply by.
        where: booleans that broadcast with `a` and tell which elements count.

    Returns:
        An array with the shape of `a` without the reduced axes; 1 where all elements are NaN.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
        Array(6., dtype=float32)
    """
    x = as_operand("nanprod", a)
    return reductions.prod(_without("nanprod", x, 1), axis, dtype, out, keepdims, initial, where)


def _present(name: str, x, where):
    """A mask of the elements that count and are not NaN."""
    present = lax.bitwise_not(_isnan(x))
    if where is None:
        return present
    mask = reductions.where_mask(name, where)
    shape = common_shape(name, present, mask)
    return lax.bitwise_and(broadcast_to(present, shape), broadcast_to(mask, shape))


@replayed(host=row_host_implementations.nanmean)
def nanmean(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements that are not NaN, over all axes or some; NaN where all elements are.

    Args:
        a: an array.
        axis: the axis, or axes, to average over; all by default.
        dtype: the dtype of the mean; by default that of `a`, made floating.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast with `a` and tell which elements count.

    Returns:
        An array with the shape of `a` without the reduced axes.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
        Array(2., dtype=float32)
    """
    no_out("nanmean", out)
    x = as_operand("nanmean", a)
    if x.aval.dtype not in INEXACT:
        return moments.mean(x, axis, dtype, None, keepdims, where=where)
    result = x.aval.dtype if dtype is None else dtypes.requested_dtype(dtype, "nanmean", stacklevel=3)
    axis, names = positions_and_names(axis)
    axis = axes_of(axis, x.aval.ndim) + names  # The axes are the array's; the mask may have more.
    count = reductions.sum(_present("nanmean", x, where), axis, np.dtype("int32"), None, keepdims)
    total = nansum(x, axis, working_dtype(result), None, keepdims, None, where)
    return convert(lax.div(total, convert(count, total.aval.dtype)), result)


@replayed(host=row_host_implementations.nanvar)
def nanvar(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of the elements that are not NaN, over axes; NaN where there are too few.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        dtype: the dtype of the result; by default that of the real part of `a`, made floating.
        out: not supported.
        ddof: the number that is subtracted from the number of elements in the divisor.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast with `a` and tell which elements count.
        mean: the mean, if it is known, with the reduced axes kept.

    Returns:
        A real array with the shape of `a` without the reduced axes.

    Raises:
        ValueError: `dtype` is real and `a` complex.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    no_out("nanvar", out)
    x = as_operand("nanvar", a)
    work, result = moments.variance_dtypes("nanvar", x.aval.dtype, dtype)
    x = convert(moments.whole(x, result), work)
    axis, names = positions_and_names(axis)
    axes = axes_of(axis, x.aval.ndim) + names
    where = None if where is None else reductions.mask_like("nanvar", where, x.aval.shape)
    center = nanmean(x, axes, work, None, True, where) if mean is None else convert(as_operand("nanvar", mean), work)
    center = convert(moments.whole(center, result), work)
    present = _present("nanvar", x, where)
    distance = moments.distance_squared(choose(present, x, center), center)
    real = distance.aval.dtype
    distance = choose(present, distance, number(0, real))
    count = reductions.sum(present, axes, real, None, keepdims)
    divisor = lax.sub(count, reductions.initial_value("nanvar", ddof, real))
    enough = lax.gt(divisor, number(0, real))
    value = lax.div(reductions.sum(distance, axes, real, None, keepdims), choose(enough, divisor, number(1, real)))
    return convert(choose(enough, value, number(math.nan, real)), result)


@replayed(host=row_host_implementations.nanstd)
def nanstd(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation of the elements that are not NaN, the square root of `nanvar`.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        dtype: the dtype of the result; by default that of the real part of `a`, made floating.
        out: not supported.
        ddof: the number that is subtracted from the number of elements in the divisor.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast with `a` and tell which elements count.
        mean: the mean, if it is known, with the reduced axes kept.

    Returns:
        A real array with the shape of `a` without the reduced axes.

    Raises:
        ValueError: `dtype` is real and `a` complex.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 5.0]))
        Array(2., dtype=float32)
    """
    return lax.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))


def _position(name: str, find, fill, a, axis, out, *, keepdims):
    no_out(name, out)
    x = as_operand(name, a)
    if x.aval.dtype not in INEXACT:
        return find(x, axis, None, keepdims)
    y = find(_without(name, x, fill(x.aval.dtype)), axis, None, keepdims)
    none = reductions.all(_isnan(x), axis, None, bool(keepdims))
    return choose(none, number(-1, y.aval.dtype), y)


@replayed
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the largest element that is not NaN, along an axis; -1 where all elements are.

    Args:
        a: an array.
        axis: the axis; by default, the array is taken as one row.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the default integer dtype, with the shape of `a` without the reduced axes.

    Raises:
        ValueError: the axis has no elements.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
        Array(2, dtype=int32)
    """
    return _position("nanargmax", extremes.argmax, lax._lowest, a, axis, out, keepdims=keepdims)


@replayed
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the smallest element that is not NaN, along an axis; -1 where all elements are.

    Args:
        a: an array.
        axis: the axis; by default, the array is taken as one row.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the default integer dtype, with the shape of `a` without the reduced axes.

    Raises:
        ValueError: the axis has no elements.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanargmin(jnp.array([jnp.nan, 2.0, 1.0]))
        Array(2, dtype=int32)
    """
    return _position("nanargmin", extremes.argmin, lax._highest, a, axis, out, keepdims=keepdims)
