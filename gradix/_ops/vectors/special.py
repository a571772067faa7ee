"""Error functions, and the logarithm of the gamma function of float32."""
from __future__ import annotations

import math

import numpy as np

from gradix._ops.vectors.coefficients import EXPM1
from gradix._ops.vectors.exponential import exponent, exponent_of_sum, logarithm
from gradix._ops.vectors.vocabulary import Vectors

_F32, _F64 = np.dtype("float32"), np.dtype("float64")
# Fitted as in `coefficients`. Of float32, (x + c)·e^(x²)·erfc x = first + p((x - a) / (x + c)), a = 15/8, c = 3/2,
# ½ ≤ x ≤ 9.25: -27.7; erf x = x + x·p(x²), x ≤ ½: -29.3
_FIRST = 0.90625
_ERFC = (0.0030761957, -0.43495804, 0.071753234, 0.030186264, -0.0083927931, -0.0052619474, 0.0004697371, 0.0011025724,
         0.00013982442, -0.00016186769)
_LAST = 9.25                                          # beyond it erfc is below the least normal number
_ERF_SMALL = (0.12837917, -0.3761261, 0.11282853, -0.026758587, 0.004720211)
# Of float64, e^(x²)·erfc x = p((x - 9/4) / (x + 11/4)), ¾ ≤ x ≤ 5.95, where erf x counts: -57.4;
# erf x = x + x·p(x²), x ≤ ¾: -55.9
_TAIL = (0.2310872587303915, -0.44243251404374384, 0.35738317122454255, -0.21805873805029333, 0.09311385461745622,
         -0.021378466948578832, -0.0021006700470926707, 0.002878239318341368, -0.0002052398901546459,
         -0.0003808850781317109, 5.5932617113728316e-05, 8.014510509493108e-05, 1.5723985743670316e-05)
_ERF = (0.1283791670955126, -0.37612638903183615, 0.11283791670944261, -0.026866170642588286, 0.005223977595737714,
        -0.0008548324990076025, 0.00012055245104151149, -1.4923171795748857e-05, 1.641634912029233e-06,
        -1.5828431791119683e-07, 1.1101055349693865e-08)
# sin πf = f·p(f²), |f| ≤ 1/2: -54.5
_SINE_PI = (3.141592653589793, -5.167712780049927, 2.5501640398745193, -0.5992645292448137, 0.08214588555720834,
            -0.007370422714361333, 0.0004662660077179826, -2.1825932427317288e-05, 6.966549759456286e-07)
# Stirling's series, B₂ₖ / (2k·(2k - 1)): below 2⁻⁵⁰ beyond its terms where the argument is 9 or more
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def erf(m, x):
    """1 - e^(-x²)·p beyond ¾; of float64."""
    size = m.at_most(m.abs(x), 6.0)                                         # where 1 is left
    r, word = exponent(m, -(size * size))
    share = m.once((size - 2.25) / (size + 2.75))
    scaled = m.polynomial(_TAIL, share)
    tail = m.power_of_two(word) * (scaled + scaled * (r + r * r * m.polynomial(EXPM1, r)))
    return m.where(size < 0.75, x + x * m.polynomial(_ERF, x * x), m.signed(1.0 - tail, m.sign(x)))


def _tail(m, size):
    """erfc of sizes from ½ on: e^(-x²)·(first + p) / (x + c), of float32; the square and the inverse in two parts each."""
    high = m.high(size)
    rest, part = size - high, high + 1.5
    inverse = m.once(1.0 / (size + 1.5))
    short = m.floats(m.bits(inverse) & -(1 << 14))                          # its products with `part` are exact
    low = inverse * ((1.0 - short * part) - short * rest)
    r, word = exponent_of_sum(m, -(high * high), -(rest * (high + size)))
    growth = r + r * r * m.polynomial(EXPM1, r)                             # e^r - 1
    some = m.polynomial(_ERFC, (size - 1.875) * inverse, paired=True)
    some = some + (_FIRST + some) * growth
    out = short * _FIRST + (short * some + low * (_FIRST + some))
    return m.where(size >= _LAST, 0.0, out * m.power_of_two(word))


def erfc(m, x):
    """2 - erfc(-x) left of 0; 1 - erf(x) about it."""
    size = m.abs(x)
    out = _tail(m, size)
    out = m.where(x < 0.0, 2.0 - out, out)
    return m.where(size < 0.5, (1.0 - x) - x * m.polynomial(_ERF_SMALL, x * x), out)


def log_gamma(m, x):
    """In float64: Stirling's series where |x| ≥ 8, else for |x| + 8, less the logarithm of the product of what is between.

    Left of 0, Γ(x)·Γ(-x) = -π / (x·sin πx).
    """
    wide, size = Vectors(m.em, _F64), m.convert(m.abs(x), _F64)
    large = size >= 8.0
    y = wide.where(large, size, size + 8.0)
    product = size
    for i in range(1, 8):
        product = product * (size + float(i))
    product = wide.where(large, 1.0, product)
    rest = size - wide.round(size)
    sine = wide.abs(rest * wide.polynomial(_SINE_PI, rest * rest))
    left = m.convert(x, _F64) < 0.0
    share = wide.where(left, product * math.pi / (size * sine), product)
    inverse = wide.where(y > 0.0, 1.0 / y, y)
    series = inverse * wide.polynomial(_STIRLING, inverse * inverse)
    out = (y - 0.5) * logarithm(wide, y) - y + (0.5 * math.log(2 * math.pi) + series) - logarithm(wide, share)
    out = m.convert(wide.where(left, -out, out), _F32)
    pole = m.where(x <= 0.0, m.abs(m.round(x) - x), 1.0)
    out = m.where(pole == 0.0, math.inf, out)
    out = m.where(m.abs(x - 1.5) == 0.5, 0.0, out)
    return m.where(m.abs(x) < math.inf, out, m.abs(x))
