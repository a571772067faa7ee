"""Bits packed into bytes and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.shapes import moveaxis, ravel

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BYTE = np.dtype("uint8")


def _shifts(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f"bitorder must be 'big' or 'little', got {bitorder!r}.")
    bits = np.arange(8, dtype=np.uint8)
    return bits[::-1].copy() if bitorder == "big" else bits


@replayed
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Bytes whose bits are the elements of an array, eight to a byte along an axis.

    Args:
        a: an array of integers or booleans; each element other than zero is a set bit.
        axis: the axis; by default, the elements are taken as one row.
        bitorder: whether the first element is the "big" or the "little" end of the byte.

    Returns:
        An array of uint8; an axis of size n becomes one of size ⌈n/8⌉. The last byte is padded with
        zero bits.

    Raises:
        TypeError: the array holds neither integers nor booleans.
        ValueError: `bitorder` is neither "big" nor "little".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.packbits(jnp.array([1, 0, 1]))
        Array([160], dtype=uint8)
    """
    x = as_operand("packbits", a)
    if x.aval.dtype not in dtypes.INTEGER and x.aval.dtype != bool:
        raise TypeError(f"packbits: a must hold integers or booleans, got dtype {x.aval.dtype}. Write a != 0.")
    shifts = _shifts(bitorder)
    x = ravel(x) if axis is None else x
    axis = axis_of(-1 if axis is None else axis, x.aval.ndim)
    bits = moveaxis(x if x.aval.dtype == bool else lax.ne(x, number(0, x.aval.dtype)), axis, -1)
    bits = convert(bits, _BYTE)
    n = bits.aval.shape[-1]
    count = (n + 7) // 8
    widths = [(0, 0, 0)] * (bits.aval.ndim - 1) + [(0, 8 * count - n, 0)]
    bits = lax.pad(bits, number(0, _BYTE), widths)
    bits = lax.reshape(bits, (*bits.aval.shape[:-1], count, 8))
    placed = lax.shift_left(
        bits, lax.broadcast_in_dim(as_operand("packbits", shifts), bits.aval.shape, (bits.aval.ndim - 1,))
    )
    return moveaxis(lax.reduce_sum(placed, (placed.aval.ndim - 1,)), -1, axis)


@replayed
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of an array of bytes as zeros and ones, eight along an axis for each byte.

    Args:
        a: an array of uint8.
        axis: the axis; by default, the bytes are taken as one row.
        count: how many bits to return along the axis; zeros are appended if there are fewer. A
            negative count is how many bits to drop at the end.
        bitorder: whether the "big" or the "little" end of a byte comes first.

    Returns:
        An array of uint8; an axis of size n becomes one of size 8·n, or `count`.

    Raises:
        TypeError: the array is not of uint8.
        ValueError: `bitorder` is neither "big" nor "little".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unpackbits(jnp.array([5], dtype="uint8"))
        Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    x = as_operand("unpackbits", a)
    if x.aval.dtype != _BYTE:
        raise TypeError(f"unpackbits: a must be of uint8, got dtype {x.aval.dtype}. Convert it with .astype('uint8').")
    shifts = _shifts(bitorder)
    x = ravel(x) if axis is None else x
    axis = axis_of(-1 if axis is None else axis, x.aval.ndim)
    octets = moveaxis(x, axis, -1)
    shape = (*octets.aval.shape, 8)
    bits = lax.bitwise_and(
        lax.shift_right_logical(
            lax.broadcast_in_dim(octets, shape, range(len(shape) - 1)),
            lax.broadcast_in_dim(as_operand("unpackbits", shifts), shape, (len(shape) - 1,)),
        ),
        number(1, _BYTE),
    )
    n = 8 * shape[-2]
    bits = lax.reshape(bits, (*shape[:-2], n))
    if count is not None:
        count = max(n + count, 0) if count < 0 else count
        bits = lax.pad(bits, number(0, _BYTE), [(0, 0, 0)] * (bits.aval.ndim - 1) + [(0, count - n, 0)])
    return moveaxis(bits, -1, axis)
