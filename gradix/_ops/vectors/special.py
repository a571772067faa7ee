"""Error functions, and the logarithm of the gamma function of float32."""
from __future__ import annotations

import math

import numpy as np

from gradix._ops.vectors.coefficients import DOUBLE, SINGLE
from gradix._ops.vectors.exponential import exponential_of_sum, logarithm
from gradix._ops.vectors.vocabulary import Vectors

_F32, _F64 = np.dtype("float32"), np.dtype("float64")
# Fitted as in `coefficients`. e^(x²)·erfc x = p((x - c) / (x + c)), c = 3, 0 ≤ x ≤ 9.3: -27; c = 4, x ≤ 26.6, by Chebyshev's
# interpolation: -50.5, the rounding of the coefficients where that is small.
_ERFC = {
    SINGLE: (0.17900115, -0.32623357, 0.2456037, -0.1501157, 0.07166723, -0.02439447, 0.004262584, 0.0007131,
             -0.0005852791, 3.7783717e-05, 5.7760204e-05),
    DOUBLE: (0.13699945762506138, -0.25906804876017164, 0.21871967891826488, -0.1642578166973092,
             0.10896317739890504, -0.06310781563973383, 0.03129905651868651, -0.012843946031409785,
             0.004060263623979416, -0.0007991268127212098, -2.1761722430371934e-05, 7.898317055572721e-05,
             -2.2556026877208916e-05, -1.903136175363865e-06, 2.9445194472685855e-06, -4.0901140390864696e-07,
             -2.840716266274652e-07, 9.679609720918476e-08, 2.5419594110122666e-08, -1.599515553230578e-08,
             -2.5248055143566273e-09, 2.3775097982214636e-09, 3.898707134128836e-10, -2.621309547100851e-10,
             -6.877203670397566e-11, 1.3462847299859882e-12),
}
_CENTRE = {SINGLE: 3.0, DOUBLE: 4.0}
_LAST = {SINGLE: 9.25, DOUBLE: 26.6}                  # beyond it erfc is below the least normal number
# erf x = x + x·p(x²), |x| ≤ 1/2 (3/4): -30.1, -55.9
_ERF = {
    SINGLE: (0.12837917, -0.3761262, 0.11283195, -0.026799267, 0.004911606, -0.00031133636),
    DOUBLE: (0.12837916709551256, -0.37612638903183354, 0.11283791670932575, -0.026866170640149553,
             0.005223977568919578, -0.000854832328003859, 0.00012055178524895877, -1.4921565644803511e-05,
             1.6392921687765224e-06, -1.5639170126191004e-07, 1.045096384604658e-08),
}
# sin πf = f·p(f²), |f| ≤ 1/2: -54.5
_SINE_PI = (3.141592653589793, -5.167712780049927, 2.5501640398745193, -0.5992645292448137, 0.08214588555720834,
            -0.007370422714361333, 0.0004662660077179826, -2.1825932427317288e-05, 6.966549759456286e-07)
# Stirling's series, B₂ₖ / (2k·(2k - 1)): below 2⁻⁵⁰ beyond its terms where the argument is 9 or more
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _tail(m, size):
    """erfc of sizes: e^(-x²)·p, the square in two parts."""
    high, centre = m.high(size), _CENTRE[m.fraction]
    power = exponential_of_sum(m, -(high * high), (high - size) * (high + size))
    inside = size < _LAST[m.fraction]
    share = m.where(inside, (size - centre) / (size + centre), 1.0)
    return m.where(inside, power * m.polynomial(_ERFC, share), 0.0)


def erf(m, x):
    size = m.abs(x)
    out = m.where(size < 0.75, x + x * m.polynomial(_ERF, x * x), m.signed(1.0 - _tail(m, size), m.sign(x)))
    return m.where(x == x, out, x)


def erfc(m, x):
    """2 - erfc(-x) left of 0; 1 - erf(x) about it."""
    size = m.abs(x)
    out = _tail(m, size)
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
