"""Resampling of images: `resize` and `scale_and_translate`."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.listing import listing
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix._ops.canonicalization import canonical_shape
from gradix.numpy.promotion import as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """The method by which values between pixels are interpolated.

    Example:
        >>> from gradix import image
        >>> image.ResizeMethod.from_string("bicubic") is image.ResizeMethod.CUBIC
        True
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name, in lower case.

        Raises:
            ValueError: there is no such method.
        """
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}". Use one of {", ".join(_NAMES)}.')
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


# -- kernels: the weight of a pixel at distance x --------------------------------------------------


def _triangle(x):
    return jnp.maximum(0, 1 - x)


def _lanczos(radius: float, x):
    """sinc(x)·sinc(x / radius), and zero beyond the radius."""
    near = x > 1e-3
    safe = jnp.where(near, x, 1)
    y = radius * jnp.sin(np.pi * safe) * jnp.sin(np.pi * safe / radius) / (np.pi**2 * safe**2)
    return jnp.where(x > radius, 0, jnp.where(near, y, 1))


def _cubic(a: float, x):
    """R. Keys, "Cubic convolution interpolation for digital image processing" (1981), eq. 8."""
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x >= 2, 0, jnp.where(x >= 1, outer, inner))


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: lambda x: _lanczos(3.0, x),
    ResizeMethod.LANCZOS5: lambda x: _lanczos(5.0, x),
    ResizeMethod.CUBIC: lambda x: _cubic(-0.5, x),
    ResizeMethod.CUBIC_PYTORCH: lambda x: _cubic(-0.5, x),
}


# -- weights ---------------------------------------------------------------------------------------


def _weights(size: int, out: int, scale, translation, method: ResizeMethod, antialias: bool, *, dtype):
    """The weight of each input pixel (row) in each output pixel (column)."""
    inverse = 1 / scale
    # The position of each output pixel in the input.
    at = (jnp.arange(out, dtype=dtype) + 0.5) * inverse - translation * inverse - 0.5
    inside = (at >= -0.5) & (at <= size - 0.5)
    if method is ResizeMethod.AREA:
        return jnp.where(inside, _overlaps(size, at, inverse, dtype), 0)
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _clamped_cubic(size, at, dtype)
    # Kernels are wider where several input pixels become one.
    stretch = jnp.maximum(inverse, 1) if antialias else 1
    x = abs(at[None, :] - jnp.arange(size, dtype=dtype)[:, None]) / stretch
    weights = _KERNELS[method](x)
    total = weights.sum(0, keepdims=True)
    enough = abs(total) > 1000 * float(ml_dtypes.finfo(np.float32).eps)
    weights = jnp.where(enough, weights / jnp.where(total != 0, total, 1), 0)
    return jnp.where(inside, weights, 0)


def _overlaps(size: int, at, inverse, dtype):
    """The fraction of each output pixel (column) that is in each input pixel (row)."""
    left = jnp.arange(size, dtype=dtype)[:, None]
    low, high = at + 0.5 - 0.5 * inverse, at + 0.5 + 0.5 * inverse
    shared = jnp.maximum(jnp.minimum(high, left + 1) - jnp.maximum(low, left), 0)
    total = shared.sum(0, keepdims=True)
    return jnp.where(total > 0, shared / jnp.where(total > 0, total, 1), 0)


def _clamped_cubic(size: int, at, dtype):
    """The weights of four neighbours by Keys' kernel with a = -0.75, with edge pixels repeated."""
    at = at[None]
    first = jnp.floor(at)
    weights = jnp.zeros((size, at.shape[1]), dtype)
    places = jnp.arange(size, dtype=dtype)[:, None]
    for k in range(-1, 3):
        neighbour = jnp.clip(first + k, 0, size - 1)
        weights += jnp.where(places == neighbour, _cubic(-0.75, abs(at - (first + k))), 0)
    return weights


# -- functions -------------------------------------------------------------------------------------


def _method(method) -> ResizeMethod:
    if isinstance(method, ResizeMethod):
        return method
    if not isinstance(method, str):
        raise TypeError(
            f"method must be a ResizeMethod or the name of one, got {method!r} of type {type(method).__name__}."
        )
    return ResizeMethod.from_string(method)


def _image(name: str, image, shape) -> tuple:
    image, shape = as_operand(name, image), canonical_shape(shape)
    if len(shape) != image.ndim:
        raise ValueError(
            "shape must have length equal to the number of dimensions of the image; got "
            f"{shape} for an image of shape {image.shape}. Include the axes whose size is kept."
        )
    return image, shape


def _exact(dtype):
    """The dtype in which weights are computed."""
    return np.dtype("float64" if dtype in (np.float64, np.complex128) else "float32")


def _resampled(image, shape, axes, scale, translation, method, *, antialias, precision):
    dtype = image.dtype if image.dtype in dtypes.INEXACT else jnp.float32
    image, exact = image.astype(dtype), _exact(dtype)
    for i, axis in enumerate(axes):
        weights = _weights(image.shape[axis], shape[axis], scale[i], translation[i], method, antialias, dtype=exact)
        image = _weighted(image, weights.astype(dtype), axis, precision)
    return image


def _weighted(image, weights, axis: int, precision):
    """Weighted sums over an axis, by weights of shape (old size, new size)."""
    # For few leading axes, copies of the weights cost less than moving the axis.
    shape, (old, new) = image.shape, weights.shape
    if axis < len(shape) - 1 and all(type(n) is int for n in shape):
        stack = math.prod(shape[:axis])
        if stack * old * new <= image.size:
            copies = jnp.broadcast_to(weights.T, (stack, new, old))
            matrices = image.reshape(stack, old, math.prod(shape[axis + 1 :]))
            out = lax.dot_general(copies, matrices, (((2,), (1,)), ((0,), (0,))), precision=precision)
            return out.reshape(*shape[:axis], new, *shape[axis + 1 :])
    return jnp.moveaxis(jnp.tensordot(image, weights, ((axis,), (0,)), precision=precision), -1, axis)


def resize(
    image: ArrayLike,
    shape: int | Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: lax.PrecisionLike = lax.Precision.HIGHEST,
) -> Array:
    """An image resized to `shape`.

    Args:
        image: an array, of which every axis is resized whose size differs from that in `shape`.
        shape: the new size of each axis; an integer for an image of one axis.
        method: a `ResizeMethod`, or "nearest", "linear", "cubic", "cubic-pytorch", "lanczos3",
            "lanczos5" or "area". "cubic-pytorch" differs from "cubic" only without `antialias`: it
            repeats the pixels at the edges.
        antialias: whether to use wider kernels where the image becomes smaller.
        precision: the precision of products, as for `lax.dot_general`.

    Returns:
        An array of shape `shape`. Its dtype is that of `image` for "nearest" and for floating
        images, else float32.

    Raises:
        TypeError: `method` is neither a `ResizeMethod` nor a string.
        ValueError: the method is unknown, `shape` has another length than the image has axes, or the
            image has no pixels.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import image
        >>> image.resize(jnp.array([0.0, 4.0]), (4,), "linear")
        Array([0., 1., 3., 4.], dtype=float32)
    """
    image, shape = _image("resize", image, shape)
    method = _method(method)
    axes = [i for i, (m, n) in enumerate(zip(image.shape, shape)) if m != n]
    if method is ResizeMethod.NEAREST:
        for axis in axes:
            old, new = image.shape[axis], shape[axis]
            xp = np if type(old) is type(new) is int else jnp  # symbolic sizes are known when the program runs
            n, m = (xp.asarray(size).astype("f4") for size in (old, new))
            places = xp.floor((xp.arange(new).astype("f4") + np.float32(0.5)) * n / m)
            image = jnp.take(image, places.astype("i4"), axis, mode="clip")
        return image
    if not all(image.shape[a] for a in axes):
        raise ValueError(
            f"resize cannot make an image of shape {shape} from one without pixels, of shape {image.shape}."
        )
    scale = [jnp.asarray(shape[a] / image.shape[a], _exact(image.dtype)) for a in axes]
    return _resampled(image, shape, axes, scale, [0.0] * len(axes), method, antialias=antialias, precision=precision)


def scale_and_translate(
    image: ArrayLike,
    shape: int | Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: lax.PrecisionLike = lax.Precision.HIGHEST,
) -> Array:
    """An image scaled and translated: the value at `x` is moved to `x * scale + translation`.

    Pixel i covers the interval from i to i + 1. Outside of the image the result is zero.

    Args:
        image: an array.
        shape: the size of each axis of the result; an integer for an image of one axis.
        spatial_dims: the axes that are scaled and translated.
        scale: a factor for each of these axes, which may be traced.
        translation: an offset for each of these axes in pixels of the result, which may be traced.
        method: as for `resize`, except "nearest".
        antialias: whether to use wider kernels where the image becomes smaller.
        precision: the precision of products, as for `lax.dot_general`.

    Returns:
        An array of shape `shape`, of the dtype of `image` if it is floating, else of float32.

    Raises:
        TypeError: `method` is neither a `ResizeMethod` nor a string.
        ValueError: the method is unknown or "nearest", an axis is out of range, or the lengths of
            `shape`, `scale` or `translation` do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import image
        >>> image.scale_and_translate(jnp.array([1.0, 2.0]), (4,), (0,), jnp.ones(1), jnp.ones(1), "linear")
        Array([0., 1., 2., 0.], dtype=float32)
    """
    image, shape = _image("scale_and_translate", image, shape)
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(
            "Nearest neighbor resampling is not currently supported for scale_and_translate, because it has "
            "no derivative. Use method='linear', or resize."
        )
    axes = [index(a) for a in spatial_dims]
    for a in axes:
        if not -image.ndim <= a < image.ndim:
            raise ValueError(f"axis {a} of spatial_dims is out of bounds for array of dimension {image.ndim}.")
    scale, translation = (as_operand("scale_and_translate", scale), as_operand("scale_and_translate", translation))
    if scale.shape != (len(axes),) or translation.shape != (len(axes),):
        raise ValueError(
            f"scale_and_translate needs a scale and a translation for each of the {len(axes)} "
            f"spatial_dims, got shapes {scale.shape} and {translation.shape}."
        )
    return _resampled(
        image,
        shape,
        [a % image.ndim for a in axes],
        scale,
        translation,
        method,
        antialias=antialias,
        precision=precision,
    )


__dir__ = listing(__name__)
