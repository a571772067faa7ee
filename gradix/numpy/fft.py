"""Fourier transforms, as `numpy.fft`."""

from __future__ import annotations

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.listing import listing
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.axes import axes_of, known_int
from gradix.numpy.fourier_transforms import (
    Kind,
    transform_along,
    transform_along_one,
    transform_along_two,
)
from gradix.numpy.promotion import as_operand, convert, inexact_operand
from gradix.numpy.rearrangement import roll

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


@replayed
def fft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform along one axis.

    Args:
        a: an array.
        n: the length to cut or lengthen with zeros to; by default that of the axis.
        axis: the axis.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fft(jnp.array([1.0, 0.0]))
        Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return transform_along_one("fft", Kind.FFT, a, n, axis, norm)


@replayed
def ifft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse Fourier transform along one axis.

    Args:
        a: an array.
        n: the length to cut or lengthen with zeros to; by default that of the axis.
        axis: the axis.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifft(jnp.array([2.0, 2.0]))
        Array([2.+0.j, 0.+0.j], dtype=complex64)
    """
    return transform_along_one("ifft", Kind.IFFT, a, n, axis, norm)


@replayed
def rfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of real values along one axis: the frequencies that are not negative.

    Args:
        a: an array.
        n: the length to cut or lengthen with zeros to; by default that of the axis.
        axis: the axis.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0]))
        Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return transform_along_one("rfft", Kind.RFFT, a, n, axis, norm)


@replayed
def irfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real values along one axis whose `rfft` is `a`.

    Args:
        a: an array.
        n: the length of the result; by default 2 (m - 1) for m values.
        axis: the axis.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.irfft(jnp.array([1.0, 1.0]))
        Array([1., 0.], dtype=float32)
    """
    return transform_along_one("irfft", Kind.IRFFT, a, n, axis, norm)


@replayed
def fft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """The Fourier transform along two axes.

    Args:
        a: numbers, real or complex, with two axes at least.
        s: how many elements to take along the axes: more are cut, missing ones are zero; None takes
            those there are.
        axes: the two axes.
        norm: which direction is divided by the number of elements: "backward" (or None) the
            inverse, "forward" the transform itself, "ortho" both, by its root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("fft2", Kind.FFT, a, s, axes, norm)


@replayed
def ifft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """The inverse Fourier transform along two axes.

    Args:
        a: numbers, real or complex, with two axes at least.
        s: how many elements to take along the axes: more are cut, missing ones are zero; None takes
            those there are.
        axes: the two axes.
        norm: which direction is divided by the number of elements: "backward" (or None) the
            inverse, "forward" the transform itself, "ortho" both, by its root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("ifft2", Kind.IFFT, a, s, axes, norm)


@replayed
def rfft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """The Fourier transform of real values along two axes: the frequencies that are not negative.

    Args:
        a: numbers, real, with two axes at least.
        s: how many elements to take along the axes: more are cut, missing ones are zero; None takes
            those there are.
        axes: the two axes.
        norm: which direction is divided by the number of elements: "backward" (or None) the
            inverse, "forward" the transform itself, "ortho" both, by its root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.rfft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("rfft2", Kind.RFFT, a, s, axes, norm)


@replayed
def irfft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """The real values along two axes whose `rfft` is `a`.

    Args:
        a: numbers, complex, with two axes at least.
        s: the sizes of the result along the axes; None is an even last one.
        axes: the two axes.
        norm: which direction is divided by the number of elements: "backward" (or None) the
            inverse, "forward" the transform itself, "ortho" both, by its root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.irfft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("irfft2", Kind.IRFFT, a, s, axes, norm)


@replayed
def fftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """The Fourier transform along several axes.

    Args:
        a: an array.
        s: the length along each axis.
        axes: the axes, by default as many last ones as `s` has lengths, or all.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("fftn", Kind.FFT, a, s, axes, norm)


@replayed
def ifftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """The inverse Fourier transform along several axes.

    Args:
        a: an array.
        s: the length along each axis.
        axes: the axes, by default as many last ones as `s` has lengths, or all.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("ifftn", Kind.IFFT, a, s, axes, norm)


@replayed
def rfftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """The Fourier transform of real values along several axes: the frequencies that are not negative.

    Args:
        a: an array.
        s: the length along each axis.
        axes: the axes, by default as many last ones as `s` has lengths, or all; the last of them is
            the halved one.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.rfftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("rfftn", Kind.RFFT, a, s, axes, norm)


@replayed
def irfftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """The real values along several axes whose `rfft` is `a`.

    Args:
        a: an array.
        s: the length along each axis.
        axes: the axes, by default as many last ones as `s` has lengths, or all; the last of them is
            the halved one.
        norm: "backward" scales the inverse by 1/n, "forward" the other, "ortho" both by the root.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.irfftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("irfftn", Kind.IRFFT, a, s, axes, norm)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _swapped(norm):
    if norm not in _SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return _SWAPPED[norm]


@replayed
def hfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real Fourier transform of values with Hermitian symmetry, of which `a` is half.

    Args:
        a: complex numbers.
        n: the length of the result; None is `2 * (size - 1)`.
        axis: the axis; negative ones count from the end.
        norm: "backward" (or None), "ortho" or "forward", as for `fft`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.hfft(jnp.array([1.0, 1.0]))
        Array([2., 0.], dtype=float32)
    """
    x = inexact_operand("hfft", a)
    return transform_along_one(
        "hfft", Kind.IRFFT, lax.conj(x) if x.aval.dtype in COMPLEX else x, n, axis, _swapped(norm)
    )


@replayed
def ihfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The half of the values with Hermitian symmetry whose Fourier transform is the real `a`.

    Args:
        a: real numbers.
        n: how many elements to take: more are cut, missing ones are zero; None takes those there
            are.
        axis: the axis; negative ones count from the end.
        norm: "backward" (or None), "ortho" or "forward", as for `fft`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ihfft(jnp.array([2.0, 0.0])).real
        Array([1., 1.], dtype=float32)
    """
    return lax.conj(transform_along_one("ihfft", Kind.RFFT, a, n, axis, _swapped(norm)))


def _frequencies(name: str, count, n, d, dtype):
    if isinstance(n, (list, tuple)) or isinstance(d, (list, tuple)):
        raise ValueError(
            f"The n and d arguments of numpy.fft.{name} only take numbers, got n={n}, d={d}."
        )
    d = inexact_operand(name, d)
    if d.aval.dtype in dtypes.COMPLEX:
        raise TypeError(
            f"The d argument of jnp.fft.{name} is a distance, a real number, got {d.aval.str_short()}."
        )
    dtype = dtypes.canonicalize_dtype(np.dtype(float) if dtype is None else np.dtype(dtype))
    places = lax.iota(np.dtype("int32"), max(count, 0))
    if name == "fftfreq":
        places = lax.select(lax.ge(places, lax.full_like(places, (n + 1) // 2)), places - n, places)
    if name == "rfftfreq" and dtype in dtypes.BOOL:
        raise TypeError("jnp.fft.rfftfreq has no boolean frequencies: give a float dtype.")
    if name == "fftfreq" and dtype not in dtypes.INEXACT:
        return convert(convert(places, d.aval.dtype) / (d * n), dtype)
    return convert(places, dtype) / (convert(d, dtype) * n)


def _count(name: str, n) -> int:
    """How many values there are; floats that are whole count too."""
    return (
        int(n)
        if isinstance(n, float) and n.is_integer()
        else known_int(n, f"n argument of jnp.fft.{name}")
    )


def fftfreq(n: int, d=1.0, *, dtype=None, device=None) -> Array:
    """The frequencies of the results of `fft` on n values.

    Args:
        n: how many values.
        d: the distance between them.
        dtype: of the result, by default the default float.
        device: has no effect.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fftfreq(4)
        Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = _count("fftfreq", n)
    return _frequencies("fftfreq", n, n, d, dtype)


def rfftfreq(n: int, d=1.0, *, dtype=None, device=None) -> Array:
    """The frequencies of the results of `rfft` on n values.

    Args:
        n: how many values.
        d: the distance between them.
        dtype: of the result, by default the default float.
        device: has no effect.

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
def fftshift(x, axes=None) -> Array:
    """`x` with the zero frequency moved to the middle of the axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fftshift(jnp.arange(5))
        Array([3, 4, 0, 1, 2], dtype=int32)
    """
    return _shifted(as_operand("fftshift", x), axes, lambda n: n // 2)


@replayed
def ifftshift(x, axes=None) -> Array:
    """What `fftshift` moved, moved back.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifftshift(jnp.arange(5))
        Array([2, 3, 4, 0, 1], dtype=int32)
    """
    return _shifted(as_operand("ifftshift", x), axes, lambda n: -(n // 2))


__dir__ = listing(__name__)
