"""Error functions and their inverse, and the logarithm of the gamma function of float32."""

from __future__ import annotations

import math

import numpy as np

from gradix._platforms.cpu.vectors.coefficients import EXPM1
from gradix._platforms.cpu.vectors.exponential import exponent, exponent_of_sum, logarithm
from gradix._platforms.cpu.vectors.vocabulary import Vectors

_F32, _F64 = np.dtype("float32"), np.dtype("float64")
# Fitted as in `coefficients`. Of float32, (x + c)·e^(x²)·erfc x = first + p((x - a) / (x + c)), a =
# 15/8, c = 3/2, ½ ≤ x ≤ 9.25: -27.7; erf x = x + x·p(x²), x ≤ ½: -29.3
_FIRST = 0.90625
_ERFC = (
    0.0030761957,
    -0.43495804,
    0.071753234,
    0.030186264,
    -0.0083927931,
    -0.0052619474,
    0.0004697371,
    0.0011025724,
    0.00013982442,
    -0.00016186769,
)
# Beyond this, erfc is below the least normal number.
_LAST = 9.25
_ERF_SMALL = (0.12837917, -0.3761261, 0.11282853, -0.026758587, 0.004720211)
# Of float64, e^(x²)·erfc x = p((x - 9/4) / (x + 11/4)), ¾ ≤ x ≤ 5.95, where erf x counts: -57.4;
# erf x = x + x·p(x²), x ≤ ¾: -55.9
_TAIL = (
    0.2310872587303915,
    -0.44243251404374384,
    0.35738317122454255,
    -0.21805873805029333,
    0.09311385461745622,
    -0.021378466948578832,
    -0.0021006700470926707,
    0.002878239318341368,
    -0.0002052398901546459,
    -0.0003808850781317109,
    5.5932617113728316e-05,
    8.014510509493108e-05,
    1.5723985743670316e-05,
)
_ERF = (
    0.1283791670955126,
    -0.37612638903183615,
    0.11283791670944261,
    -0.026866170642588286,
    0.005223977595737714,
    -0.0008548324990076025,
    0.00012055245104151149,
    -1.4923171795748857e-05,
    1.641634912029233e-06,
    -1.5828431791119683e-07,
    1.1101055349693865e-08,
)
# Of float64, erf⁻¹ x = x·p with w = -log(1 - x²): p(w - 25/8), w < 25/4; p(√w - 13/4), w < 16; p(√w - 5), w < 37:
# -54.6, -54.9, -53.5
_INVERSE = (
    1.6536545626831027,
    0.24015818242558798,
    -0.006033670871427344,
    -0.0007407025341518785,
    0.00018673420802231406,
    -1.3882523400191554e-05,
    -1.365469181235941e-06,
    4.2347882351532404e-07,
    -2.907038538604497e-08,
    -4.112664543473583e-09,
    1.0512196262939147e-09,
    -5.414145953899208e-11,
    -1.2977316494341754e-11,
    2.630133241748227e-12,
    -8.110308864527334e-14,
    -3.995467862616626e-14,
    6.586652455336221e-15,
    -4.6543966545063784e-17,
    -1.2943863016840417e-16,
    1.6004445604557624e-17,
    1.1190780288022502e-18,
    -3.669071011058283e-19,
    -5.471652577635114e-22,
    3.532441966136639e-21,
)
_INVERSE_TAIL = (
    3.0838856104922208,
    1.0052589676941648,
    0.005370914553542364,
    -0.0037512085081925516,
    0.0024914420981676576,
    -0.0016882755358900755,
    0.0009532893443525683,
    -0.0003550378126965907,
    2.403142021404503e-05,
    6.828713689494303e-05,
    -4.7319769123447614e-05,
    1.2464847023072256e-05,
    2.9279737676389157e-06,
    -3.985015837247339e-06,
    1.494940295044717e-06,
    -2.898775915000742e-08,
    -2.679032681792687e-07,
    1.3298297318148338e-07,
    -6.179156695602636e-10,
    -1.588255480834522e-08,
)
_INVERSE_END = (
    4.849906401408584,
    1.0103004648645424,
    -0.00013871931836500231,
    -0.00021503011971007018,
    7.599527746259312e-05,
    -1.9681772363672924e-05,
    4.526059856429474e-06,
    -9.930184831181853e-07,
    2.290139450599089e-07,
    -6.759401666983252e-08,
    2.913061526902077e-08,
    -1.51812616919171e-08,
    7.634675660638013e-09,
    -3.5526652307681273e-09,
    1.4965186055843409e-09,
    -3.903409943324114e-10,
    -2.4393470597010572e-11,
    3.164472386472978e-11,
)
# sin πf = f·p(f²), |f| ≤ 1/2: -54.5
_SINE_PI = (
    3.141592653589793,
    -5.167712780049927,
    2.5501640398745193,
    -0.5992645292448137,
    0.08214588555720834,
    -0.007370422714361333,
    0.0004662660077179826,
    -2.1825932427317288e-05,
    6.966549759456286e-07,
)
# Stirling's series, B₂ₖ / (2k·(2k - 1)): below 2⁻⁵⁰ beyond its terms where the argument is 9 or
# more
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def erf(m, x):
    """erf in float64; beyond ¾ it is 1 - e^(-x²)·p."""
    size = m.at_most(m.abs(x), 6.0)  # where the result is 1
    r, word = exponent(m, -(size * size))
    share = m.once((size - 2.25) / (size + 2.75))
    scaled = m.polynomial(_TAIL, share)
    tail = m.power_of_two(word) * (scaled + scaled * (r + r * r * m.polynomial(EXPM1, r)))
    return m.where(size < 0.75, x + x * m.polynomial(_ERF, x * x), m.signed(1.0 - tail, m.sign(x)))


def _tail(m, size):
    """erfc in float32 from ½ on: e^(-x²)·(first + p) / (x + c); square and inverse in two parts."""
    high = m.high(size)
    rest, part = size - high, high + 1.5
    inverse = m.once(1.0 / (size + 1.5))
    # The products of `short` with `part` are exact.
    short = m.floats(m.bits(inverse) & -(1 << 14))
    low = inverse * ((1.0 - short * part) - short * rest)
    r, word = exponent_of_sum(m, -(high * high), -(rest * (high + size)))
    growth = r + r * r * m.polynomial(EXPM1, r)  # e^r - 1
    some = m.polynomial(_ERFC, (size - 1.875) * inverse, paired=True)
    some = some + (_FIRST + some) * growth
    out = short * _FIRST + (short * some + low * (_FIRST + some))
    return m.where(size >= _LAST, 0.0, out * m.power_of_two(word))


def erfc(m, x):
    """erfc, which is 2 - erfc(-x) for negative x, and 1 - erf(x) near 0."""
    size = m.abs(x)
    out = _tail(m, size)
    out = m.where(x < 0.0, 2.0 - out, out)
    return m.where(size < 0.5, (1.0 - x) - x * m.polynomial(_ERF_SMALL, x * x), out)


def erf_inv(m, x):
    """erf⁻¹ in float64, by powers of w = -log(1 - x²) or √w (Giles, GPU Computing Gems 2, 2010)."""
    size = m.abs(x)
    w = -logarithm(m, (1.0 - x) * (1.0 + x))
    root = m.once(m.sqrt(w))
    p = m.where(w < 16.0, m.polynomial(_INVERSE_TAIL, root - 3.25), m.polynomial(_INVERSE_END, root - 5.0))
    p = m.where(w < 6.25, m.polynomial(_INVERSE, w - 3.125), p)
    return m.where(size < 1.0, x * p, m.where(size == 1.0, x * math.inf, math.nan))


def log_gamma(m, x):
    """In float64: Stirling's series where |x| ≥ 8, else for |x| + 8, less the logarithm of the product between.

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
