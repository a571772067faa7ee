"""Functions applied along one axis of an array, or over several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gradix._api.mapping.vmap import vmap
from gradix._base.tracebacks import boundary
from gradix._core.operators import Array
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand
from gradix.numpy.shapes import expand_dims

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes


@boundary
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """The results of a function of one row, for every row of an array along an axis.

    Args:
        func1d: the function; it takes a vector and returns an array of any shape, or a pytree of
            arrays.
        axis: the axis along which the rows lie.
        arr: an array with at least one axis.
        *args: further arguments of the function.
        **kwargs: further keyword arguments of the function.

    Returns:
        An array, or a pytree of arrays, of the shape of `arr`, in which the axes of the function's
        result stand in the place of `axis`.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.apply_along_axis(jnp.sort, 0, jnp.array([[3, 1], [2, 5]]))
        Array([[2, 1],
               [3, 5]], dtype=int32)
    """
    x = as_operand("apply_along_axis", arr, 2)
    ndim = x.aval.ndim
    axis = axis_of(axis, ndim)

    def function(row):
        return func1d(row, *args, **kwargs)

    for _ in range(1, ndim - axis):
        function = vmap(function, in_axes=1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(x)


@boundary
def apply_over_axes(func: Callable[..., Array], a: ArrayLike, axes: Axes) -> Array:
    """The array after a function `func(array, axis=axis)` was applied over several axes in turn.

    Args:
        func: takes an array and an axis, and returns an array with or without that axis.
        a: an array.
        axes: an axis, or a sequence of axes.

    Returns:
        An array with as many axes as `a`: an axis that `func` reduces stays, with size 1.

    Raises:
        ValueError: the result of `func` lacks more than the one axis, or has more axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))
        Array([[6.]], dtype=float32)
    """
    x = as_operand("apply_over_axes", a, 1)
    for axis in axes if isinstance(axes, Iterable) else (axes,):
        out = func(x, axis=axis)
        if out.ndim == x.ndim:
            x = out
        elif out.ndim == x.ndim - 1:
            x = expand_dims(out, axis)
        else:
            raise ValueError(
                f"apply_over_axes: func turned shape {x.shape} into {out.shape} over axis {axis}. "
                "Return an array with that axis reduced, with or without an axis of size 1 for it."
            )
    return x
