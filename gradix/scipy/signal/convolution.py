"""Convolution and correlation of arrays of any rank, directly and by Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax, numpy as jnp
from gradix._base.lazy import lazy_module
from gradix._core.dimensions.expression import has_counts, is_count, larger, smaller
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.axes import axes_of
from gradix.numpy.promotion import convert, promote_dtypes_inexact

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_fft = lazy_module("scipy.fft")
_places = lazy_module("gradix._api.counted.places")
_MODES = ("full", "same", "valid")


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: lax.PrecisionLike = None
) -> Array:
    """The convolution of two arrays of the same rank.

    Args:
        in1: an array.
        in2: an array of the same rank. Unless `mode` is "full", one of the two must not be smaller
            than the other along any axis.
        mode: "full" for all places where the arrays overlap, "same" for the middle part of them, of
            the shape of `in1`, or "valid" for the places where they overlap fully.
        method: "direct", "fft", or "auto", which is "direct".
        precision: the precision of the products, as for `lax.dot`; not used for "fft".

    Raises:
        ValueError: the ranks differ, an array is empty, or an option has an unknown value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
        Array([1., 3., 5., 3.], dtype=float32)
    """
    x, y = _arrays("convolve", in1, in2)
    return _convolve("convolve", x, y, mode, method, precision)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: lax.PrecisionLike = None
) -> Array:
    """The cross-correlation of two arrays: the convolution with `in2` reversed and conjugated.

    Args:
        in1: an array.
        in2: an array of the same rank.
        mode: "full", "same" or "valid", as for `convolve`.
        method: "direct", "fft", or "auto", which is "direct".
        precision: the precision of the products, as for `lax.dot`; not used for "fft".

    Raises:
        ValueError: the ranks differ, an array is empty, or an option has an unknown value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]), mode="valid")
        Array([2., 3.], dtype=float32)
    """
    x, y = _arrays("correlate", in1, in2)
    return _convolve("correlate", x, _reversed(y), mode, method, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: lax.PrecisionLike = None,
) -> Array:
    """The convolution of two matrices, with zeros around them.

    Args:
        in1, in2: matrices.
        mode: "full", "same" or "valid", as for `convolve`.
        boundary: must be "fill".
        fillvalue: must be 0.
        precision: the precision of the products, as for `lax.dot`.

    Raises:
        NotImplementedError: `boundary` or `fillvalue` has another value.
        ValueError: an array is not a matrix or is empty, or `mode` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> signal.convolve2d(jnp.ones((2, 2)), jnp.array([[1.0, 2.0]]))
        Array([[1., 3., 2.],
               [1., 3., 2.]], dtype=float32)
    """
    x, y = _matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _convolve("convolve2d", x, y, mode, "direct", precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: lax.PrecisionLike = None,
) -> Array:
    """The cross-correlation of two matrices, with zeros around them.

    Args:
        in1, in2: matrices.
        mode: "full", "same" or "valid", as for `convolve`.
        boundary: must be "fill".
        fillvalue: must be 0.
        precision: the precision of the products, as for `lax.dot`.

    Raises:
        NotImplementedError: `boundary` or `fillvalue` has another value.
        ValueError: an array is not a matrix or is empty, or `mode` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> signal.correlate2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 0.0]]), mode="valid")
        Array([[1.],
               [3.]], dtype=float32)
    """
    x, y = _matrices("correlate2d", in1, in2, boundary, fillvalue)
    out = _convolve("correlate2d", x, _reversed(y), mode, "direct", precision, later=1)
    # SciPy exchanges the two matrices if the second is larger, which conjugates the result.
    return lax.conj(out) if mode == "valid" and x.aval.size < y.aval.size and out.aval.dtype in COMPLEX else out


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: ArrayLike | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms.

    For long arrays it is faster than `convolve`, but less accurate.

    Args:
        in1: an array.
        in2: an array of the same rank.
        mode: "full", "same" or "valid", as for `convolve`.
        axes: the axes along which to convolve; by default all. The sizes of the other axes agree.

    Raises:
        ValueError: the shapes do not fit each other, or `mode` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import signal
        >>> signal.fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])).round(3)
        Array([1., 3., 5., 3.], dtype=float32)
    """
    _check_mode(mode)
    x, y = _arrays("fftconvolve", in1, in2)
    return _by_transforms(x, y, mode, axes)


# -- operands --------------------------------------------------------------------------------------


def _arrays(name: str, in1, in2) -> list:
    x, y = promote_dtypes_inexact(name, in1, in2)
    if x.aval.ndim != y.aval.ndim:
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got shapes {x.aval.shape} and "
            f"{y.aval.shape}. Add axes of size 1 by [..., None]."
        )
    return [convert(v, v.aval.dtype) for v in (x, y)]


def _matrices(name: str, in1, in2, boundary, fillvalue) -> list:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}() only supports boundary='fill', fillvalue=0; got {boundary!r} and {fillvalue!r}. "
            "Pad the first array by jnp.pad, and use mode='valid'."
        )
    x, y = promote_dtypes_inexact(name, in1, in2)
    if x.aval.ndim != 2 or y.aval.ndim != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs, got shapes {x.aval.shape} and {y.aval.shape}.")
    return [convert(v, v.aval.dtype) for v in (x, y)]


def _reversed(y):
    y = lax.rev(y, tuple(range(y.aval.ndim)))
    return lax.conj(y) if y.aval.dtype in COMPLEX else y


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {list(_MODES)}, got {mode!r}.")


def _first_is_larger(x, y, axes) -> bool:
    sizes = [(x.aval.shape[i], y.aval.shape[i]) for i in axes]
    if all(m >= n for m, n in sizes):
        return True
    if all(m <= n for m, n in sizes):
        return False
    raise ValueError(
        "One input must be smaller than the other in every dimension, unless mode='full'; got shapes "
        f"{x.aval.shape} and {y.aval.shape}."
    )


# -- the two methods -------------------------------------------------------------------------------


def _convolve(name: str, x, y, mode: str, method: str, precision, *, later: int = 0):
    """The convolution; for `y` of even length, mode "same" begins `later` elements further on."""
    _check_mode(mode)
    if method not in ("auto", "fft", "direct"):
        raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'.")
    axes = range(x.aval.ndim)
    if not x.aval.size or not y.aval.size:
        raise ValueError(
            f"zero-size arrays not supported in convolutions, got shapes {x.aval.shape} and "
            f"{y.aval.shape} in {name}. Pass arrays with elements."
        )
    if has_counts((*x.aval.shape, *y.aval.shape)) and method != "fft":
        return _of_counted(x, y, mode, precision, later)
    is_larger = _first_is_larger(x, y, axes) if mode != "full" else True
    if not x.aval.ndim:
        return x * y
    if method == "fft":
        return _by_transforms(x, y, mode, None)
    wanted, starts = x.aval.shape, [(n - 1 + later) // 2 for n in y.aval.shape]
    if x.aval.size < y.aval.size if mode == "full" else not is_larger:
        x, y = y, x
    return _directly(x, y, _padding(mode, x.aval.shape, y.aval.shape, wanted, starts), precision)


def _of_counted(x, y, mode: str, precision, later: int):
    """The convolution, where values decide sizes: the part of a mode of the full one."""
    kernel = y
    for axis, n in enumerate(y.aval.shape):
        kernel = _places.whole(kernel, axis) if is_count(n) else kernel  # zeros after it add nothing
    out = _directly(x, kernel, [(n - 1, n - 1) for n in kernel.aval.shape], precision)
    for axis, (n, m) in enumerate(zip(x.aval.shape, y.aval.shape)):
        long, short = larger(n, m), smaller(n, m)
        start, size = {
            "full": (0, larger(n + m - 1, 0)),
            "same": (larger(m - 1 + later, 0) // 2, n),
            "valid": (larger(short - 1, 0), long - short + 1),
        }[mode]
        out = lax.slice_in_dim(out, start, start + size, axis=axis)
    return out


def _padding(mode: str, shape, kernel, wanted, starts) -> list:
    """The padding of an array by which a kernel that slides over it gives the part of a mode."""
    if mode == "full":
        return [(n - 1, n - 1) for n in kernel]
    if mode == "valid":
        return [(0, 0)] * len(kernel)
    return [(n - 1 - s, w + s - m) for m, n, w, s in zip(shape, kernel, wanted, starts)]


def _directly(x, y, padding, precision):
    lhs, rhs = x[None, None], lax.rev(y, tuple(range(y.aval.ndim)))[None, None]
    out = lax.conv_general_dilated(lhs, rhs, (1,) * len(padding), padding, precision=precision)
    return lax.squeeze(out, (0, 1))


def _by_transforms(x, y, mode: str, axes):
    axes = axes_of(tuple(axes) if isinstance(axes, (list, tuple)) else axes, x.aval.ndim)
    rest = [i for i in range(x.aval.ndim) if i not in axes]
    if any(x.aval.shape[i] != y.aval.shape[i] for i in rest):
        raise ValueError(
            f"mapped axes must have same shape; got in1.shape={x.aval.shape} in2.shape={y.aval.shape} axes={axes}."
        )
    if mode == "valid" and not has_counts((*x.aval.shape, *y.aval.shape)):
        _first_is_larger(x, y, axes)
    shape = [m if i in rest else larger(m + n - 1, 0) for i, (m, n) in enumerate(zip(x.aval.shape, y.aval.shape))]
    if not x.aval.size or not y.aval.size:
        return _middle(jnp.zeros(shape, x.aval.dtype), mode, x.aval.shape, y.aval.shape, axes)
    if not axes:
        return x * y
    dtype = x.aval.dtype
    lengths = [_fft.next_fast_len(shape[i], dtype not in COMPLEX) if type(shape[i]) is int else shape[i] for i in axes]
    if dtype in COMPLEX:
        full = jnp.fft.ifftn(jnp.fft.fftn(x, lengths, axes) * jnp.fft.fftn(y, lengths, axes), lengths, axes)
    else:
        full = jnp.fft.irfftn(jnp.fft.rfftn(x, lengths, axes) * jnp.fft.rfftn(y, lengths, axes), lengths, axes)
    full = full[tuple([slice(0, n) for n in shape])].astype(dtype)
    return _middle(full, mode, x.aval.shape, y.aval.shape, axes)


def _middle(full, mode: str, shape, kernel, axes):
    """The part of the full convolution for a mode."""
    if mode == "full":
        return full
    for i in axes:
        have = full.aval.shape[i]
        long, short = larger(shape[i], kernel[i]), smaller(shape[i], kernel[i])
        want = shape[i] if mode == "same" else long - short + 1
        start = larger(have - want, 0) // 2
        full = lax.slice_in_dim(full, start, smaller(start + want, have), axis=i)
    return full
