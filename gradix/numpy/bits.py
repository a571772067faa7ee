"""Bits packed into bytes and back."""

from __future__ import annotations

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy import host_implementations
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.shapes import moveaxis, ravel

_BYTE = np.dtype("uint8")


def _shifts(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got bitorder={bitorder!r}.")
    bits = np.arange(8, dtype=np.uint8)
    return bits[::-1].copy() if bitorder == "big" else bits


@replayed(host=host_implementations.packbits)
def packbits(a, axis: int | None = None, bitorder: str = "big") -> Array:
    """Booleans as the bits of bytes, eight along an axis making one; the last is filled up with zeros.

    Args:
        a: integers or booleans; any but zero is a set bit.
        axis: by default all elements in one row.
        bitorder: whether the first element is the "big" or the "little" end of the byte.

    Raises:
        TypeError: the array is neither of integers nor of booleans.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.packbits(jnp.array([1, 0, 1]))
        Array([160], dtype=uint8)
    """
    x = as_operand("packbits", a)
    if x.aval.dtype not in dtypes.INTEGER and x.aval.dtype != bool:
        raise TypeError(
            f"Expected an input array of integer or boolean data type, got {x.aval.dtype}."
        )
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
        bits,
        lax.broadcast_in_dim(
            as_operand("packbits", shifts), bits.aval.shape, (bits.aval.ndim - 1,)
        ),
    )
    return moveaxis(lax.reduce_sum(placed, (placed.aval.ndim - 1,)), -1, axis)


@replayed
def unpackbits(
    a, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes as zeros and ones, eight along an axis for each.

    Args:
        a: an array of uint8.
        axis: by default all elements in one row.
        count: how many bits to return along the axis: more are zeros, negative ones are cut from
            the end.
        bitorder: whether the "big" or the "little" end of a byte comes first.

    Raises:
        TypeError: the array is not of uint8.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unpackbits(jnp.array([5], dtype="uint8"))
        Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    x = as_operand("unpackbits", a)
    if x.aval.dtype != _BYTE:
        raise TypeError(f"Expected an input array of unsigned byte data type, got {x.aval.dtype}.")
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
        bits = lax.pad(
            bits, number(0, _BYTE), [(0, 0, 0)] * (bits.aval.ndim - 1) + [(0, count - n, 0)]
        )
    return moveaxis(bits, -1, axis)
