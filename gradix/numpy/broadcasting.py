"""Arrays broadcast to shapes, and raised to a least number of axes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.constraints import rearranged
from gradix._api.jit.replay import replayed
from gradix._core.operators import Array
from gradix.numpy.promotion import as_operand, broadcast_to as _stretch

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Shape, Size
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec


def broadcast_to(array: ArrayLike, shape: Shape, *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
    """The array broadcast to `shape`: its axes are the last ones, and those of size 1 repeat.

    Raises:
        ValueError: the array does not broadcast to the shape.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
        Array([[0, 1],
               [0, 1]], dtype=int32)
        >>> jnp.broadcast_to(jnp.ones((3, 1)), (2, 3, 4)).shape
        (2, 3, 4)

    See also:
        `jnp.broadcast_arrays`, `jnp.broadcast_shapes`, `jnp.tile`, `jnp.repeat`.
    """
    if out_sharding is not None:
        return rearranged(broadcast_to, out_sharding, array, shape, copies=True)
    array = as_operand("broadcast_to", array)
    shape = _given_shape(shape)
    own = array.aval.shape
    if len(own) > len(shape):
        raise ValueError(f"broadcast_to: an array of shape {own} has more axes than the shape {shape}.")
    if any(n != m and not (type(n) is int and n == 1) for n, m in zip(own[::-1], shape[::-1])):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {own} and requested shape {shape}. Axes are "
            "matched from the last one, and must agree or have size 1 in the array."
        )
    return _stretch(array, shape)


def _given_shape(shape) -> tuple:
    if not isinstance(shape, (tuple, list)):
        shape = (shape,) if not np.ndim(shape) else tuple(shape)
    return tuple([n if type(n) is int else as_int(n) if hasattr(n, "__index__") else n for n in shape])


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """A list of the arrays, each broadcast to the shape to which they broadcast together.

    Raises:
        ValueError: the shapes do not broadcast.

    Example:
        >>> import gradix.numpy as jnp
        >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
        [(2, 3), (2, 3)]
    """
    arrays = [as_operand("broadcast_arrays", x, i) for i, x in enumerate(args)]
    shape = lax.broadcast_shapes(*[x.aval.shape for x in arrays])
    return [_stretch(x, shape) for x in arrays]


def broadcast_shapes(*shapes: Sequence[Size]) -> tuple:
    """The shape to which arrays of these shapes broadcast together.

    Raises:
        ValueError: the shapes do not broadcast.

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
def atleast_1d(*arys: ArrayLike) -> Array:
    """The array with at least one axis, or a list of several such arrays.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.atleast_1d(2.0).shape
        (1,)
    """
    return _atleast("atleast_1d", 1, arys, lambda x: x if x.aval.ndim else lax.expand_dims(x, (0,)))


@replayed
def atleast_2d(*arys: ArrayLike) -> Any:
    """The array with at least two axes, new ones in front, or a list of several such arrays.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.atleast_2d(jnp.ones(3)).shape
        (1, 3)
    """
    return _atleast("atleast_2d", 2, arys, lambda x: lax.expand_dims(x, range(max(2 - x.aval.ndim, 0))))


@replayed
def atleast_3d(*arys: ArrayLike) -> Array:
    """The array with at least three axes, or a list of several such arrays.

    A vector becomes the middle axis, the axes of a matrix the first two.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.atleast_3d(jnp.ones((2, 3))).shape
        (2, 3, 1)
    """
    new_axes = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _atleast("atleast_3d", 3, arys, lambda x: lax.expand_dims(x, new_axes.get(x.aval.ndim, ())))
