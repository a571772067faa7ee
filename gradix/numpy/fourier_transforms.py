"""Fourier transforms along any axes, with NumPy's lengths and norms; `fft.py` gives them names."""

from __future__ import annotations

import math

import numpy as np

from gradix import lax
from gradix._core import dtypes
from gradix._core.dimensions.expression import as_dim, is_count, is_symbolic_shape, larger
from gradix._core.dtypes import COMPLEX
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand, convert, inexact_operand

Kind = lax.FftType
_INVERSE = {Kind.IFFT, Kind.IRFFT}
_SINGLE = frozenset([np.dtype("float32"), np.dtype("float64"), *COMPLEX])


def _operand(name: str, a, kind):
    x = inexact_operand(name, a)
    if x.aval.dtype not in _SINGLE:
        x = convert(x, np.dtype("float32"))
    if kind == Kind.RFFT:
        if x.aval.dtype in COMPLEX:
            raise ValueError(f"fft.{name}: a must be real, got dtype {x.aval.dtype}. Use fft, or give the real part.")
        return x
    return convert(x, dtypes.to_complex_dtype(x.aval.dtype))


def _resized(x, axes, lengths):
    """`x` cut or padded with zeros to `lengths` along `axes`."""
    for axis, n in zip(axes, lengths):
        have = x.aval.shape[axis]
        if type(have) is type(n) is int and have > n:
            x = lax.slice_in_dim(x, 0, n, axis=axis)
    config = [(0, 0, 0)] * x.aval.ndim
    for axis, n in zip(axes, lengths):
        config[axis] = (0, n - x.aval.shape[axis], 0)
    return lax.pad(x, np.zeros((), x.aval.dtype), config) if any(c[1] != 0 for c in config) else x


def check_norm(norm) -> None:
    """Raise ValueError for a norm that is not one of NumPy's."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"norm must be 'backward', 'ortho', 'forward' or None, got {norm!r}.")


def transform_along(name: str, kind, a, s, axes, norm):
    """The transform of an array along several axes; `name` is the user's function in messages."""
    check_norm(norm)
    x = _operand(name, a, kind)
    ndim = x.aval.ndim
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    axes = tuple([axis_of(axis, ndim) for axis in axes])
    if len(set(axes)) != len(axes):
        raise ValueError(f"fft.{name}: axes={list(axes)} names an axis twice. Name each axis once.")
    if s is not None and len(s) != len(axes):
        raise ValueError(f"fft.{name}: s must have a size for each of {len(axes)} axes, got {s}.")
    if not axes:
        return x
    lengths = _lengths(name, kind, x.aval.shape, s, axes)
    if 0 in lengths:
        return _empty(kind, x, axes, lengths)
    given = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == Kind.IRFFT else lengths
    x = _resized(x, axes, given)
    return _scaled(_along(kind, x, axes, lengths), kind, lengths, norm)


def _empty(kind, x, axes, lengths):
    """The transform of an array that is empty along an axis; it is empty too."""
    shape = list(x.aval.shape)
    for axis, n in zip(axes, lengths):
        shape[axis] = n
    if kind == Kind.RFFT:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    real = dtypes.real_dtype(x.aval.dtype)
    return lax.full(tuple(shape), 0, real if kind == Kind.IRFFT else dtypes.joined_dtype(real, np.complex64))


def _lengths(name: str, kind, shape, s, axes) -> tuple:
    if s is None:
        lengths = [shape[i] for i in axes]
        if kind == Kind.IRFFT:
            lengths[-1] = 2 * (lengths[-1] - 1)
    else:
        lengths = [shape[i] if n is None else as_dim(n) for n, i in zip(s, axes)]
    if any(map(is_count, lengths)):  # there may be no elements, of which the transform is empty
        return tuple([larger(n, 0) for n in lengths])
    if s is None and any(n < 1 for n in lengths) and not (kind == Kind.RFFT and not lengths[-1]):
        return tuple([max(n, 0) for n in lengths])
    if any(n < 1 for n in lengths):
        raise ValueError(f"fft.{name}: the sizes of the transform must be positive, got {lengths} for shape {shape}.")
    return tuple(lengths)


def _along(kind, x, axes, lengths):
    """The transform along any axes; XLA takes at most the last three, so it may take several."""
    if len(axes) > 3:
        if kind == Kind.RFFT:
            return _along(Kind.FFT, _along(kind, x, axes[-3:], lengths[-3:]), axes[:-3], lengths[:-3])
        first = Kind.FFT if kind == Kind.FFT else Kind.IFFT
        return _along(kind, _along(first, x, axes[:-3], lengths[:-3]), axes[-3:], lengths[-3:])
    rest = tuple([i for i in range(x.aval.ndim) if i not in axes])
    order = (*rest, *axes)
    if order == tuple(range(x.aval.ndim)):
        return lax.fft(x, kind, lengths)
    back = [0] * len(order)
    for i, p in enumerate(order):
        back[p] = i
    return lax.transpose(lax.fft(lax.transpose(x, order), kind, lengths), tuple(back))


def _scaled(y, kind, lengths, norm):
    if norm in (None, "backward"):
        return y
    if is_symbolic_shape(lengths):
        size = math.prod(lengths)
        size = larger(size, 1) if is_count(size) else size
        size = convert(as_operand("fft", size), dtypes.real_dtype(y.aval.dtype))
    else:
        size = float(math.prod(lengths))
    factor = size**0.5 if norm == "ortho" else size
    return y * (factor if kind in _INVERSE else 1 / factor)


def transform_along_one(name: str, kind, a, n, axis, norm):
    """The transform along one axis."""
    if isinstance(axis, (tuple, list)):
        raise ValueError(f"fft.{name}: axis must be one integer, got {axis}. Use fft.{name}n for several axes.")
    return transform_along(name, kind, a, None if n is None else (n,), (axis,), norm)


def transform_along_two(name: str, kind, a, s, axes, norm):
    """The transform along two axes."""
    if len(axes) != 2:
        raise ValueError(f"fft.{name}: axes must be two, got {axes}. Use fft.{name[:-1]}n for more axes.")
    return transform_along(name, kind, a, s, axes, norm)
