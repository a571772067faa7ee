"""The regularized incomplete beta function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, mul, sub
from gradix._ops.complex_parts import neg
from gradix._ops.families import Elementwise
from gradix._ops.formulas import program
from gradix._ops.operands import operands, scalar_like
from gradix._ops.special.gamma import lgamma
from gradix._ops.special.igamma_formulas import log1p_less, log_gamma_one_plus, log_gamma_star
from gradix._ops.transcendental import exp, log, log1p

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_special = lazy_module("scipy.special")
_REAL = INEXACT - COMPLEX
_LIMIT = 3000  # steps of the continued fraction: it takes about √max(a, b)


def _factor(m, a, b, x, log_y):
    """x^a (1-x)^b / (a B(a, b)).

    Stirling's formula replaces the gamma functions of operands from 10.

    The logarithms of powers and factorials are combined before exponentiation, so that large
    operands do not cancel.
    """
    swap = b < a
    low, high = m.where(swap, b, a), m.where(swap, a, b)
    log_x = m.log(x)
    powers = a * log_x + b * log_y
    plain = powers + log_gamma_one_plus(m, a + b) - log_gamma_one_plus(m, low) - log_gamma_one_plus(m, high)
    large, both = high >= 10.0, low >= 10.0
    h = m.where(large, high, 10.0)
    # both large: a log(x/x₀) + b log(y/y₀) with x₀ = a/(a+b), less their parts that cancel, a·u +
    # b·v = 0
    shift = x * b - (1.0 - x) * a
    safe_a, safe_b = m.where(both, a, 10.0), m.where(both, b, 10.0)
    u, v = m.where(both, shift / safe_a, 0.0), m.where(both, -shift / safe_b, 0.0)
    star = log_gamma_star(safe_a + safe_b) - log_gamma_star(safe_a) - log_gamma_star(safe_b)
    balanced = safe_a * log1p_less(m, u) + safe_b * log1p_less(m, v) + star
    # one large: log Γ(l+h)/Γ(h) = h (log(1+r) - r) - log(1+r)/2 + l log(l+h) + …, r = l/h
    little = m.where(large, low, 1.0)
    r = little / h
    rise = h * log1p_less(m, r) - 0.5 * m.log1p(r) + little * m.log(little + h)
    mixed = powers + rise + log_gamma_star(little + h) - log_gamma_star(h) - log_gamma_one_plus(m, little)
    exponent = m.where(both, balanced, m.where(large, mixed, plain))
    scale = m.where(
        both,
        m.sqrt(safe_b / (safe_a * (safe_a + safe_b) * (2 * math.pi))),
        low / a * m.where(large, 1.0, high / (a + b)),
    )
    return m.exp(exponent) * scale


def _fraction(m, a, b, x, active):
    """The continued fraction of DLMF 8.17.22 by Lentz's method, two terms per step."""
    total, above, below = a + b, a + 1.0, a - 1.0

    def step(n, c, d, value):
        even = n * (b - n) * x / ((below + 2.0 * n) * (a + 2.0 * n))
        d = 1.0 / (1.0 + even * d)
        c = 1.0 + even / c
        value = value * (c * d)
        odd = -(a + n) * (total + n) * x / ((a + 2.0 * n) * (above + 2.0 * n))
        d = 1.0 / (1.0 + odd * d)
        c = 1.0 + odd / c
        return [c, d, value * (c * d)], m.abs(c * d - 1.0) > m.eps(a) * 0.5

    start = 1.0 / (1.0 - total * x / above)
    return m.loop(step, active, [a * 0.0 + 1.0, start, start], _LIMIT)[2]


def _betainc(m, a, b, x):
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    p, q, z = m.where(inside, a, 1.0), m.where(inside, b, 1.0), m.where(inside, x, 0.5)
    swap = z > (p + 1.0) / (p + q + 2.0)  # I_x(a, b) = 1 - I_(1-x)(b, a)
    first, second, at = m.where(swap, q, p), m.where(swap, p, q), m.where(swap, 1.0 - z, z)
    scale = _factor(m, p, q, z, m.log1p(-z)) * m.where(swap, p / q, 1.0)
    part = scale * _fraction(m, first, second, at, inside)
    return _at_the_ends(m, a, b, x, m.where(inside, m.where(swap, 1.0 - part, part), 0.0))


def _at_the_ends(m, a, b, x, result):
    """All weight is at 0 where a = 0 or b = ∞, all at 1 where b = 0 or a = ∞."""
    at_zero, at_one = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
    result = m.where(at_one | (x == 0.0), 0.0, m.where(at_zero, 1.0, result))
    result = m.where(x == 0.0, 0.0, m.where(x == 1.0, 1.0, result))
    known = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0) & ~(at_zero & at_one)
    return m.where(known, result, math.nan)


def _host_betainc(a, b, x):
    return np.asarray(_special.betainc(*[v.astype(np.float64) for v in (a, b, x)])).astype(np.result_type(a, b, x))


def _in_shape(t, a, b, x):
    raise ValueError(
        "Betainc gradient with respect to a and b not supported: only that in x is known. Hold a and b "
        "constant with lax.stop_gradient, or wrap the call in custom_jvp with a rule of your own."
    )


def _density(t, a, b, x):
    """t · x^(a-1) (1-x)^(b-1) / B(a, b)."""
    one = scalar_like(x, 1)
    powers = add(mul(sub(a, one), log(x)), mul(sub(b, one), log1p(neg(x))))
    return mul(t, exp(add(powers, sub(lgamma(add(a, b)), add(lgamma(a), lgamma(b))))))


betainc_p = Elementwise(
    "regularized_incomplete_beta", _host_betainc, _in_shape, _in_shape, _density, hlo=program(_betainc), dtypes=_REAL
)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function `I_x(a, b) = ∫₀ˣ t^(a-1) (1-t)^(b-1) dt / B(a, b)`.

    It has a derivative in `x`.

    Args:
        a, b: positive floats, the shape of the beta distribution.
        x: floats in [0, 1], of their dtype.

    Returns:
        Floats in [0, 1]; NaN where the operands are outside.

    Raises:
        TypeError: the dtypes differ or are not floats, or the shapes do not go together.

    Example:
        >>> from gradix import lax
        >>> lax.betainc(2.0, 2.0, 0.5)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return bind(betainc_p, operands("betainc", a, b, x), {})


regularized_incomplete_beta_p = betainc_p
