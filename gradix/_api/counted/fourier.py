"""The mask rule of Fourier transforms, over axes whose number of points is known at run time.

A transform of n points is a convolution with a chirp (L. I. Bluestein, 1970; see `_ops/fft_open`),
done by transforms of M points, where M is the least power of two from 2N - 1 on for the greatest
size N.
"""

from __future__ import annotations

import numpy as np

from gradix._api.counted.masking import INDEX, fitted, rule
from gradix._ops.arithmetic import max as max_
from gradix._ops.basis import broadcast_in_dim, expand_axis, move_axis
from gradix._ops.clamp import clamp
from gradix._ops.complex_parts import conj, real
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota, full
from gradix._ops.fft import FftType, fft
from gradix._ops.fft_open import chirp
from gradix._ops.indexing.gather import gather
from gradix._ops.indexing.gather_dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from gradix._ops.select import choose
from gradix._ops.shape import reshape

_WORD = np.dtype("uint32")


@rule("fft")
def _fft(S, e, x):
    kind, lengths = FftType(e.params["fft_type"]), e.params["fft_lengths"]
    shape, out = e.invars[0].aval.shape, e.outvars[0].aval
    last, first = len(shape) - 1, len(shape) - len(lengths)
    if not any(map(S.is_open, lengths)):
        return S.same(e, [x])
    bounds = S.shape(out.shape)
    if 0 in bounds or 0 in x.aval.shape:
        return full(bounds, 0, out.dtype)
    x = S.filled(x, shape, range(first, len(shape)), 0)
    is_inverse = kind in (FftType.IFFT, FftType.IRFFT)
    if kind == FftType.RFFT:
        x = _along(S, convert_element_type(x, out.dtype), last, lengths[-1], False)
    for axis, n in zip(range(first, last), lengths):
        x = _along(S, x, axis, n, is_inverse)
    if kind == FftType.RFFT:
        return fitted(x, last, bounds[last])
    if kind == FftType.IRFFT:
        x = _whole_spectrum(S, x, lengths[-1])
    x = _along(S, x, last, lengths[-1], is_inverse)
    return real(x) if kind == FftType.IRFFT else x


def _along(S, x, axis: int, n, is_inverse: bool):
    """The transform of complex numbers along one axis of `n` points, which may be known or not."""
    last = x.aval.ndim - 1
    moved = move_axis(x, axis, last)
    if S.is_open(n):
        y = _by_chirp(conj(moved) if is_inverse else moved, _size(S, n))
        y = conj(y) / _as(y, _size(S, n)) if is_inverse else y
    else:
        y = fft(moved, FftType.IFFT if is_inverse else FftType.FFT, (n,))
    return move_axis(y, last, axis)


def _by_chirp(x, n):
    """The transform of the first n elements of rows, which zeros follow."""
    *rows, bound = x.aval.shape
    points = 1 << max(2 * bound - 2, 0).bit_length()
    flat = reshape(x, (int(np.prod(rows)), bound))
    chirps = reshape(chirp(broadcasted_iota(_WORD, (bound,), 0), n, x.aval.dtype), (1, bound))
    place = broadcasted_iota(_WORD, (points,), 0)
    distance = choose(place < points - place, points - place, place)
    kernel = conj(chirp(choose(distance < n, distance * 0, distance), n, x.aval.dtype))
    kernel = choose(expand_axis(distance < n, 1), kernel * 0, kernel)
    kernel = reshape(kernel, (1, points))
    product = _transform(fitted(flat * chirps, 1, points)) * _transform(kernel)
    y = fitted(fft(product, FftType.IFFT, (points,)), 1, bound) * chirps
    return reshape(y, x.aval.shape)


def _transform(x):
    return fft(x, FftType.FFT, (x.aval.shape[1],))


def _whole_spectrum(S, half, n):
    """The whole spectrum of a real array from one half, as X[n - k] is the conjugate of X[k]."""
    last, bound, count = half.aval.ndim - 1, S.bound(n), S.value(n)
    at = broadcasted_iota(INDEX, (bound,), 0)
    is_given, is_there = at < count // 2 + 1, at < count
    at = clamp(np.int32(0), choose(is_given, count - at, at), np.int32(half.aval.shape[last] - 1))
    rows = move_axis(half, last, 0)
    numbers = GatherDimensionNumbers(tuple(range(1, last + 1)), (0,), (0,))
    window = (1, *rows.aval.shape[1:])
    rows = gather(rows, expand_axis(at, 1), numbers, window, mode=GatherScatterMode.CLIP)
    whole = move_axis(rows, 0, last)
    is_given, is_there = [broadcast_in_dim(flags, whole.aval.shape, (last,)) for flags in (is_given, is_there)]
    return choose(is_there, whole * 0, choose(is_given, conj(whole), whole))


def _size(S, n):
    """The number of points, at least one, so that zeros stay zeros where there are none."""
    return max_(convert_element_type(S.value(n), _WORD), full((), 1, _WORD))


def _as(x, number):
    return convert_element_type(number, x.aval.dtype)
