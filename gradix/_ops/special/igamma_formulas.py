"""Formulas of the incomplete gamma functions and their derivatives in `a`.

P(a, x) is the part below x of the gamma distribution of shape a, Q = 1 - P the part above. The
regions of the formulas follow Gautschi, "A computational procedure for incomplete gamma functions"
(1979): the power series below the mean, the continued fraction above it (DLMF 8.11.4, 8.9.2), and
near the mean of a large a Temme's uniform expansion (DLMF 8.12).
"""

from __future__ import annotations

import math

from gradix._ops.formulas import chebyshev

_LIMIT = 1000  # terms, which is more than the slowest region needs
# the least `a` of Temme's expansion, for float32 and float64
_LARGE = {True: 30.0, False: 200.0}

# cₖ(η) of DLMF 8.12.9 as power series in η, from 60 digits; what is left out is below 2e-17 for a ≥
# 200, |η| ≤ 0.35.
_TEMME = (
    (
        -3.33333333333333333e-1,
        8.33333333333333333e-2,
        -1.48148148148148148e-2,
        1.15740740740740741e-3,
        3.527336860670194e-4,
        -1.78755144032921811e-4,
        3.91926317852243778e-5,
        -2.18544851067999216e-6,
        -1.85406221071515996e-6,
        8.29671134095308601e-7,
        -1.76659527368260793e-7,
        6.70785354340149858e-9,
        1.0261809784240308e-8,
        -4.38203601845335319e-9,
        9.14769958223679023e-10,
    ),
    (
        -1.85185185185185185e-3,
        -3.47222222222222222e-3,
        2.6455026455026455e-3,
        -9.90226337448559671e-4,
        2.05761316872427984e-4,
        -4.01877572016460905e-7,
        -1.80985503344899778e-5,
        7.64916091608111008e-6,
        -1.6120900894563446e-6,
        4.64712780280743434e-9,
        1.37863344691572096e-7,
        -5.75254560351770496e-8,
        1.19516285997781473e-8,
    ),
    (
        4.1335978835978836e-3,
        -2.68132716049382716e-3,
        7.71604938271604938e-4,
        2.00938786008230453e-6,
        -1.07366532263651605e-4,
        5.29234488291201254e-5,
        -1.27606351886187277e-5,
        3.42357873409613807e-8,
        1.37219573090629332e-6,
        -6.29899213838005502e-7,
        1.42806142060642418e-7,
    ),
    (
        6.49434156378600823e-4,
        2.29472093621399177e-4,
        -4.69189494395255712e-4,
        2.67720632062838853e-4,
        -7.56180167188397641e-5,
        -2.39650511386729665e-7,
        1.10826541153473024e-5,
        -5.67495282699159657e-6,
        1.42309007324358839e-6,
    ),
    (
        -8.61888290916711699e-4,
        7.84039221720066627e-4,
        -2.9907248030319018e-4,
        -1.46384525788434182e-6,
        6.64149821546512219e-5,
        -3.96836504717943466e-5,
    ),
    (-3.3679855336635815e-4, -6.97281375836585777e-5, 2.77275324495939208e-4, -1.99325705161888477e-4),
)

# Chebyshev coefficients of log Γ(1 + a) / a on [0, 1.1] in a / 0.55 - 1, from 50 digits.
_LGAMMA1P = (
    -2.40617607229775011e-1,
    3.05915561558830867e-1,
    -2.68700955844798794e-2,
    3.27610888194571952e-3,
    -4.55770635493968288e-4,
    6.7946565256921039e-5,
    -1.05591780473811281e-5,
    1.68632935222186738e-6,
    -2.74515215039608907e-7,
    4.53239785969520532e-8,
    -7.56506707856459058e-9,
    1.27366714285608293e-9,
    -2.15959467815949073e-10,
    3.68347284569661882e-11,
    -6.31435559558962545e-12,
    1.08714838160822749e-12,
    -1.87888054287530014e-13,
    3.25811839976829796e-14,
    -5.66672598155235005e-15,
    9.88237573062986616e-16,
    -1.7275903038184883e-16,
    3.02672582356741019e-17,
    -5.31342053920432759e-18,
)

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def _is_single(m, x) -> bool:
    return m.eps(x) > 1e-10


def polynomial(x, coefficients):
    """c₀ + c₁ x + c₂ x² + …, by Horner's scheme."""
    out = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        out = out * x + c
    return out


def log1p_less(m, u):
    """log(1 + u) - u without cancellation: in s = u / (2 + u), -s·u + 2 s³ (1/3 + s²/5 + s⁴/7 + …)."""
    small = (u > -0.3) & (u < 0.45)
    v = m.where(small, u, 0.0)
    s = v / (v + 2.0)
    square = s * s
    near = s * (2.0 * square * polynomial(square, [1 / k for k in range(3, 11 if _is_single(m, u) else 27, 2)]) - v)
    return m.where(small, near, m.log1p(u) - u)


def log_gamma_star(a):
    """log of Γ(a) over Stirling's formula, for a ≥ 10 (DLMF 5.11.1)."""
    inverse = 1.0 / a
    return inverse * polynomial(inverse * inverse, _STIRLING)


def log_gamma_one_plus(m, a):
    """log Γ(1 + a), exact to few ulp near a = 0 too."""
    near = a <= 1.1
    t = m.where(near, a, 0.0) * (1 / 0.55) - 1.0
    return m.where(near, a * chebyshev(m, t, _LGAMMA1P), m.lgamma(m.where(near, 2.0, a + 1.0)))


def _density(m, a, x):
    """x^a e^-x / Γ(a + 1); for large `a` by Stirling's formula with exact -a (x/a - 1 - log(x/a))."""
    large = a >= 10.0
    big = m.where(large, a, 10.0)
    stirling = big * log1p_less(m, (x - big) / big) - log_gamma_star(big)
    little = m.where(large, 1.0, a)
    plain = little * m.log(x) - x - log_gamma_one_plus(m, little)
    return m.exp(m.where(large, stirling, plain)) / m.where(large, m.sqrt(big * (2 * math.pi)), 1.0)


# -- the three ways --------------------------------------------------------------------------------


def _series(m, a, x, active):
    """Σ xⁿ / ((a+1) … (a+n)), which times the density is P (DLMF 8.11.4)."""

    def step(n, term, total):
        term = term * (x / (a + n))
        total = total + term
        return [term, total], term > total * (m.eps(a) * 0.25)

    one = a * 0.0 + 1.0
    return m.loop(step, active, [one, one], _LIMIT)[1]


def _series_in_a(m, a, x, active):
    """The series, and its derivative in `a`, term by term."""

    def step(n, term, slope, total, rise):
        ratio = x / (a + n)
        slope = (slope - term / (a + n)) * ratio
        term = term * ratio
        total, rise = total + term, rise + slope
        return [term, slope, total, rise], m.abs(slope) > m.abs(rise) * (m.eps(a) * 0.25)

    one, zero = a * 0.0 + 1.0, a * 0.0
    return m.loop(step, active, [one, zero, one, zero], _LIMIT)[2:]


def _fraction(m, a, x, active):
    """The continued fraction f = 1/(x+1-a - 1(1-a)/(x+3-a - …)), Q = a·density·f (DLMF 8.9.2)."""
    first = x + 1.0 - a

    def step(n, b, c, d, total):
        up = n * (a - n)
        b = b + 2.0
        d = 1.0 / (up * d + b)
        c = up * c + b
        ratio = c * d
        return [b, 1.0 / c, d, total * ratio], m.abs(ratio - 1.0) > m.eps(a) * 0.5

    start = 1.0 / first
    return m.loop(step, active, [first, a * 0.0, start, start], _LIMIT)[3]


def _fraction_in_a(m, a, x, active):
    """The continued fraction, and the derivative of its logarithm in `a`."""
    first = x + 1.0 - a

    def step(n, b, c, c_slope, d, d_slope, total, rise):
        up = n * (a - n)  # its derivative is n; that of b is -1
        b = b + 2.0
        new = 1.0 / (up * d + b)
        d_slope = (1.0 - n * d - up * d_slope) * new  # of log d
        d_slope, d = d_slope * new, new
        inner = up * c + b
        inner_slope = n * c + up * c_slope - 1.0
        ratio, change = inner * d, inner_slope / inner + d_slope / d
        c = 1.0 / inner
        going = (m.abs(ratio - 1.0) > m.eps(a) * 0.5) | (m.abs(change) > m.abs(rise + change) * (m.eps(a) * 0.5))
        return [b, c, (-c) * c * inner_slope, d, d_slope, total * ratio, rise + change], going

    start, zero = 1.0 / first, a * 0.0
    return m.loop(step, active, [first, zero, zero, start, start * start, start, start], _LIMIT)[5:]


def _temme(m, a, x):
    """η, η²/2, Σ cₖ(η) a⁻ᵏ: Q = ½ erfc(η √(a/2)) + e^(-aη²/2) / √(2πa) · Σ, η²/2 = λ - 1 - log λ, λ = x/a."""
    terms = _TEMME[:4] if _is_single(m, a) else _TEMME
    u = (x - a) / a
    half_square = -log1p_less(m, u)
    eta = m.sqrt(half_square * 2.0)
    eta = m.where(u < 0.0, -eta, eta)
    return eta, half_square, [polynomial(eta, row) for row in terms]


def temme_part(m, a, x, upper: bool):
    eta, half_square, terms = _temme(m, a, x)
    rest = m.exp(-a * half_square) / m.sqrt(a * (2 * math.pi)) * polynomial(1.0 / a, terms)
    z = eta * m.sqrt(a * 0.5)
    return 0.5 * m.erfc(z) + rest if upper else 0.5 * m.erfc(-z) - rest


def _temme_in_a(m, a, x):
    """The derivative of P in `a`, without the factor e^(-aη²/2) / √(2πa); ∂η/∂a = -(λ-1)/(ηa)."""
    eta, half_square, terms = _temme(m, a, x)
    u, inverse = (x - a) / a, 1.0 / a
    pace = m.where(u == 0.0, 1.0, u / m.where(u == 0.0, 1.0, eta))  # (λ-1)/η
    rows = _TEMME[: len(terms)]
    by_eta = polynomial(inverse, [polynomial(eta, [k * c for k, c in enumerate(row)][1:]) for row in rows])
    by_a = inverse * inverse * polynomial(inverse, [-k * term for k, term in enumerate(terms)][1:])
    drift = (m.log1p(u) - 0.5 * inverse) * polynomial(inverse, terms)
    return half_square, 0.5 * eta - pace - drift + by_eta * pace * inverse - by_a


# -- choosing among them ---------------------------------------------------------------------------


def _finite(m, a, x):
    """Whether `a` and `x` are positive and finite, and both with the other elements replaced."""
    inside = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    return inside, m.where(inside, a, 1.0), m.where(inside, x, 1.0)


def is_near_large_mean(m, a, x):
    return (a >= _LARGE[_is_single(m, a)]) & (m.abs(x - a) < 0.3 * a)


def _at_the_ends(m, a, x, inside, result, *, at_zero: float, at_infinity: float):
    """`result` where `inside`, else the limits at 0 and infinity; NaN for negative or both zero."""
    ends = m.where(
        (x == math.inf) | ((a == 0.0) & (x > 0.0)), at_infinity, m.where((x == 0.0) | (a == math.inf), at_zero, a)
    )
    # XLA takes x ≥ 0 for true where x is a power, which may be NaN.
    unknown = (a != a) | (x != x)
    outside = (a < 0.0) | (x < 0.0) | unknown | ((a == 0.0) & (x == 0.0))
    return m.where(outside, math.nan, m.where(inside, result, ends))


def igamma(m, a, x):
    """P(a, x)."""
    inside, b, y = _finite(m, a, x)
    near = is_near_large_mean(m, b, y)
    above = ~near & (y > 1.0) & (y > b)
    density = _density(m, b, y)
    upper = 1.0 - b * density * _fraction(m, b, m.where(above, y, b), above)
    lower = density * _series(m, b, y, ~near & ~above)
    centre = temme_part(m, m.where(near, b, 200.0), m.where(near, y, 200.0), upper=False)
    return _at_the_ends(
        m, a, x, inside, m.where(near, centre, m.where(above, upper, lower)), at_zero=0.0, at_infinity=1.0
    )


def igammac(m, a, x):
    """Q(a, x), with a series of its own where P is nearly 1 (Gautschi 1979, §4.2)."""
    inside, b, y = _finite(m, a, x)
    near = is_near_large_mean(m, b, y)
    above = ~near & (y > 1.1) & (y >= b)
    little = (y <= 1.1) & m.where(y <= 0.5, b * m.log(y) > -0.4, b <= 1.1 * y)
    density = _density(m, b, y)
    upper = b * density * _fraction(m, b, m.where(above, y, b), above)
    lower = 1.0 - density * _series(m, b, y, ~near & ~above & ~little)
    tail = _little_upper(m, m.where(little, b, 1.0), m.where(little, y, 1.0), little)
    centre = temme_part(m, m.where(near, b, 200.0), m.where(near, y, 200.0), upper=True)
    result = m.where(near, centre, m.where(above, upper, m.where(little, tail, lower)))
    return _at_the_ends(m, a, x, inside, result, at_zero=1.0, at_infinity=0.0)


def _little_upper(m, a, x, active):
    """1 - x^a/Γ(1+a) · (1 + a Σ (-x)ⁿ / ((a+n) n!)), the first two terms as expm1."""

    def step(n, power, total):
        power = power * (-x / n)
        return [power, total + power / (a + n)], m.abs(power) > m.abs(total) * (m.eps(a) * 0.25)

    total = m.loop(step, active, [a * 0.0 + 1.0, a * 0.0], _LIMIT)[1]
    exponent = a * m.log(x) - log_gamma_one_plus(m, a)
    return -m.expm1(exponent) - a * m.exp(exponent) * total


def _slopes(m, a, x, sample: bool):
    """∂P/∂a; with `sample`, ∂x/∂a at a fixed P, which is -∂P/∂a over the density in x."""
    inside, b, y = _finite(m, a, x)
    near = is_near_large_mean(m, b, y)
    above = ~near & (y > 1.0) & (y > b)
    logarithm = m.log(y)
    total, rise = _series_in_a(m, b, y, ~near & ~above)
    lower = total * (logarithm - m.digamma(b + 1.0)) + rise
    fraction, change = _fraction_in_a(m, b, m.where(above, y, b), above)
    upper = fraction * (logarithm - m.digamma(b) + change)
    large = m.where(near, b, 200.0)
    half_square, centre = _temme_in_a(m, large, m.where(near, y, 200.0))
    if sample:
        centre = -centre * m.exp(log_gamma_star(large)) * y / large
        result = m.where(near, centre, m.where(above, y * upper, -(y / b) * lower))
    else:
        centre = centre * m.exp(-large * half_square) / m.sqrt(large * (2 * math.pi))
        result = m.where(near, centre, _density(m, b, y) * m.where(above, -b * upper, lower))
    zero = (x == 0.0) & (a > 0.0)
    return m.where(inside, result, m.where(zero, 0.0, math.nan * x))


def igamma_grad_a(m, a, x):
    """∂P/∂a."""
    return _slopes(m, a, x, sample=False)


def random_gamma_grad(m, a, x):
    """∂x/∂a at a fixed P(a, x)."""
    return _slopes(m, a, x, sample=True)
