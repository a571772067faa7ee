"""The exact remainder of a division: x - n·y, with the whole part n of the quotient.

It is exact where the products n·y are. For float32 they are computed in float64, which is exact for
quotients up to 2²⁸. For float64, y is divided into two parts, whose products are exact for quotients
up to 2²⁴; a step by y·2²⁴ before extends that to 2⁴⁸. Remainders that are not normal numbers are left
out, as XLA does not compute with such numbers.
"""

from __future__ import annotations

import math

import numpy as np

from gradix._platforms.cpu.vectors.vocabulary import Vectors

_F32, _F64 = np.dtype("float32"), np.dtype("float64")
_STEP = 24
# log₂ of the largest quotient covered, by the bits of the fraction
_MOST = {23: 28, 52: 2 * _STEP}


def _sizes(m, x, y):
    """The bits of |x| and |y|, which have the order of the numbers, with NaN above infinity."""
    return m.bits(x) & ~m.sign_bit, m.bits(y) & ~m.sign_bit


def _infinity(m) -> int:
    return int(np.full((), math.inf, m.dtype).view(m.word))


def remainder(m, x, y):
    a, b = _sizes(m, x, y)
    if m.fraction == 23:
        wide, n, by = (Vectors(m.em, _F64), m.convert(m.floats(a), _F64), m.convert(m.floats(b), _F64))
        rest = m.convert(n - wide.floor(n / by) * by, _F32)
    else:
        far = a - b > _STEP << m.fraction
        rest = _step(m, _step(m, m.floats(a), m.floats(m.where(far, b + (_STEP << m.fraction), b))), m.floats(b))
    rest = m.where(a < b, m.where(b > _infinity(m), math.nan, m.floats(a)), rest)
    return m.signed(rest, m.sign(x))


def _step(m, x, y):
    """The remainder for x ≤ 2²⁴ y.

    The nearest multiple of y is subtracted, since this rest has no more digits than y. A negative
    rest is then increased by y.
    """
    high = m.high(y)
    n = m.round(x / y)
    rest = (x - n * high) - n * (y - high)
    return m.where(rest < 0.0, rest + y, rest)


def is_odd(m, x, y):
    """Where `remainder` may be wrong: the quotient is too large, or the rest may be denormal."""
    a, b = _sizes(m, x, y)
    least = int(np.ldexp(np.finfo(m.dtype).tiny, m.fraction + 1).view(m.word))
    return ((a - b > _MOST[m.fraction] << m.fraction) | (b < least)) & (a < _infinity(m)) & (b > 0)
