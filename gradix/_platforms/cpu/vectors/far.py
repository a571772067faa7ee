"""Sine, cosine and tangent of float32 numbers of any size, after Payne and Hanek (1983).

|x| = m·2ᵉ with m of 24 bits, so x in turns is m·(2ᵉ/2π mod 1). A table holds that fraction for each exponent: 29 bits,
whose product with m is exact in float64, and 53 more.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.formulas import LoweredValue
from gradix._platforms.cpu.vectors.coefficients import COSINE, SINE, SINGLE
from gradix._platforms.cpu.vectors.vocabulary import Vectors

_F32, _F64 = np.dtype("float32"), np.dtype("float64")
_PI = 0x3243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89  # π·2²⁵⁶, to 2⁻²⁵⁶
# The biased exponents of 16384 and of the largest number, and the bits of a piece.
_FIRST, _LAST, _PIECE = 141, 254, 29


@functools.cache
def _table() -> np.ndarray:
    """2ᵉ/2π mod 1 in pieces, as [piece, exponent]."""
    turns = (1 << 512) // (2 * _PI)  # 2²⁵⁶/2π
    rows = np.empty((2, _LAST - _FIRST + 1))
    for i in range(rows.shape[1]):
        shift = _FIRST + i - 150  # for numbers m·2ᵉ with a whole number m
        fraction = (turns << shift if shift >= 0 else turns >> -shift) % (1 << 256)
        rows[0, i] = math.ldexp(fraction >> 256 - _PIECE, -_PIECE)
        rows[1, i] = math.ldexp(fraction % (1 << 256 - _PIECE), -256)
    return rows


def _look_up(m, row: np.ndarray, index: LoweredValue) -> LoweredValue:
    em, aval = m.em, index.value.aval
    values = em.op(
        "gather",
        make_aval(aval.shape, _F64),
        em.constant(row, make_aval(row.shape, _F64)),
        index.value,
        attrs=(
            "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
            f"index_vector_dim = {aval.ndim}>, slice_sizes = array<i64: 1>, indices_are_sorted = false"
        ),
    )
    return LoweredValue(em, values)


def _parts(m, x):
    """Sine and cosine of |x| less its nearest quarter turns, their number, float64 `Vectors`."""
    wide, bits = Vectors(m.em, _F64), m.bits(m.abs(x))
    index = (bits >> 23) - _FIRST
    index = m.where(index < 0, 0, index)
    whole = m.convert((bits & 0x7FFFFF) | 0x800000, _F64)
    first, second = [whole * _look_up(m, row, index) for row in _table()]
    first = first - wide.round(first)
    quarter, word = wide.nearest((first + second) * 4.0)
    r = ((first - quarter * 0.25) + second) * (2 * math.pi)
    z = r * r
    sine, cosine = wide.polynomial(SINE[SINGLE], z), wide.polynomial(COSINE[SINGLE], z)
    return r + r * z * sine, 1.0 + z * (z * cosine - 0.5), word, wide


def _sine(m, x, quarters: int):
    sine, cosine, word, wide = _parts(m, x)
    word = word + quarters
    out = wide.where((word << 63) < 0, cosine, sine)
    return m.convert(wide.signed(out, (word << 62) & wide.sign_bit), _F32)


def sine(m, x):
    return m.signed(_sine(m, x, 0), m.sign(x))


def cosine(m, x):
    return _sine(m, x, 1)


def tangent(m, x):
    sine, cosine, word, wide = _parts(m, x)
    swapped = (word << 63) < 0
    out = wide.where(swapped, -cosine, sine) / wide.where(swapped, sine, cosine)
    return m.signed(m.convert(out, _F32), m.sign(x))
