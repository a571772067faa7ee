"""The same elements in other shapes: reshape, transpose, new and dropped axes, broadcasting, reversal."""

from __future__ import annotations

from math import prod
from operator import index as as_int
from typing import Any

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._base.errors import InconclusiveDimensionOperation
from gradix._core.dimensions.expression import is_undecided_remainder
from gradix._core.operators import Array
from gradix._core.trace import is_staging
from gradix.numpy.axes import are_several, axes_of, axis_of
from gradix.numpy.promotion import as_operand, broadcast_to as _stretch

# -- reshape ---------------------------------------------------------------------------------------


def reshape(a, shape, order: str = "C", *, copy: bool | None = None, out_sharding=None) -> Array:
    """The elements of `a`, in order, in another shape.

    Inside of `jit` a NumPy array gives a NumPy array, whose values stay known there.

    Args:
        a: an array.
        shape: an int or a sequence; one size may be -1, which is then inferred.
        order: "C" reads and writes the last axis fastest, "F" the first.
        copy: has no visible effect; False is refused, as NumPy's promise of shared memory cannot be
            kept.
        out_sharding: how the result is to be divided.

    Raises:
        TypeError: the number of elements differs.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.reshape(jnp.arange(6), (2, -1))
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return divided(reshape, out_sharding, a, shape, order, copy=copy)
    if isinstance(a, np.ndarray) and is_staging() and order in ("C", "F"):
        shape = _new_shape(a.shape, shape)
        if all(isinstance(n, int) for n in shape):
            # NumPy's arrays stay known inside of traces, as libraries look at their values there.
            known: Any = np.reshape(a, shape, order="F" if order == "F" else "C")
            return known
    a = as_operand("reshape", a)
    shape = _new_shape(a.aval.shape, shape)
    if order == "C":
        return lax.reshape(a, shape)
    if order == "F":
        return transpose(lax.reshape(transpose(a), shape[::-1]))
    if order == "A":
        raise NotImplementedError(
            "np.reshape order=A is not implemented: arrays have no memory order. Use 'C' or 'F'."
        )
    raise ValueError(f"Unexpected value for 'order' argument: {order}. Use 'C' or 'F'.")


def _new_shape(own: tuple, shape) -> tuple:
    """The shape asked for, a size of -1 inferred."""
    if not isinstance(shape, (tuple, list)):
        shape = tuple(shape) if hasattr(shape, "__len__") and np.ndim(shape) else (shape,)
    sizes = tuple(
        [n if type(n) is int else as_int(n) if hasattr(n, "__index__") else n for n in shape]
    )
    total = prod(own)
    unknown = [i for i, n in enumerate(sizes) if type(n) is int and n == -1]
    if not unknown:
        if all(type(n) is int and n >= 0 for n in sizes) and prod(sizes) != total:
            raise TypeError(
                f"cannot reshape array of shape {own} (size {total}) into shape {tuple(shape)} "
                f"(size {prod(sizes)})"
            )
        return sizes
    rest = prod([n for n in sizes if not (type(n) is int and n == -1)])
    if is_undecided_remainder(total % rest if rest else 0):
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {own} and {tuple(shape)}: the "
            f"remainder {total % rest} should be 0. Give the dimension a factor, as "
            'in symbolic_shape("2*b"), or state it as a constraint, "mod(b, 2) == '
            '0".'
        )
    if len(unknown) > 1 or type(rest) is int and (rest == 0 or type(total) is int and total % rest):
        raise TypeError(
            f"cannot reshape array of shape {own} (size {total}) into shape {tuple(shape)}: one size at "
            "most may be -1, and the others must divide the size."
        )
    return (*sizes[: unknown[0]], total // rest, *sizes[unknown[0] + 1 :])


def ravel(a, order: str = "C", *, out_sharding=None) -> Array:
    """The elements of `a` in one row.

    Raises:
        NotImplementedError: `order` is "K".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ravel(jnp.arange(4).reshape(2, 2), order="F")
        Array([0, 2, 1, 3], dtype=int32)
    """
    if out_sharding is not None:
        return divided(ravel, out_sharding, a, order)
    if order == "K":
        raise NotImplementedError(
            "Ravel not implemented for order='K': arrays have no memory order. Use 'C' or 'F'."
        )
    a = as_operand("ravel", a)
    return reshape(a, (a.aval.size,), order)


def squeeze(a, axis=None) -> Array:
    """`a` without its axes of size 1, or without the axes named.

    Raises:
        ValueError: an axis named has another size.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.squeeze(jnp.ones((1, 3, 1)), 0).shape
        (3, 1)
    """
    a = as_operand("squeeze", a)
    if axis is None:
        axis = tuple([i for i, n in enumerate(a.aval.shape) if type(n) is int and n == 1])
    return lax.squeeze(a, axes_of(axis, a.aval.ndim))


def expand_dims(a, axis) -> Array:
    """`a` with new axes of size 1 at the positions `axis` of the result.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.expand_dims(jnp.ones(3), (0, 2)).shape
        (1, 3, 1)
    """
    a = as_operand("expand_dims", a)
    return lax.expand_dims(a, [as_int(i) for i in axis] if are_several(axis) else (as_int(axis),))


# -- axes in another order -------------------------------------------------------------------------


def transpose(a, axes=None) -> Array:
    """`a` with its axes permuted; reversed by default.

    Raises:
        TypeError, ValueError: `axes` is no permutation of the axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    """
    a = as_operand("transpose", a)
    ndim = a.aval.ndim
    if axes is None:
        return lax.transpose(a, range(ndim)[::-1])
    axes = [axis_of(i, ndim) for i in (axes if isinstance(axes, (tuple, list)) else tuple(axes))]
    if sorted(axes) != list(range(ndim)):
        raise (TypeError if len(axes) != ndim or len(set(axes)) != len(axes) else ValueError)(
            f"transpose: axes {tuple(axes)} must name each of the {ndim} axes of shape {a.aval.shape} once."
        )
    return lax.transpose(a, axes)


def permute_dims(a, /, axes) -> Array:
    """`a` with its axes permuted: axis i of the result is axis `axes[i]` of `a`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x, /) -> Array:
    """A matrix, or a stack of them, with its last two axes exchanged.

    Raises:
        ValueError: there are fewer than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    x = as_operand("matrix_transpose", x)
    if x.aval.ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={x.aval.ndim}"
        )
    return swapaxes(x, -1, -2)


def swapaxes(a, axis1: int, axis2: int) -> Array:
    """`a` with two axes exchanged.

    Args:
        a: an array.
        axis1, axis2: the axes; negative ones count from the end.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    a = as_operand("swapaxes", a)
    order = list(range(a.aval.ndim))
    i, j = axis_of(axis1, len(order)), axis_of(axis2, len(order))
    order[i], order[j] = j, i
    return lax.transpose(a, order)


def moveaxis(a, source, destination) -> Array:
    """`a` with axes moved to other positions, the rest in order.

    Args:
        a: an array.
        source: an axis, or a sequence of them; negative ones count from the end.
        destination: where each goes.

    Raises:
        ValueError: the numbers of axes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    a = as_operand("moveaxis", a)
    ndim = a.aval.ndim
    sources, targets = axes_of(_listed(source), ndim), axes_of(_listed(destination), ndim)
    if len(sources) != len(targets):
        raise ValueError(
            f"Inconsistent number of elements: {len(sources)} vs {len(targets)}: source={source} and "
            f"destination={destination} must name as many axes."
        )
    order = [i for i in range(ndim) if i not in sources]
    for target, i in sorted(zip(targets, sources)):
        order.insert(target, i)
    return lax.transpose(a, order)


def _listed(axis):
    return axis if isinstance(axis, (tuple, list)) or not hasattr(axis, "__len__") else tuple(axis)


def rollaxis(a, axis: int, start: int = 0) -> Array:
    """`a` with an axis moved before the axis `start`.

    Args:
        a: an array.
        axis: the axis that is moved; negative ones count from the end.
        start: the axis that it comes to stand before.

    Raises:
        ValueError: `start` is out of range.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    a = as_operand("rollaxis", a)
    ndim = a.aval.ndim
    axis, start = axis_of(axis, ndim), as_int(start)
    if not -ndim <= start <= ndim:
        raise ValueError(f"start={start} must satisfy -{ndim}<=start<={ndim}")
    start += ndim if start < 0 else 0
    return moveaxis(a, axis, start - (start > axis))


# -- broadcasting ----------------------------------------------------------------------------------


def broadcast_to(array, shape, *, out_sharding=None) -> Array:
    """`array` stretched to `shape`: its axes are the last ones, and those of size 1 repeat.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
        Array([[0, 1],
               [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return divided(broadcast_to, out_sharding, array, shape)
    array = as_operand("broadcast_to", array)
    shape = _given_shape(shape)
    own = array.aval.shape
    if len(own) > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={own} shape={shape}"
        )
    if any(n != m and not (type(n) is int and n == 1) for n, m in zip(own[::-1], shape[::-1])):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {own} and requested shape {shape}. Axes are matched "
            "from the last one, and must agree or have size 1 in the array."
        )
    return _stretch(array, shape)


def _given_shape(shape) -> tuple:
    if not isinstance(shape, (tuple, list)):
        shape = (shape,) if not np.ndim(shape) else tuple(shape)
    return tuple(
        [n if type(n) is int else as_int(n) if hasattr(n, "__index__") else n for n in shape]
    )


def broadcast_arrays(*args):
    """The arrays stretched to the shape they broadcast to together.

    Example:
        >>> import gradix.numpy as jnp
        >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
        [(2, 3), (2, 3)]
    """
    arrays = [as_operand("broadcast_arrays", x, i) for i, x in enumerate(args)]
    shape = lax.broadcast_shapes(*[x.aval.shape for x in arrays])
    return [_stretch(x, shape) for x in arrays]


def broadcast_shapes(*shapes) -> tuple:
    """The shape to which arrays of these shapes broadcast together.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    return lax.broadcast_shapes(*shapes)


def _atleast(name: str, rank: int, arrays, raise_rank):
    out = [raise_rank(x) for x in [as_operand(name, a, i) for i, a in enumerate(arrays)]]
    return out[0] if len(out) == 1 else out


@replayed
def atleast_1d(*arys) -> Array:
    """The arrays with one axis at least; a list of several.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.atleast_1d(2.0).shape
        (1,)
    """
    return _atleast("atleast_1d", 1, arys, lambda x: x if x.aval.ndim else lax.expand_dims(x, (0,)))


@replayed
def atleast_2d(*arys) -> Any:
    """The arrays with two axes at least, new ones in front; a list of several.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.atleast_2d(jnp.ones(3)).shape
        (1, 3)
    """
    return _atleast(
        "atleast_2d", 2, arys, lambda x: lax.expand_dims(x, range(max(2 - x.aval.ndim, 0)))
    )


@replayed
def atleast_3d(*arys) -> Array:
    """The arrays with three axes at least; a list of several.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.atleast_3d(jnp.ones((2, 3))).shape
        (2, 3, 1)
    """
    new_axes = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _atleast(
        "atleast_3d", 3, arys, lambda x: lax.expand_dims(x, new_axes.get(x.aval.ndim, ()))
    )


# -- reversal --------------------------------------------------------------------------------------


def flip(m, axis=None) -> Array:
    """`m` with its elements in reverse order along an axis, several, or all.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.flip(jnp.arange(3))
        Array([2, 1, 0], dtype=int32)
    """
    m = as_operand("flip", m)
    return lax.rev(m, axes_of(axis, m.aval.ndim))


def fliplr(m) -> Array:
    """`m` with axis 1 reversed.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fliplr(jnp.array([[1, 2]]))
        Array([[2, 1]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m) -> Array:
    """`m` with axis 0 reversed.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.flipud(jnp.array([1, 2]))
        Array([2, 1], dtype=int32)
    """
    return flip(m, 0)


@replayed
def rot90(m, k: int = 1, axes=(0, 1)) -> Array:
    """`m` rotated by k quarters of a circle in the plane of two axes, from the first towards the second.

    Args:
        m: an array with two axes at least.
        k: how many quarters; negative ones go back.
        axes: the two axes.

    Raises:
        ValueError: the axes are one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 4],
               [1, 3]], dtype=int32)
    """
    m = as_operand("rot90", m)
    i, j = (axis_of(a, m.aval.ndim) for a in axes)
    if i == j:
        raise ValueError(f"Axes must be different, got axes={axes}.")
    k = as_int(k) % 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, (i, j))
    return swapaxes(flip(m, j), i, j) if k == 1 else flip(swapaxes(m, i, j), j)


# -- shape, ndim, size -----------------------------------------------------------------------------


def shape(a) -> tuple:
    """The sizes of the axes.

    Returns:
        A tuple of integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.shape(jnp.ones((2, 3)))
        (2, 3)
    """
    return a.aval.shape if isinstance(a, Array) else np.shape(a)


def ndim(a) -> int:
    """The number of axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ndim(jnp.ones((2, 3)))
        2
    """
    return len(shape(a))


def size(a, axis=None) -> int:
    """The number of elements, of all or along some axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.size(jnp.ones((2, 3)), 1)
        3
    """
    sizes = shape(a)
    return prod([sizes[i] for i in axes_of(axis, len(sizes))])
