"""The largest and the smallest elements along axes, and their positions."""

from __future__ import annotations

import math

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dtypes import INTEGER
from gradix._core.operators import Array
from gradix.numpy.axes import ALL, axes_of, axis_of, no_out, positions_and_names
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.reductions import (
    initial_value,
    keep_axes,
    over_named_axes,
    where_mask,
)
from gradix.numpy.selection import where as choose

_BOOL = np.dtype(bool)


def _extreme(name: str, op, combine, a, axis, out, *, keepdims, initial, where):
    no_out(name, out)
    x = as_operand(name, a)
    dtype, shape = x.aval.dtype, x.aval.shape
    axis, names = positions_and_names(axis)
    axes = axes_of(axis, len(shape))
    if where is not None:
        if initial is None:
            raise ValueError(
                f"reduction operation {name} does not have an identity, so to use a where mask one has to "
                "specify 'initial'"
            )
        x = choose(where_mask(name, where), x, _least(dtype, name == "max"))
        shape = x.aval.shape
    if initial is None and 0 in [shape[i] for i in axes]:
        raise ValueError(
            f"zero-size array to reduction operation {name} which has no identity: shape {shape}. "
            "Give an initial value."
        )
    y = op(convert(x, dtype), axes)
    if names:
        y = over_named_axes(name, y, names)
    if initial is not None:
        y = combine(initial_value(name, initial, dtype), y)
    return keep_axes(y, shape, axes) if keepdims else y


def _least(dtype, least: bool):
    """The smallest (or largest) value of a dtype."""
    if dtype == _BOOL:
        return number(not least, dtype)
    if dtype in INTEGER:
        info = dtypes.iinfo(dtype)
        return number(int(info.min if least else info.max), dtype)
    return number(-math.inf if least else math.inf, dtype)


@replayed
def max(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The largest element, over all axes or some; NaN if there is one.

    Args:
        a: the array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: keep the reduced axes, with size 1.
        initial: a lower bound of the result.
        where: which elements take part; needs `initial`.

    Raises:
        ValueError: there are no elements, and no initial value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=0)
        Array([3, 5], dtype=int32)
    """
    return _extreme(
        "max",
        lax.reduce_max,
        lax.max,
        a,
        axis,
        out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def max_of_numbers(a, axis, initial, where):
    """`max` with its axes kept, for results that are NaN anyway where an element is: compiled, it may miss the NaN."""
    return _extreme(
        "max",
        lax._max_of_numbers,
        lax.max,
        a,
        axis,
        None,
        keepdims=True,
        initial=initial,
        where=where,
    )


@replayed
def min(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The smallest element, over all axes or some; NaN if there is one.

    Args:
        a: the array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: keep the reduced axes, with size 1.
        initial: an upper bound of the result.
        where: which elements take part; needs `initial`.

    Raises:
        ValueError: there are no elements, and no initial value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=0)
        Array([1, 4], dtype=int32)
    """
    return _extreme(
        "min",
        lax.reduce_min,
        lax.min,
        a,
        axis,
        out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def amax(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The largest element: another name of `max`.

    Args:
        a: an array of any shape.
        axis: the axis or axes; None is all of them.
        keepdims: whether they stay, with size 1.
        initial: a value that takes part; needed for empty axes.
        where: booleans that broadcast with `a`: which elements take part; needs `initial`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.amax(jnp.arange(3))
        Array(2, dtype=int32)
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The smallest element: another name of `min`.

    Args:
        a: an array of any shape.
        axis: the axis or axes; None is all of them.
        keepdims: whether they stay, with size 1.
        initial: a value that takes part; needed for empty axes.
        where: booleans that broadcast with `a`: which elements take part; needs `initial`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.amin(jnp.arange(3))
        Array(0, dtype=int32)
    """
    return min(a, axis, out, keepdims, initial, where)


@replayed
def ptp(a, axis=None, out=None, keepdims: bool = False) -> Array:
    """The largest element less the smallest, over all axes or some.

    Args:
        a: the array.
        axis: the axis, or axes, to search over; all by default.
        out: not supported.
        keepdims: keep the reduced axes, with size 1.

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
        raise ValueError(
            f"attempt to get {name} of an empty sequence: the array has shape {shape}, axis={axis}."
        )
    y = op(x, i, dtypes.python_scalar_dtype(int))
    return keep_axes(y, shape, axes) if keepdims else y


@replayed
def argmax(a, axis: int | None = None, out=None, keepdims: bool | None = None) -> Array:
    """The index of the largest element, the first of equal ones; of NaN if there is one.

    Args:
        a: the array.
        axis: the axis to search along; by default the array in one row.
        out: not supported.
        keepdims: keep the reduced axes, with size 1.

    Raises:
        ValueError: the axis has no elements.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.argmax(jnp.array([3, 7, 5]))
        Array(1, dtype=int32)
    """
    return _position("argmax", lax.argmax, a, axis, out, keepdims)


@replayed
def argmin(a, axis: int | None = None, out=None, keepdims: bool | None = None) -> Array:
    """The index of the smallest element, the first of equal ones; of NaN if there is one.

    Args:
        a: the array.
        axis: the axis to search along; by default the array in one row.
        out: not supported.
        keepdims: keep the reduced axes, with size 1.

    Raises:
        ValueError: the axis has no elements.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.argmin(jnp.array([3, 7, 5]))
        Array(0, dtype=int32)
    """
    return _position("argmin", lax.argmin, a, axis, out, keepdims)
