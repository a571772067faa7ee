"""The largest and the smallest elements along axes, and their positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dtypes import INTEGER
from gradix._core.operators import Array
from gradix.numpy.axes import ALL, axes_of, axis_of, no_out, positions_and_names
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.reductions import initial_value, keep_axes, over_named_axes, where_mask
from gradix.numpy.selection import where as choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes

_BOOL = np.dtype(bool)


def _extreme(name: str, op, combine, a, axis, out, *, keepdims, initial, where):
    no_out(name, out)
    x = as_operand(name, a)
    dtype, shape = x.aval.dtype, x.aval.shape
    axis, names = positions_and_names(axis)
    axes = axes_of(axis, len(shape))
    if where is not None:
        if initial is None:
            raise ValueError(f"{name}: where may select no element, and then {name} has no value. Give initial=.")
        x = choose(where_mask(name, where), x, _bound(dtype, name == "max"))
        shape = x.aval.shape
    if initial is None and 0 in [shape[i] for i in axes]:
        raise ValueError(
            f"{name}: the zero-size array of shape {shape} has no element along axes {axes}. Give initial=."
        )
    y = op(convert(x, dtype), axes)
    if names:
        y = over_named_axes(name, y, names)
    if initial is not None:
        y = combine(initial_value(name, initial, dtype), y)
    return keep_axes(y, shape, axes) if keepdims else y


def _bound(dtype, least: bool):
    """The smallest value of a dtype, or the largest one."""
    if dtype == _BOOL:
        return number(not least, dtype)
    if dtype in INTEGER:
        info = dtypes.iinfo(dtype)
        return number(int(info.min if least else info.max), dtype)
    return number(-math.inf if least else math.inf, dtype)


@replayed
def max(
    a: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element, over all axes or some; NaN if an element is NaN.

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
        >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=0)
        Array([3, 5], dtype=int32)
        >>> jnp.max(jnp.array([1.0, jnp.nan])), jnp.max(jnp.array([]), initial=0.0)
        (Array(nan, dtype=float32), Array(0., dtype=float32))

    See also:
        `jnp.argmax`, for the place; `jnp.maximum`, of two arrays; `jnp.nanmax`, `jnp.min`,
        `lax.top_k`.
    """
    return _extreme("max", lax.reduce_max, lax.max, a, axis, out, keepdims=keepdims, initial=initial, where=where)


def max_of_numbers(a, axis, initial, where):
    """`max` with its axes kept; when compiled, it may miss NaN.

    It is for formulas whose result is NaN anyway where an element is.
    """
    return _extreme("max", lax._max_of_numbers, lax.max, a, axis, None, keepdims=True, initial=initial, where=where)


@replayed
def min(
    a: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element, over all axes or some; NaN if an element is NaN.

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
        >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=0)
        Array([1, 4], dtype=int32)
    """
    return _extreme("min", lax.reduce_min, lax.min, a, axis, out, keepdims=keepdims, initial=initial, where=where)


def amax(
    a: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element, over all axes or some; another name of `max`.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a bound of the result; it is needed for empty axes.
        where: booleans that broadcast with `a` and tell which elements count; it needs `initial`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.amax(jnp.arange(3))
        Array(2, dtype=int32)
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(
    a: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element, over all axes or some; another name of `min`.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a bound of the result; it is needed for empty axes.
        where: booleans that broadcast with `a` and tell which elements count; it needs `initial`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.amin(jnp.arange(3))
        Array(0, dtype=int32)
    """
    return min(a, axis, out, keepdims, initial, where)


@replayed
def ptp(a: ArrayLike, axis: Axes | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element minus the smallest, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the dtype of `a`, with its shape without the reduced axes.

    Raises:
        ValueError: there are no elements.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ptp(jnp.array([3, 7, 5]))
        Array(4, dtype=int32)
    """
    no_out("ptp", out)
    return lax.sub(max(a, axis, None, keepdims), min(a, axis, None, keepdims))


# -- positions -------------------------------------------------------------------------------------


def _position(name: str, op, a, axis, out, keepdims):
    no_out(name, out)
    x = as_operand(name, a)
    shape = x.aval.shape
    if axis is None:
        x, i, axes = lax.reshape(x, (x.aval.size,)), 0, ALL[len(shape)]
    else:
        i = axis_of(axis, len(shape))
        axes = (i,)
    if not x.aval.shape[i]:
        raise ValueError(f"{name}: the array of shape {shape} is empty along axis={axis}, so no element has an index.")
    y = op(x, i, dtypes.python_scalar_dtype(int))
    return keep_axes(y, shape, axes) if keepdims else y


@replayed
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the largest element along an axis: of the first NaN, or the first largest.

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
        >>> jnp.argmax(jnp.array([3, 7, 5]))
        Array(1, dtype=int32)
        >>> jnp.argmax(jnp.array([[1, 9], [8, 2]]), axis=1)
        Array([1, 0], dtype=int32)

    See also:
        `jnp.max`, `jnp.argmin`, `jnp.nanargmax`, `lax.top_k`, `jnp.argsort`.
    """
    return _position("argmax", lax.argmax, a, axis, out, keepdims)


@replayed
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the smallest element along an axis: of the first NaN, or the first smallest.

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
        >>> jnp.argmin(jnp.array([3, 7, 5]))
        Array(0, dtype=int32)
    """
    return _position("argmin", lax.argmin, a, axis, out, keepdims)
