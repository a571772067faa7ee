"""Powers and roots."""

from __future__ import annotations

import math

import numpy as np

from gradix._platforms.cpu.vectors.vocabulary import Vectors

_F32, _F64, _I32 = np.dtype("float32"), np.dtype("float64"), np.dtype("int32")
# log₂((1 + t) / (1 - t)) = t·p(t²), t ≤ 0.172, to 2⁻³⁵·⁵; 2^f = p(f), |f| ≤ 1/2, to 2⁻²⁸·⁹: fitted
# as in `coefficients`
_LOG2 = (2.885390081789922, 0.9617966733777024, 0.5770835837304394, 0.4116726729120095, 0.3407319573580322)
_EXP2 = (
    1.0,
    0.6931472028559705,
    0.24022647913719417,
    0.05550332469558391,
    0.009618437345285598,
    0.001339887488858018,
    0.0001535336433967934,
)
# 4/3 of the bits of 1, less a constant that balances the errors
_CUBE_ROOT_GUESS = {23: 0x54A21D2A, 52: 0x553EF0FF289DD796}


def reciprocal_root(m, x):
    """1 / √x, in a form that XLA does not replace by an iteration of its own."""
    return 1.0 / m.where(x >= 0.0, m.sqrt(x), math.nan)


def cube_root(m, x):
    """The cube root x·y², with y = x^(-1/3) by Householder's iteration, and a step of Halley's."""
    size = m.abs(x)
    bits = m.bits(size)
    if m.fraction == 52:  # AVX2 converts only int32
        bits, out = m.convert(m.shift_right(bits, 32), _I32), 12
        number = m.convert(bits, _F64) * (-(2.0 ** (32 - out)) / 3)
    else:
        # `out`: as many bits as float exponents have
        number, out = m.convert(bits, _F32) * (-(2.0**-8) / 3), 8
    number = number + (_CUBE_ROOT_GUESS[m.fraction] / 2.0**out + 2.0**m.fraction)
    y = m.floats(m.bits(number) << out)
    for _ in range(1 if m.fraction == 23 else 2):
        e = 1.0 - (size * y) * (y * y)
        y = y + y * (e * (e * (2 / 9) + 1 / 3))
    t = m.high(size * (y * y))
    d = size / (t * t) - t
    out = t + d * (1 / 3 - d * y * (1 / 9))
    return m.signed(m.where(size > 0.0, m.where(size < math.inf, out, size), size), m.sign(x))


def power(m, x, y):
    """2^(y·log₂|x|) of float32 numbers, in float64, with the special cases of IEEE 754."""
    wide, size = Vectors(m.em, _F64), m.abs(x)
    e, _, part = m.parted(size)
    f, size64 = m.convert(part, _F64), m.convert(size, _F64)
    t = wide.where(f > 0.0, (f - 1.0) / (f + 1.0), 0.0)
    log = t * wide.polynomial(_LOG2, t * t) + m.convert(e, _F64)
    log = wide.where(size64 > 0.0, log, -math.inf)
    log = wide.where(size64 < math.inf, log, size64)
    # the limits are even numbers, which stand for the infinities
    y = m.at_most(m.at_least(y, -1e30), 1e30)
    p = wide.at_most(wide.at_least(log * m.convert(y, _F64), -300.0), 300.0)
    k, word = wide.nearest(p)
    out = m.convert(wide.polynomial(_EXP2, p - k) * wide.power_of_two(word), _F32)
    half = m.floor(y * 0.5)
    rest = y - (half + half)
    broken = m.where(size > 0.0, m.where(size < math.inf, math.nan, out), out)
    negative = m.where(rest == 1.0, -out, m.where(rest == 0.0, out, broken))
    out = m.where(m.bits(x) < 0, negative, out)
    return m.where(x == 1.0, 1.0, m.where(y == 0.0, 1.0, out))
