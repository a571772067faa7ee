"""Discrete cosine transforms, as in `scipy.fft`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.listing import listing
from gradix._core.dimensions.expression import is_count
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.axes import axes_of, axis_of, known_int
from gradix.numpy.promotion import convert, inexact_operand, raise_rank

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

__all__ = ["dct", "dctn", "idct", "idctn"]


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform of type 2: `2 Σₘ xₘ cos(πk(2m + 1) / 2n)`.

    J. Makhoul, "A fast cosine transform in one and two dimensions" (1980).

    Args:
        x: the array.
        type: must be 2.
        n: the length of the transform, to which the array is cut or padded with zeros.
        axis: the axis to transform.
        norm: None or "backward" for no factor, or "ortho" for an orthogonal transform.

    Returns:
        An array of the shape of `x`, with size `n` along the axis; its dtype is at least float32.

    Raises:
        NotImplementedError: `type` has another value.
        ValueError: `norm` has another value, or the length is zero.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import fft
        >>> fft.dct(jnp.array([1.0, 2.0, 3.0])).round(3) + 0.0
        Array([12.   , -3.464,  0.   ], dtype=float32)
    """
    _check("dct", type, norm)
    x = _operand("dct", x)
    return _along(x, axis_of(axis, x.aval.ndim), n, norm, _forward)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct`.

    Args:
        x: the array.
        type: must be 2.
        n: the length of the transform, to which the array is cut or padded with zeros.
        axis: the axis to transform.
        norm: as for `dct`.

    Raises:
        NotImplementedError: `type` has another value.
        ValueError: `norm` has another value, or the length is zero.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import fft
        >>> fft.idct(fft.dct(jnp.array([1.0, 2.0, 3.0]))).round(3)
        Array([1., 2., 3.], dtype=float32)
    """
    _check("idct", type, norm)
    x = _operand("idct", x)
    return _along(x, axis_of(axis, x.aval.ndim), n, norm, _inverse)


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete cosine transform of type 2 along several axes.

    Args:
        x: the array.
        type: must be 2.
        s: the lengths along the axes, to which the array is cut or padded with zeros; a number for
            the last axis.
        axes: the axes to transform; by default all, or the last ones if `s` is given.
        norm: as for `dct`.

    Raises:
        NotImplementedError: `type` has another value.
        ValueError: `norm` has another value, an axis occurs twice, or `s` and `axes` have different
            lengths.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import fft
        >>> fft.dctn(jnp.ones((2, 2))).round(3) + 0.0
        Array([[16.,  0.],
               [ 0.,  0.]], dtype=float32)
    """
    return _along_all("dctn", x, type, s, axes, norm, transform=_forward)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn`.

    Args:
        x: the array.
        type: must be 2.
        s, axes: as for `dctn`.
        norm: as for `dct`.

    Raises:
        NotImplementedError: `type` has another value.
        ValueError: `norm` has another value, an axis occurs twice, or `s` and `axes` have different
            lengths.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import fft
        >>> fft.idctn(fft.dctn(jnp.ones((2, 2)))).round(3)
        Array([[1., 1.],
               [1., 1.]], dtype=float32)
    """
    return _along_all("idctn", x, type, s, axes, norm, transform=_inverse)


def _check(name: str, type: int, norm) -> None:
    if type != 2:
        raise NotImplementedError(f"{name}: only DCT type 2 is implemented, got type={type}.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"scipy.fft.{name}: norm={norm!r} is not implemented. Use None, 'backward' or 'ortho'.")


def _operand(name: str, x):
    x = inexact_operand(name, x)
    return convert(x, np.dtype("float32") if x.aval.dtype.itemsize < 4 else x.aval.dtype)


def _along_all(name: str, x, type, s, axes, norm, *, transform):
    _check(name, type, norm)
    x = _operand(name, x)
    lengths = None if s is None else [s] if np.ndim(s) == 0 else list(s)
    if axes is None and lengths is not None:
        axes = tuple(range(x.aval.ndim - len(lengths), x.aval.ndim))
    axes = axes_of(axes, x.aval.ndim)
    if lengths is not None and len(lengths) != len(axes):
        raise ValueError(f"{name}: s and axes must have the same length, got s={s} and axes={axes}.")
    for axis, n in zip(axes, lengths or [None] * len(axes)):
        x = _along(x, axis, n, norm, transform)
    return x


def _along(x, axis: int, n, norm, transform):
    """The transform along an axis; for complex numbers, of the real and the imaginary part."""
    have = x.aval.shape[axis]
    n = have if n is None else known_int(n, "n")
    if not is_count(n) and n < 1:
        raise ValueError(f"Cosine transforms need at least one element, got n={n} for shape {x.aval.shape}.")
    x = jnp.moveaxis(x, axis, -1)[..., :n]
    x = jnp.pad(x, [(0, 0)] * (x.aval.ndim - 1) + [(0, max(n - have, 0))])
    if x.aval.dtype in COMPLEX:
        out = lax.complex(transform(lax.real(x), n, norm), transform(lax.imag(x), n, norm))
    else:
        out = transform(x, n, norm)
    return jnp.moveaxis(out, -1, axis)


def _turns(n: int, dtype, count=None):
    """The first factors `exp(-iπk / 2n)`, by default n."""
    count = n if count is None else count
    complex_ = np.complex128 if dtype == np.float64 else np.complex64
    if type(n) is not int:
        angles = -0.5 * np.pi * jnp.arange(count, dtype=dtype) / n
        return lax.complex(jnp.cos(angles), jnp.sin(angles)).astype(complex_)
    return jnp.asarray(np.exp(-0.5j * np.pi * np.arange(count) / n).astype(complex_))


def _scales(n: int, dtype):
    """The factors that make the transform orthogonal."""
    if type(n) is not int:
        return jnp.sqrt(jnp.where(jnp.arange(n) == 0, 0.25, 0.5) / n).astype(dtype)
    scales = np.full(n, np.sqrt(0.5 / n))
    scales[0] = np.sqrt(0.25 / n)
    return jnp.asarray(scales.astype(dtype))


def _forward(x, n: int, norm):
    """The cosine transform along the last axis, by a Fourier transform of reordered elements."""
    # The even elements come first, then the odd ones in reverse order.
    rank = x.aval.ndim
    if type(n) is int:
        mixed = lax.concatenate([x[..., ::2], lax.rev(x[..., 1::2], (rank - 1,))], rank - 1)
    else:
        place = jnp.arange(n)
        mixed = jnp.take(x, jnp.where(2 * place < n, 2 * place, 2 * (n - place) - 1), axis=-1)
    out = 2 * lax.real(jnp.fft.fft(mixed) * raise_rank(_turns(n, x.aval.dtype), rank))
    return out * raise_rank(_scales(n, x.aval.dtype), rank) if norm == "ortho" else out


def _inverse(x, n: int, norm):
    rank, dtype = x.aval.ndim, x.aval.dtype
    x = x / raise_rank(_scales(n, dtype), rank) if norm == "ortho" else x
    more = int(is_count(n))  # of no elements, a spectrum has one as well
    behind = jnp.pad(lax.rev(x[..., 1:], (rank - 1,)), [(0, 0)] * (rank - 1) + [(1, more)])
    x = jnp.pad(x, [(0, 0)] * (rank - 1) + [(0, more)]) if more else x
    half = n // 2 + 1
    turns = raise_rank(lax.conj(_turns(n, dtype, half)), rank)
    spectrum = lax.complex(x[..., :half], -behind[..., :half]) * turns / 2
    mixed = jnp.fft.irfft(spectrum, n)
    if type(n) is not int:
        place = jnp.arange(n)
        return jnp.take(mixed, jnp.where(place % 2 == 0, place // 2, n - 1 - place // 2), axis=-1)
    split = (n + 1) // 2
    even, odd = mixed[..., :split], lax.rev(mixed[..., split:], (rank - 1,))
    odd = jnp.pad(odd, [(0, 0)] * (rank - 1) + [(0, split - odd.aval.shape[-1])])
    return jnp.stack([even, odd], -1).reshape(*even.aval.shape[:-1], 2 * split)[..., :n]


__dir__ = listing(__name__)
