"""Fourier transforms, with the names of `numpy.fft`.

They share the argument `norm`: with n elements, "backward" (also None) scales the inverse transform
by 1/n, "forward" the transform itself, and "ortho" both by 1/√n. Results are complex64 or
complex128, or for `irfft`, `hfft` and their like float32 or float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.lazy import claim
from gradix._base.listing import listing
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.fourier_transforms import Kind, check_norm, transform_along, transform_along_one, transform_along_two
from gradix.numpy.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from gradix.numpy.promotion import inexact_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

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
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform along one axis: `yₖ = Σⱼ aⱼ exp(-2πi jk / n)`.

    Args:
        a: an array, real or complex.
        n: the size to which the axis is cut or padded with zeros; by default its own size.
        axis: the axis.
        norm: "backward" (also None) scales the inverse transform by 1/n, "forward" this one, and
            "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with n elements along the axis.

    Raises:
        ValueError: `n` is not positive, `axis` is not one axis of `a`, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fft(jnp.array([1.0, 0.0]))
        Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return transform_along_one("fft", Kind.FFT, a, n, axis, norm)


@replayed
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse Fourier transform along one axis: `yⱼ = Σₖ aₖ exp(2πi jk / n) / n`.

    Args:
        a: an array, real or complex.
        n: the size to which the axis is cut or padded with zeros; by default its own size.
        axis: the axis.
        norm: "backward" (also None) scales this transform by 1/n, "forward" the other one, and
            "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with n elements along the axis.

    Raises:
        ValueError: `n` is not positive, `axis` is not one axis of `a`, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifft(jnp.array([2.0, 2.0]))
        Array([2.+0.j, 0.+0.j], dtype=complex64)
    """
    return transform_along_one("ifft", Kind.IFFT, a, n, axis, norm)


@replayed
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of real numbers along one axis, for non-negative frequencies.

    Args:
        a: a real array.
        n: the size to which the axis is cut or padded with zeros; by default its own size.
        axis: the axis.
        norm: "backward" (also None) scales the inverse transform by 1/n, "forward" this one, and
            "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with n // 2 + 1 elements along the axis.

    Raises:
        ValueError: `a` is complex, `n` is not positive, `axis` is not one axis of `a`, or `norm` is
            unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0]))
        Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return transform_along_one("rfft", Kind.RFFT, a, n, axis, norm)


@replayed
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real numbers along one axis whose `rfft` is `a`.

    Args:
        a: an array, real or complex.
        n: the size of the axis in the result; by default 2 (m - 1) for the size m in `a`.
        axis: the axis.
        norm: "backward" (also None) scales this transform by 1/n, "forward" the other one, and
            "ortho" both by 1/√n.

    Returns:
        A real array of the shape of `a`, with n elements along the axis.

    Raises:
        ValueError: `n` is not positive, `axis` is not one axis of `a`, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.irfft(jnp.array([1.0, 1.0]))
        Array([1., 0.], dtype=float32)
    """
    return transform_along_one("irfft", Kind.IRFFT, a, n, axis, norm)


@replayed
def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform along two axes.

    Args:
        a: an array with at least two axes, real or complex.
        s: the sizes to which the axes are cut or padded with zeros; by default their own sizes.
        axes: the two axes.
        norm: "backward" (also None) scales the inverse transform by 1/n for n elements, "forward"
            this one, and "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with the sizes `s` along the axes.

    Raises:
        ValueError: there are not two axes, `s` does not fit them, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("fft2", Kind.FFT, a, s, axes, norm)


@replayed
def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse Fourier transform along two axes.

    Args:
        a: an array with at least two axes, real or complex.
        s: the sizes to which the axes are cut or padded with zeros; by default their own sizes.
        axes: the two axes.
        norm: "backward" (also None) scales this transform by 1/n for n elements, "forward" the
            other one, and "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with the sizes `s` along the axes.

    Raises:
        ValueError: there are not two axes, `s` does not fit them, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("ifft2", Kind.IFFT, a, s, axes, norm)


@replayed
def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform of real numbers along two axes; the last axis is halved.

    Args:
        a: a real array with at least two axes.
        s: the sizes to which the axes are cut or padded with zeros; by default their own sizes.
        axes: the two axes.
        norm: "backward" (also None) scales the inverse transform by 1/n for n elements, "forward"
            this one, and "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with s[0] and s[1] // 2 + 1 elements along the axes.

    Raises:
        ValueError: `a` is complex, there are not two axes, `s` does not fit them, or `norm` is
            unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.rfft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("rfft2", Kind.RFFT, a, s, axes, norm)


@replayed
def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The real numbers along two axes whose `rfft2` is `a`.

    Args:
        a: an array with at least two axes, real or complex.
        s: the sizes of the axes in the result; by default their own sizes, but 2 (m - 1) for the
            last one of size m.
        axes: the two axes.
        norm: "backward" (also None) scales this transform by 1/n for n elements, "forward" the
            other one, and "ortho" both by 1/√n.

    Returns:
        A real array of the shape of `a`, with the sizes `s` along the axes.

    Raises:
        ValueError: there are not two axes, `s` does not fit them, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.irfft2(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along_two("irfft2", Kind.IRFFT, a, s, axes, norm)


@replayed
def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform along several axes.

    Args:
        a: an array, real or complex.
        s: the sizes to which the axes are cut or padded with zeros; by default their own sizes.
        axes: the axes; by default the last ones, one for each size in `s`, or all.
        norm: "backward" (also None) scales the inverse transform by 1/n for n elements, "forward"
            this one, and "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with the sizes `s` along the axes.

    Raises:
        ValueError: `s` does not fit the axes, an axis is named twice, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.fftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("fftn", Kind.FFT, a, s, axes, norm)


@replayed
def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse Fourier transform along several axes.

    Args:
        a: an array, real or complex.
        s: the sizes to which the axes are cut or padded with zeros; by default their own sizes.
        axes: the axes; by default the last ones, one for each size in `s`, or all.
        norm: "backward" (also None) scales this transform by 1/n for n elements, "forward" the
            other one, and "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with the sizes `s` along the axes.

    Raises:
        ValueError: `s` does not fit the axes, an axis is named twice, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ifftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("ifftn", Kind.IFFT, a, s, axes, norm)


@replayed
def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform of real numbers along several axes; the last axis is halved.

    Args:
        a: a real array.
        s: the sizes to which the axes are cut or padded with zeros; by default their own sizes.
        axes: the axes; by default the last ones, one for each size in `s`, or all.
        norm: "backward" (also None) scales the inverse transform by 1/n for n elements, "forward"
            this one, and "ortho" both by 1/√n.

    Returns:
        A complex array of the shape of `a`, with the sizes `s` along the axes, but s[-1] // 2 + 1
        along the last one.

    Raises:
        ValueError: `a` is complex, `s` does not fit the axes, an axis is named twice, or `norm` is
            unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.rfftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("rfftn", Kind.RFFT, a, s, axes, norm)


@replayed
def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The real numbers along several axes whose `rfftn` is `a`.

    Args:
        a: an array, real or complex.
        s: the sizes of the axes in the result; by default their own sizes, but 2 (m - 1) for the
            last one of size m.
        axes: the axes; by default the last ones, one for each size in `s`, or all.
        norm: "backward" (also None) scales this transform by 1/n for n elements, "forward" the
            other one, and "ortho" both by 1/√n.

    Returns:
        A real array of the shape of `a`, with the sizes `s` along the axes.

    Raises:
        ValueError: `s` does not fit the axes, an axis is named twice, or `norm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.irfftn(jnp.ones((2, 2))).shape
        (2, 2)
    """
    return transform_along("irfftn", Kind.IRFFT, a, s, axes, norm)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _swapped(norm):
    """The norm that scales the inverse transform as `norm` scales the transform itself."""
    check_norm(norm)
    return _SWAPPED[norm]


@replayed
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real Fourier transform of numbers with Hermitian symmetry, of which `a` is one half.

    Args:
        a: an array, real or complex.
        n: the size of the axis in the result; by default 2 (m - 1) for the size m in `a`.
        axis: the axis.
        norm: "backward" (also None), "ortho" or "forward", as for `fft`.

    Returns:
        A real array of the shape of `a`, with n elements along the axis.

    Raises:
        ValueError: `n` is not positive, `axis` is not one axis of `a`, or `norm` is unknown.

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
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """One half of the numbers with Hermitian symmetry whose Fourier transform is the real `a`.

    Args:
        a: a real array.
        n: the size to which the axis is cut or padded with zeros; by default its own size.
        axis: the axis.
        norm: "backward" (also None), "ortho" or "forward", as for `fft`.

    Returns:
        A complex array of the shape of `a`, with n // 2 + 1 elements along the axis.

    Raises:
        ValueError: `a` is complex, `n` is not positive, `axis` is not one axis of `a`, or `norm` is
            unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fft.ihfft(jnp.array([2.0, 0.0])).real
        Array([1., 1.], dtype=float32)
    """
    return lax.conj(transform_along_one("ihfft", Kind.RFFT, a, n, axis, _swapped(norm)))


__dir__ = listing(__name__)
claim(__name__, "gradix.numpy.")
