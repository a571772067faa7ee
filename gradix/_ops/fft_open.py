"""Fourier transforms over axes of symbolic size, for which the compiler has no operation.

A transform of n points is a convolution with a chirp (L. I. Bluestein, "A linear filtering approach
to the computation of discrete Fourier transform", IEEE Trans. Audio Electroacoust. 18, 1970), done
by transforms of M points, the least power of two from 2n - 1 on. Those run in a loop of log2 M
steps in the order of T. G. Stockham ("High-speed convolution and correlation", AFIPS 1966). M is a
value of the program, and no dimension. So arrays have 4n rows, which is more than M, and the rows
from M on are ignored.
"""

from __future__ import annotations

import math

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.basis import expand_axis, move_axis
from gradix._ops.bitwise import clz
from gradix._ops.complex_parts import complex, conj, real
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.indexing.dynamic_slicing import dynamic_slice
from gradix._ops.indexing.gather import gather
from gradix._ops.indexing.gather_dimension_numbers import GatherDimensionNumbers
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.joining import concatenate
from gradix._ops.operands import scalar_like
from gradix._ops.select import choose
from gradix._ops.shape import reshape, rev
from gradix._ops.trigonometric import cos, sin

_WORD, _INDEX = np.dtype("uint32"), np.dtype("int32")
# Multiply by two bits of a factor at a time, so that products of sizes stay below 2³².
_DIGITS = range(28, -1, -2)


def emit_open(em, out, x, kind: str, lengths):
    """The Fourier transform of a value over its last axes, some of them of symbolic size."""
    first, last = x.aval.ndim - len(lengths), x.aval.ndim - 1
    others = list(zip(range(first, last), lengths))
    if kind == "RFFT":
        x = em.expand(lambda v: convert_element_type(v, out.dtype), x)[0]
        x = _along(em, x, last, lengths[-1], False)
        x = em.expand(lambda v: slice_in_dim(v, 0, out.shape[-1], axis=last), x)[0]
    for axis, n in others:
        x = _along(em, x, axis, n, kind in ("IFFT", "IRFFT"))
    if kind == "IRFFT":
        x = em.expand(lambda v: _whole_spectrum(v, lengths[-1]), x)[0]
    if kind != "RFFT":
        x = _along(em, x, last, lengths[-1], kind != "FFT")
    return em.expand(real, x)[0] if kind == "IRFFT" else x


def _whole_spectrum(half, n):
    """The whole spectrum of a real array from one half, as X[n - k] is the conjugate of X[k]."""
    axis, m = half.aval.ndim - 1, half.aval.shape[-1]
    return concatenate([half, rev(conj(slice_in_dim(half, 1, n - m + 1, axis=axis)), (axis,))], axis)


def _along(em, x, axis: int, n, inverse: bool):
    """The transform of complex numbers along one axis, of known size or not."""
    last = x.aval.ndim - 1
    moved = em.expand(lambda v: move_axis(v, axis, last), x)[0]
    if type(n) is int:
        y = emit_fft(em, moved.aval, moved, "IFFT" if inverse else "FFT", (n,))
    else:
        both = _power_of_two(em, em.expand(lambda v: _beside_kernel(conj(v) if inverse else v, n), moved)[0], n)
        product = _power_of_two(em, em.expand(_conjugate_product, both)[0], n)
        y = em.expand(lambda v: _finished(v, n, moved.aval.shape, inverse), product)[0]
    return em.expand(lambda v: move_axis(v, last, axis), y)[0]


def _beside_kernel(x, n):
    """Rows x[k] w[k] with w[k] = exp(-πi k²/n), then the kernel 1/w[k], at M - k too; else zeros."""
    rows = move_axis(reshape(x, (math.prod(x.aval.shape[:-1]), n)), 1, 0)
    dtype = rows.aval.dtype
    padded = pad(rows * chirp(_places(n), _value(n), dtype), scalar_like(rows, 0), [(0, 3 * n, 0), (0, 0, 0)])
    place, points, size = _places(4 * n), _points(n), _value(n)
    # beyond M this wraps to large numbers
    distance = choose(place < points - place, points - place, place)
    kernel = conj(chirp(choose(distance < size, distance * 0, distance), size, dtype))
    column = choose(expand_axis((distance < size) & (place < points), 1), kernel * 0, kernel)
    return concatenate([padded, column], 1)


def _conjugate_product(both):
    columns = both.aval.shape[1] - 1
    return conj(slice_in_dim(both, 0, columns, axis=1) * slice_in_dim(both, columns, columns + 1, axis=1))


def _finished(product, n, shape, inverse: bool):
    """w[k] times the convolution, whose conjugate times M this is."""
    convolved = conj(slice_in_dim(product, 0, n, axis=0))
    y = convolved * chirp(_places(n), _value(n), product.aval.dtype) / _as(product, _points(n))
    return reshape(move_axis(conj(y) / _as(y, _value(n)) if inverse else y, 0, 1), shape)


def _power_of_two(em, x, n):
    """The transforms of the first M rows of an array of 4n rows."""
    start, steps = em.constant(0, make_aval((), _WORD)), em.expand(lambda: [_log_points(n)])[0]

    def turn(t, y):
        return em.expand(lambda t, y: [t + 1, _step(t, y, n)], t, y)

    return em.while_loop([start, x], lambda t, y: [em.compare(t, steps, "LT")], turn)[1]


def _step(t, y, n):
    """One step, with m = 2ᵗ and a = jm + k.

    Row 2jm + k is c[a] + c[a + M/2]; m rows later is exp(-2πi jm/M) times their difference.
    """
    half, m = _points(n) >> 1, scalar_like(t, 1) << t
    near = slice_in_dim(y, 0, 2 * n, axis=0)
    far = dynamic_slice(y, (convert_element_type(half, _INDEX), np.int32(0)), near.aval.shape)
    place = _places(2 * n)
    angle = -np.pi * _as(real(near), place - (place & (m - 1))) / _as(real(near), half)
    both = concatenate([near + far, _unit(angle) * (near - far)], 0)
    row = _places(4 * n)
    block = row >> t
    source = (block >> 1) * m + (row & (m - 1)) + (block & 1) * _value(2 * n)
    rows = GatherDimensionNumbers((1,), (0,), (0,))
    return gather(both, expand_axis(convert_element_type(source, _INDEX), 1), rows, (1, y.aval.shape[1]))


def chirp(k, n, dtype):
    """A column of exp(-πi k²/n) for unsigned integers; k² is taken modulo 2n in whole numbers."""
    period, square = n * 2, k * 0
    for digit in _DIGITS:
        square = (square * 4 + (k >> digit & 3) * k) % period
    turned = convert_element_type(square, dtypes.real_dtype(dtype)) / convert_element_type(n, dtypes.real_dtype(dtype))
    return _unit(-np.pi * choose(turned > 1, turned, turned - 2))


def _unit(angle):
    """A column of the numbers of these angles."""
    return expand_axis(complex(cos(angle), sin(angle)), 1)


def _places(n):
    return broadcasted_iota(_WORD, (n,), 0)


def _value(n):
    return convert_element_type(dim_as_value(n), _WORD)


def _log_points(n):
    return _value(n) * 0 + 32 - clz(2 * _value(n) - 2)


def _points(n):
    """M, the least power of two that is at least 2n - 1."""
    return (_value(n) * 0 + 1) << _log_points(n)


def _as(x, number):
    """A number, or an array of numbers, in the dtype of `x`."""
    return convert_element_type(number, x.aval.dtype)


def emit_fft(em, out, x, kind: str, lengths):
    """XLA's transform over the last axes; `kind` is FFT, IFFT, RFFT or IRFFT."""
    attrs = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {em.i64_array(lengths)}"
    return em.op("fft", out, x, attrs=attrs)
