"""Sine, cosine and tangent of arguments up to a limit, and the inverse functions.

The reduction is Cody and Waite's: k·π/2 is subtracted in pieces whose products with k are exact. So
the rest is right to the last bit near multiples of π/2 too.
"""

from __future__ import annotations

import math

import numpy as np

from gradix._platforms.cpu.vectors.coefficients import (
    ARCSINE,
    ARCTANGENT,
    COSINE,
    HALF_PI,
    ROUGH_COSINE,
    ROUGH_HALF_PI,
    ROUGH_SINE,
    ROUGH_TANGENT,
    SINE,
    TANGENT,
)

# These are below 2¹⁵·π/2 and 2²⁶·π/2.
LIMITS = {np.dtype("float32"): 30000.0, np.dtype("float64"): 1e8}
# and (π - it) / it
_PI = {23: (3.1415927410125732, -2.7827534851704724e-08), 52: (math.pi, 3.8981718325193755e-17)}


def _reduced(m, x):
    """r + low = x - k·π/2, |r| ≤ π/4, and a word that ends with the bits of k.

    Rough results omit low.
    """
    k, word = m.nearest(x * (2 / math.pi))
    *first, fourth, fifth, last = HALF_PI[m.fraction]
    for piece in ROUGH_HALF_PI if m.rough else first:
        x = x - k * piece
    if m.rough:
        return x, None, word
    p, q = k * fourth, k * fifth
    less = x - p
    r = less - q
    return r, (((x - less) - p) + ((less - r) - q)) - k * last, word


def _sine(m, x, quarters: int):
    """sin(x + quarters·π/2)."""
    r, low, word = _reduced(m, x)
    z = r * r
    sine, half = r * z * m.polynomial(ROUGH_SINE if m.rough else SINE, z), 0.5 * z
    most = 1.0 - half
    cosine = z * z * m.polynomial(ROUGH_COSINE if m.rough else COSINE, z)
    if not m.rough:
        sine, cosine = low + sine, cosine - low * r + ((1.0 - most) - half)
    word = word + quarters if quarters else word
    swapped = (word << m.width - 1) < 0
    out = m.where(swapped, most, r) + m.where(swapped, cosine, sine)
    return m.signed(out, (word << m.width - 2) & m.sign_bit)


def sine(m, x):
    return m.odd(x, _sine(m, x, 0), m.abs(x))


def cosine(m, x):
    return _sine(m, x, 1)


def tangent(m, x):
    """tan r where k is even, else -1 / tan r."""
    r, low, word = _reduced(m, x)
    z = r * r
    small = r * z * m.polynomial(ROUGH_TANGENT if m.rough else TANGENT, z)
    small = small if m.rough else low * (1.0 + z) + small
    t = r + small
    odd = (word << m.width - 1) < 0
    out = m.where(odd, -1.0 / t, t)
    if m.rough:
        return m.odd(x, out, m.abs(x))
    rest = m.where(odd, small - (t - r), 0.0)
    return m.odd(x, out + out * out * rest, m.abs(x))


# -- inverse functions -----------------------------------------------------------------------------


def _turned(m, base, t, small):
    """base + t + small, for base 0, π/2 or π.

    |t| < base or base = 0, and |small| is far below |t|.
    """
    total = base + t
    return total + ((base - total) + t + (base * _PI[m.fraction][1] + small))


def arctangent(m, x):
    """arctan x, which beyond 1 is π/2 - arctan(1/x)."""
    size = m.abs(x)
    large = size > 1.0
    t = m.where(large, -1.0 / size, size)
    z = t * t
    base = m.where(large, m.number(_PI[m.fraction][0] / 2, x), 0.0)
    out = _turned(m, base, t, z * t * m.polynomial(ARCTANGENT, z))
    return m.odd(x, m.signed(out, m.sign(x)), size)


def arctangent2(m, y, x):
    """The angle of the smaller over the larger magnitude, from the axis nearest to the point."""
    height, width = m.abs(y), m.abs(x)
    steep = height > width
    longer, shorter = m.where(steep, height, width), m.where(steep, width, height)
    # inf / inf = 1
    t = m.where(shorter == longer, m.where(longer > 0.0, m.number(1.0, x), 0.0), shorter / longer)
    a, b = m.high(t), m.high(longer)
    rest = ((shorter - a * b) - a * (longer - b)) - (t - a) * longer  # division error
    low = m.where(longer > 0.0, m.where(longer < math.inf, rest / longer, 0.0), 0.0)
    pi = _PI[m.fraction][0]
    left = m.bits(x) < 0
    turn = m.sign(x) ^ m.where(steep, m.number(m.sign_bit, m.bits(x)), 0)
    z = t * t
    base = m.where(steep, m.number(pi / 2, x), m.where(left, m.number(pi, x), 0.0))
    out = _turned(m, base, m.signed(t, turn), m.signed(low + z * t * m.polynomial(ARCTANGENT, z), turn))
    return m.signed(out, m.sign(y))


def _half_angle(m, x):
    """t², |x|, and whether |x| > ½.

    There t = √((1 - |x|) / 2), the sine of half the angle with the cosine |x|; else t = |x|.
    """
    size = m.abs(x)
    large = size > 0.5
    return m.where(large, 0.5 - 0.5 * size, size * size), size, large


def arcsine(m, x):
    z, size, large = _half_angle(m, x)
    t = m.where(large, m.sqrt(z) * -2.0, size)
    base = m.where(large, m.number(_PI[m.fraction][0] / 2, x), 0.0)
    out = _turned(m, base, t, z * t * m.polynomial(ARCSINE, z))
    return m.odd(x, m.signed(out, m.sign(x)), size)


def arccosine(m, x):
    z, size, large = _half_angle(m, x)
    t = m.signed(m.where(large, m.sqrt(z) * 2.0, -size), m.sign(x))
    pi = _PI[m.fraction][0]
    base = m.where(large, m.where(m.bits(x) < 0, m.number(pi, x), 0.0), pi / 2)
    return _turned(m, base, t, z * t * m.polynomial(ARCSINE, z))
