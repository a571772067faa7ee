"""Views of an array's bytes as another dtype."""

from __future__ import annotations

import math

import numpy as np

from gradix import lax
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix.numpy.promotion import convert, number

_BOOL, _UINT8 = np.dtype(bool), np.dtype("uint8")


def view(self, dtype=None, type=None):
    """The array's bytes read as another dtype.

    If the dtypes differ in width, the size of the last axis changes accordingly.

    Raises:
        ValueError: the last axis does not divide into elements of the dtype, or is missing.
        TypeError: `dtype` is a size or a shape, which `x.reshape` takes.
        NotImplementedError: `type` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array([1.0]).view("int32")
        Array([1065353216], dtype=int32)
    """
    if isinstance(dtype, int | tuple):
        sizes = dtype if isinstance(dtype, tuple) else (dtype,) if type is None else (dtype, type)
        raise TypeError(f"x.view takes a dtype, got {sizes}. For other sizes write x.reshape{sizes}.")
    if type is not None:
        raise NotImplementedError(f"x.view: type is not supported, got {type!r}. Give a dtype.")
    if dtype is None:
        return self
    dtype = dtypes.requested_dtype(dtype, "view")
    own = self.aval.dtype
    if own == dtype:
        return convert(self, dtype)
    old, new = dtypes.itemsize_bits(own), dtypes.itemsize_bits(dtype)
    if not self.aval.ndim and old != new:
        raise ValueError(f"x.view: a scalar of dtype {own} has no axis for parts of dtype {dtype}. Use x[None].")
    if old < new and (self.aval.shape[-1] * old) % new:
        raise ValueError(
            f"x.view: the last axis of shape {self.aval.shape} and dtype {own} does not divide "
            f"into elements of dtype {dtype}."
        )
    return _to_complex(_plain(self), dtype) if dtype in COMPLEX else _cast_bits(_plain(self), dtype)


def _plain(x):
    """`x` with booleans as bytes, and complex numbers as pairs of real ones in the last axis."""
    dtype = x.aval.dtype
    if dtype == _BOOL:
        return convert(x, _UINT8)
    if dtype not in COMPLEX:
        return x
    shape = x.aval.shape
    parts = [lax.reshape(part, (*shape, 1)) for part in (lax.real(x), lax.imag(x))]
    pairs = lax.concatenate(parts, len(shape))
    return lax.reshape(pairs, (*shape[:-1], 2 * shape[-1])) if shape else pairs


def _to_complex(x, dtype):
    x = _cast_bits(x, dtypes.real_dtype(dtype))
    *lead, n = x.aval.shape
    pairs = lax.reshape(x, (*lead, n // 2, 2))
    parts = [lax.squeeze(lax.slice_in_dim(pairs, i, i + 1, axis=len(lead) + 1), (len(lead) + 1,)) for i in (0, 1)]
    return lax.complex(*parts)


def _cast_bits(x, dtype):
    if dtype == _BOOL:
        x = _cast_bits(x, _UINT8)
        return lax.ne(x, number(0, _UINT8))
    old, new = dtypes.itemsize_bits(x.aval.dtype), dtypes.itemsize_bits(dtype)
    if old == new:
        return x if x.aval.dtype == dtype else lax.bitcast_convert_type(x, dtype)
    shape = x.aval.shape
    if old < new:
        x = lax.reshape(x, (*shape[:-1], shape[-1] * old // new, new // old))
        return lax.bitcast_convert_type(x, dtype)
    out = lax.bitcast_convert_type(x, dtype)
    return lax.reshape(out, (*shape[:-1], math.prod(out.aval.shape[len(shape) - 1 :])))


def byteswap(self):
    """Each element with its bytes in reverse order.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array([1], dtype="int16").byteswap()
        Array([256], dtype=int16)
    """
    own = self.aval.dtype
    if own.itemsize == 1:
        return self
    if own in COMPLEX:
        return lax.complex(byteswap(lax.real(self)), byteswap(lax.imag(self)))
    octets = lax.bitcast_convert_type(self, _UINT8)
    return lax.bitcast_convert_type(lax.rev(octets, (octets.aval.ndim - 1,)), own)
