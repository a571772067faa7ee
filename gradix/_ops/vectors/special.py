"""The complementary error function and the logarithm of the gamma function, of float32."""
from __future__ import annotations

import math

import numpy as np

from gradix._ops.vectors.exponential import exponential_of_sum, logarithm
from gradix._ops.vectors.vocabulary import Vectors

_F32, _F64 = np.dtype("float32"), np.dtype("float64")
# Fitted as in `coefficients`: e^(x²)·erfc x = p((x - 3) / (x + 3)), 0 ≤ x ≤ 9.3, to 2⁻²⁷; erf x = x + x·p(x²), |x| ≤ ½, to
# 2⁻³⁰; sin πf = f·p(f²), |f| ≤ 1/2, to 2⁻⁵⁴·⁵.
_ERFC = (0.17900115, -0.32623357, 0.2456037, -0.1501157, 0.07166723, -0.02439447, 0.004262584, 0.0007131,
         -0.0005852791, 3.7783717e-05, 5.7760204e-05)
_ERF = (0.12837917, -0.3761262, 0.11283195, -0.026799267, 0.004911606, -0.00031133636)
_SINE_PI = (3.141592653589793, -5.167712780049927, 2.5501640398745193, -0.5992645292448137, 0.08214588555720834,
            -0.007370422714361333, 0.0004662660077179826, -2.1825932427317288e-05, 6.966549759456286e-07)
# Stirling's series, B₂ₖ / (2k·(2k - 1)): below 2⁻⁵⁰ beyond its terms where the argument is 9 or more
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def erfc(m, x):
    """e^(-x²)·p, the square in two parts; 2 - erfc(-x) left of 0; 1 - erf(x) about it."""
    size = m.abs(x)
    high = m.high(size)
    power = exponential_of_sum(m, -(high * high), (high - size) * (high + size))
    share = (size - 3.0) / (size + 3.0)
    out = m.where(size < 9.25, power * m.polynomial(_ERFC, m.where(size < 9.25, share, 1.0)), 0.0)
    out = m.where(x < 0.0, 2.0 - out, out)
    out = m.where(size < 0.5, (1.0 - x) - x * m.polynomial(_ERF, x * x), out)
    return m.where(x == x, out, x)


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
