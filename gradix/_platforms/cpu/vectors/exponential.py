"""Exponentials, logarithms, hyperbolic functions and their inverses."""

from __future__ import annotations

import math

from gradix._platforms.cpu.vectors.coefficients import ARCSINH, ARCTANH, EXP2, EXPM1, LOG1P, SINH

_LN2 = {
    23: (0.693145751953125, 1.4286068203094172e-06),  # the first of 16 and 32 bits, so that its
    52: (0.6931471803691238, 1.9082149292705877e-10),
}  # products with exponents are exact
_GREATEST = {23: 127, 52: 1023}  # exponent


def exp2(m, x):
    """2ᵏ·2ᶠ, f = x - k."""
    most = _GREATEST[m.fraction] + 1.0
    k, word = m.nearest(m.at_most(m.at_least(x, -most), most + 1.0))
    f = x - k
    out = m.times_power(1.0 + f * m.polynomial(EXP2, f), word)
    out = m.where(x < most, out, x * math.inf)
    # Denormal results become zero.
    return m.where(x < 2.0 - most, 0.0, out)


def exponent(m, x):
    """r = x - k·ln 2, |r| ≤ ln(2) / 2, and a word that ends with the bits of k."""
    k, word = m.nearest(x * (1 / math.log(2)))
    high, low = _LN2[m.fraction]
    return (x - k * high) - k * low, word


def expm1(m, x):
    """2ᵏ·(eʳ - 1) + (2ᵏ - 1), by half the power of two, which stays finite."""
    r, word = exponent(m, m.at_most(m.at_least(x, -m.fraction * 0.8), 710.0 if m.fraction == 52 else 89.0))
    part = r + r * r * m.polynomial(EXPM1, r)
    half = m.times_power(m.number(0.5, x), word)
    out = (half * part + (half - 0.5)) * 2.0
    return m.where(m.abs(x) < 2.0 ** -(m.fraction + 2), x, out)


def exponent_of_sum(m, x, low):
    """As `exponent`, for x + low with a small second part."""
    k, word = m.nearest(x * (1 / math.log(2)))
    high_ln2, low_ln2 = _LN2[m.fraction]
    return (x - k * high_ln2) + (low - k * low_ln2), word


def _quarter_exp(m, size):
    """e^size / 4."""
    r, word = exponent(m, m.at_most(size, 710.6 if m.fraction == 52 else 89.5))
    return m.times_power(m.number(0.25, size), word) * (1.0 + (r + r * r * m.polynomial(EXPM1, r)))


def sinh(m, x):
    size, z = m.abs(x), x * x
    quarter = _quarter_exp(m, size)
    large = (quarter - 0.0625 / quarter) * 2.0
    small = x + x * z * m.polynomial(SINH, z)
    return m.odd(x, m.where(size < 1.0, small, m.signed(large, m.sign(x))), size)


def cosh(m, x):
    quarter = _quarter_exp(m, m.abs(x))
    return (quarter + 0.0625 / quarter) * 2.0


# -- logarithms ------------------------------------------------------------------------------------


def logarithm(m, x, low=None, twice: bool = False):
    """The logarithm of `x`, of x + low, or of 2x, for positive normal numbers."""
    e, power, part = m.parted(x)
    f = part - 1.0
    if low is not None:  # beyond 2⁶⁰ it is negligible
        f = f + low * m.floats(m.where(power < 60 << m.fraction, m.one - power, 0))
    e = e + 1.0 if twice else e
    z = f * f
    high_ln2, low_ln2 = _LN2[m.fraction]
    return e * high_ln2 + (f + (f * z * m.polynomial(LOG1P, f) + (e * low_ln2 - 0.5 * z)))


def log(m, x):
    out = m.where(x < math.inf, logarithm(m, x), x)
    return m.where(x > 0.0, out, m.where(x == 0.0, m.number(-math.inf, x), math.nan))


def log1p(m, x):
    u, low = m.sum(x, m.number(1.0, x))
    out = m.where(x < math.inf, logarithm(m, u, low), x)
    out = m.where(u > 0.0, out, m.where(x == -1.0, m.number(-math.inf, x), math.nan))
    return m.where(m.abs(x) < 2.0 ** -(m.fraction + 2), x, out)


def arcsinh(m, x):
    """log(|x| + √(x² + 1)), by halves."""
    size, z = m.abs(x), x * x
    half = 0.5 * size
    root = m.where(size > 2.0**m.fraction, half, m.sqrt(0.25 * z + 0.25))
    u = half + root
    large = m.signed(logarithm(m, u, half - (u - root), twice=True), m.sign(x))
    out = m.where(size < 1.0, x + x * z * m.polynomial(ARCSINH, z), large)
    return m.where(size < math.inf, m.odd(x, out, size), x)


def arccosh(m, x):
    """log1p(t + √(t·(x + 1))), t = x - 1, and log(2x) where x is large."""
    t = x - 1.0
    large = x > 2.0**m.fraction
    v = t + m.where(large, 0.0, m.sqrt(t * (x + 1.0)))
    u, low = m.sum(v, m.number(1.0, x))
    out = logarithm(m, u, low) + m.where(large, m.number(math.log(2), x), 0.0)
    return m.where(x < math.inf, m.where(x >= 1.0, out, math.nan), x)


def arctanh(m, x):
    """log((1 + |x|) / (1 - |x|)) / 2."""
    size, z = m.abs(x), x * x
    large = m.signed(0.5 * logarithm(m, (1.0 + size) / (1.0 - size)), m.sign(x))
    out = m.where(size < 0.5, x + x * z * m.polynomial(ARCTANH, z), large)
    out = m.where(size < 1.0, out, m.where(size == 1.0, x * math.inf, math.nan))
    return m.odd(x, out, size)
