"""The frequencies of Fourier transforms, and shifts of their zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.axes import axes_of, known_int
from gradix.numpy.promotion import as_operand, convert, inexact_operand
from gradix.numpy.rearrangement import roll

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes, Device, DTypeLike
    from gradix._core.sharding import Sharding


def _frequencies(name: str, count, n, d, dtype):
    if isinstance(d, (list, tuple)):
        raise ValueError(f"fft.{name}: d must be a number, got {d}.")
    d = inexact_operand(name, d)
    if d.aval.dtype in dtypes.COMPLEX:
        raise TypeError(f"fft.{name}: d, the distance of samples, must be real, got {d.aval.str_short()}.")
    dtype = dtypes.canonicalize_dtype(np.dtype(float) if dtype is None else np.dtype(dtype))
    places = lax.iota(np.dtype("int32"), max(count, 0))
    if name == "fftfreq":
        places = lax.select(lax.ge(places, lax.full_like(places, (n + 1) // 2)), places - n, places)
    if name == "rfftfreq" and dtype in dtypes.BOOL:
        raise TypeError("fft.rfftfreq: frequencies cannot be boolean. Give a floating dtype.")
    if name == "fftfreq" and dtype not in dtypes.INEXACT:
        return convert(convert(places, d.aval.dtype) / (d * n), dtype)
    return convert(places, dtype) / (convert(d, dtype) * n)


def _count(name: str, n) -> int:
    """The number of samples as an integer; a float is taken if it has an integer value."""
    if isinstance(n, (list, tuple)):
        raise ValueError(f"fft.{name}: n must be a number, got {n}.")
    return int(n) if isinstance(n, float) and n.is_integer() else known_int(n, f"n argument of jnp.fft.{name}")


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None
) -> Array:
    """The frequencies that belong to the elements of `fft` of n samples.

    Args:
        n: the number of samples.
        d: the distance of neighbouring samples.
        dtype: the dtype of the result; the default floating dtype if None.
        device: it has no effect.

    Returns:
        A vector of size n: 0, 1, ..., then the negative ones -n // 2, ..., -1, divided by n·d.

    Raises:
        ValueError: `n` or `d` is a list or tuple.
        TypeError: `d` is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fftfreq(4)
        Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = _count("fftfreq", n)
    return _frequencies("fftfreq", n, n, d, dtype)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None
) -> Array:
    """The frequencies that belong to the elements of `rfft` of n samples.

    Args:
        n: the number of samples.
        d: the distance of neighbouring samples.
        dtype: the dtype of the result; the default floating dtype if None.
        device: it has no effect.

    Returns:
        A vector of size n // 2 + 1: 0, 1, ..., divided by n·d.

    Raises:
        ValueError: `n` or `d` is a list or tuple.
        TypeError: `d` is complex, or `dtype` boolean.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.rfftfreq(4)
        Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = _count("rfftfreq", n)
    return _frequencies("rfftfreq", n // 2 + 1, n, d, dtype)


def _shifted(x, axes, by):
    axes = axes_of(axes, x.aval.ndim)
    return roll(x, [by(x.aval.shape[i]) for i in axes], axes)


@replayed
def fftshift(x: ArrayLike, axes: Axes | None = None) -> Array:
    """`x` with the zero frequency moved to the middle of the axes (all axes by default).

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fftshift(jnp.arange(5))
        Array([3, 4, 0, 1, 2], dtype=int32)
    """
    return _shifted(as_operand("fftshift", x), axes, lambda n: n // 2)


@replayed
def ifftshift(x: ArrayLike, axes: Axes | None = None) -> Array:
    """`x` with the zero frequency moved back to the front of the axes; the inverse of `fftshift`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifftshift(jnp.arange(5))
        Array([2, 3, 4, 0, 1], dtype=int32)
    """
    return _shifted(as_operand("ifftshift", x), axes, lambda n: -(n // 2))
