"""Functions applied along axes."""

from __future__ import annotations

from gradix._api.mapping.vmap import vmap
from gradix._base.tracebacks import boundary
from gradix._core.operators import Array
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand
from gradix.numpy.shapes import expand_dims


@boundary
def apply_along_axis(func1d, axis: int, arr, *args, **kwargs) -> Array:
    """A function of one row, applied to every row along an axis; the axes of its result take that axis's place.

    Args:
        func1d: the function; it may return an array of any shape, or a pytree of them.
        axis: the axis rows lie along.
        arr: an array.
        *args: further arguments of the function.
        **kwargs: further keyword arguments of the function.

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
def apply_over_axes(func, a, axes) -> Array:
    """A function `func(array, axis)` applied over several axes in turn; an axis it takes away comes back with size 1.

    Args:
        func: takes an array and an axis, and returns an array with or without that axis.
        a: an array.
        axes: an axis, or a sequence of them.

    Raises:
        ValueError: `func` changes the shape of the array otherwise than by reducing the axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))
        Array([[6.]], dtype=float32)
    """
    x = as_operand("apply_over_axes", a, 1)
    for axis in axes:
        out = func(x, axis=axis)
        if out.ndim == x.ndim:
            x = out
        elif out.ndim == x.ndim - 1:
            x = expand_dims(out, axis)
        else:
            raise ValueError(
                f"function is not returning an array of the correct shape: {x.shape} became "
                f"{out.shape}; it must keep the axis or take it away."
            )
    return x
