"""Functions that change the shape or the order of axes: reshape, transpose, squeeze, flip, ..."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_int
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from gradix import lax
from gradix._api.constraints import rearranged
from gradix._api.jit.replay import replayed
from gradix._base.errors import InconclusiveDimensionOperation
from gradix._core.dimensions.expression import check_not_one, has_counts, is_undecided_remainder
from gradix._core.operators import Array
from gradix._core.trace import is_staging
from gradix.numpy.axes import are_several, axes_of, axis_of
from gradix.numpy.promotion import as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

# -- reshape ---------------------------------------------------------------------------------------


def reshape(
    a: ArrayLike,
    shape: Shape,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The elements of `a` in their order, in another shape.

    Under `jit`, the result for a NumPy array is a NumPy array, whose values stay known.

    Args:
        a: an array.
        shape: an int or a sequence of ints; one of them may be -1, and is then inferred.
        order: the order in which elements are read and written: "C" if the last axis varies
            fastest, "F" if the first does.
        copy: whether the result must have memory of its own, which stays when that of `a` is
            donated.
        out_sharding: the sharding of the result.

    Returns:
        An array of the dtype of `a`.

    Raises:
        TypeError: the number of elements differs.
        ValueError: `order` is unknown.
        NotImplementedError: `order` is "A".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.reshape(jnp.arange(6), (2, -1))
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
        >>> jnp.reshape(jnp.ones((2, 3, 4)), (6, -1)).shape
        (6, 4)

    See also:
        `jnp.ravel`, `jnp.squeeze`, `jnp.expand_dims`, `jnp.transpose`, which changes the order
        of elements.
    """
    if out_sharding is not None:
        return rearranged(reshape, out_sharding, a, shape, order, copy=copy)
    if isinstance(a, np.ndarray) and is_staging() and order in ("C", "F"):
        shape = _new_shape(a.shape, shape)
        if all(isinstance(n, int) for n in shape):
            # NumPy arrays stay known in traces, since libraries look at their values there.
            known: Any = np.reshape(a, shape, order="F" if order == "F" else "C")
            return known
    a = as_operand("reshape", a)
    shape = _new_shape(a.aval.shape, shape)
    if order == "C":
        out = lax.reshape(a, shape)
        return lax._separate(out) if copy and out is a else out
    if order == "F":
        return transpose(lax.reshape(transpose(a), shape[::-1]))
    if order == "A":
        raise NotImplementedError(
            "reshape: order='A' is not supported, as arrays have no memory order. Use 'C' or 'F'."
        )
    raise ValueError(f"reshape: order must be 'C' or 'F', got {order!r}.")


def _new_shape(own: tuple, shape) -> tuple:
    """The shape asked for, with the size inferred for -1."""
    if not isinstance(shape, (tuple, list)):
        shape = tuple(shape) if hasattr(shape, "__len__") and np.ndim(shape) else (shape,)
    sizes = tuple([n if type(n) is int else as_int(n) if hasattr(n, "__index__") else n for n in shape])
    total = prod(own)
    unknown = [i for i, n in enumerate(sizes) if type(n) is int and n == -1]
    if not unknown:
        if all(type(n) is int and n >= 0 for n in sizes) and prod(sizes) != total:
            raise TypeError(
                f"cannot reshape array of shape {own} (size {total}) into shape {tuple(shape)} "
                f"(size {prod(sizes)}). Give a shape of the same size."
            )
        return sizes
    rest = prod([n for n in sizes if not (type(n) is int and n == -1)])
    if is_undecided_remainder(total % rest if rest else 0):
        way = (
            f"Cut it to a multiple before, as x[: x.shape[0] // {rest} * {rest}] does."
            if has_counts(own)
            else 'Give the dimension a factor, as in symbolic_shape("2*b"), or state the constraint "mod(b, 2) == 0".'
        )
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {own} and {tuple(shape)}: the remainder {total % rest} must be "
            f"0. {way}"
        )
    if len(unknown) > 1 or type(rest) is int and (rest == 0 or type(total) is int and total % rest):
        raise TypeError(
            f"cannot reshape array of shape {own} (size {total}) into shape {tuple(shape)}. At "
            "most one size may be -1, and the others must divide the size."
        )
    return (*sizes[: unknown[0]], total // rest, *sizes[unknown[0] + 1 :])


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """The elements of `a` in one row, as a vector.

    Raises:
        NotImplementedError: `order` is "A" or "K", as arrays have no memory order.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ravel(jnp.arange(4).reshape(2, 2), order="F")
        Array([0, 2, 1, 3], dtype=int32)
    """
    if out_sharding is not None:
        return rearranged(ravel, out_sharding, a, order)
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not supported, as arrays have no memory order. Use 'C' or 'F'.")
    a = as_operand("ravel", a)
    return reshape(a, (a.aval.size,), order)


def squeeze(a: ArrayLike, axis: Axes | None = None) -> Array:
    """`a` without its axes of size 1, or without those of them that `axis` names.

    Raises:
        ValueError: an axis that is named has another size.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.squeeze(jnp.ones((1, 3, 1)), 0).shape
        (3, 1)
        >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
        (3,)

    See also:
        `jnp.expand_dims`, `jnp.reshape`, `jnp.ravel`.
    """
    a = as_operand("squeeze", a)
    if axis is None:
        axis = tuple([i for i, n in enumerate(a.aval.shape) if type(n) is int and n == 1])
        check_not_one("squeeze", a.aval.shape)
    return lax.squeeze(a, axes_of(axis, a.aval.ndim))


def expand_dims(a: ArrayLike, axis: Axes) -> Array:
    """`a` with new axes of size 1, which are the axes `axis` of the result.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.expand_dims(jnp.ones(3), (0, 2)).shape
        (1, 3, 1)
        >>> x = jnp.ones(3)
        >>> jnp.expand_dims(x, -1).shape, x[:, None].shape
        ((3, 1), (3, 1))

    See also:
        `jnp.squeeze`, `jnp.reshape`, `jnp.broadcast_to`.
    """
    a = as_operand("expand_dims", a)
    axes: Any = axis
    return lax.expand_dims(a, [as_int(i) for i in axes] if are_several(axes) else (as_int(axes),))


# -- axes in another order -------------------------------------------------------------------------


def transpose(a: ArrayLike, axes: Sequence[SupportsIndex] | None = None) -> Array:
    """`a` with its axes permuted: axis i of the result is axis `axes[i]`; reversed by default.

    Raises:
        TypeError: `axes` does not name each axis once.
        ValueError: an axis is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
        >>> x = jnp.ones((2, 3))
        >>> jnp.transpose(x).shape, x.T.shape
        ((3, 2), (3, 2))

    See also:
        `jnp.swapaxes`, `jnp.moveaxis`, `jnp.matrix_transpose`, `jnp.reshape`.
    """
    a = as_operand("transpose", a)
    ndim = a.aval.ndim
    if axes is None:
        return lax.transpose(a, range(ndim)[::-1])
    order = [axis_of(i, ndim) for i in (axes if isinstance(axes, (tuple, list)) else tuple(axes))]
    if sorted(order) != list(range(ndim)):
        raise TypeError(
            f"transpose: axes must name each of the {ndim} axes of shape {a.aval.shape} once, got {tuple(order)}."
        )
    return lax.transpose(a, order)


def permute_dims(a: ArrayLike, /, axes: Sequence[SupportsIndex]) -> Array:
    """`a` with its axes permuted, so that axis i of the result is axis `axes[i]` of `a`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The transposed matrix, or matrices: `x` with its last two axes exchanged.

    Raises:
        ValueError: `x` has less than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    x = as_operand("matrix_transpose", x)
    if x.aval.ndim < 2:
        raise ValueError(f"matrix_transpose: x must have at least two axes, got shape {x.aval.shape}.")
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """`a` with two axes exchanged.

    Args:
        a: an array.
        axis1, axis2: the axes.

    Raises:
        ValueError: an axis is out of bounds.

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


def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """`a` with axes moved to other places; the other axes stay in their order.

    Args:
        a: an array.
        source: an axis, or a sequence of axes.
        destination: the place to which each axis goes.

    Raises:
        ValueError: the numbers of axes and places differ, or one is out of bounds.

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
            "moveaxis: source and destination must name the same number of axes, got "
            f"source={source} and destination={destination}."
        )
    order = [i for i in range(ndim) if i not in sources]
    for target, i in sorted(zip(targets, sources)):
        order.insert(target, i)
    return lax.transpose(a, order)


def _listed(axis):
    return axis if isinstance(axis, (tuple, list)) or not hasattr(axis, "__len__") else tuple(axis)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """`a` with an axis moved before the axis `start`.

    Args:
        a: an array.
        axis: the axis to move.
        start: the axis before which it goes.

    Raises:
        ValueError: `axis` or `start` is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    a = as_operand("rollaxis", a)
    ndim = a.aval.ndim
    axis, start = axis_of(axis, ndim), as_int(start)
    if not -ndim <= start <= ndim:
        raise ValueError(f"rollaxis: start must be from {-ndim} to {ndim}, got {start}.")
    start += ndim if start < 0 else 0
    return moveaxis(a, axis, start - (start > axis))


# -- broadcasting ----------------------------------------------------------------------------------


# -- reversal --------------------------------------------------------------------------------------


def flip(m: ArrayLike, axis: Axes | None = None) -> Array:
    """`m` with its elements in reverse order along an axis, several axes, or all by default.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.flip(jnp.arange(3))
        Array([2, 1, 0], dtype=int32)
    """
    m = as_operand("flip", m)
    return lax.rev(m, axes_of(axis, m.aval.ndim))


def fliplr(m: ArrayLike) -> Array:
    """`m` with axis 1 reversed.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fliplr(jnp.array([[1, 2]]))
        Array([[2, 1]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """`m` with axis 0 reversed.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.flipud(jnp.array([1, 2]))
        Array([2, 1], dtype=int32)
    """
    return flip(m, 0)


@replayed
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array rotated by k quarters of a circle in the plane of two axes.

    Args:
        m: an array with at least two axes.
        k: the number of quarters, from the first axis towards the second; negative ones go back.
        axes: the two axes.

    Raises:
        ValueError: the two axes are the same, or one is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 4],
               [1, 3]], dtype=int32)
    """
    m = as_operand("rot90", m)
    i, j = (axis_of(a, m.aval.ndim) for a in axes)
    if i == j:
        raise ValueError(f"rot90: axes must be two different axes, got {axes}.")
    k = as_int(k) % 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, (i, j))
    return swapaxes(flip(m, j), i, j) if k == 1 else flip(swapaxes(m, i, j), j)


# -- shape, ndim, size -----------------------------------------------------------------------------


def shape(a: Any) -> tuple:
    """The sizes of the axes.

    Returns:
        A tuple of integers, or of symbolic dimensions.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.shape(jnp.ones((2, 3)))
        (2, 3)
    """
    if isinstance(a, Array):
        return a.aval.shape
    if hasattr(a, "__jax_array__") and not hasattr(a, "shape"):
        return as_operand("shape", a).aval.shape
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ndim(jnp.ones((2, 3)))
        2
    """
    return len(shape(a))


def size(a: Any, axis: Axes | None = None) -> int:
    """The number of elements of the array, or along some of its axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.size(jnp.ones((2, 3)), 1)
        3
    """
    sizes = shape(a)
    return prod([sizes[i] for i in axes_of(axis, len(sizes))])
