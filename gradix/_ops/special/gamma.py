"""The logarithm of the gamma function and its derivatives, and Hurwitz's zeta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.primitive import ValueTraits
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, div, mul, neg, sub
from gradix._ops.bitwise import bitwise_and
from gradix._ops.comparison import gt
from gradix._ops.families import Elementwise
from gradix._ops.formulas import HOST, host, program
from gradix._ops.operands import operands, scalar_like
from gradix._ops.select import choose
from gradix._ops.transcendental import exp, log

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_special = lazy_module("scipy.special")
_REAL = INEXACT - COMPLEX


def _host(function):
    """A host rule that evaluates in float64, and half precisions in float32."""

    def host(x):
        wide = x if x.dtype == np.float64 else x.astype(np.float64)
        return np.asarray(function(wide)).astype(x.dtype)

    return host


def _host_lgamma(x):
    return np.where(np.isneginf(x), np.inf, _special.gammaln(x))


def _host_digamma(x):
    return np.where(np.isneginf(x), np.nan, _special.psi(x))


def _digamma(m, x):
    return m.where(x == 0.0, -1.0 / x, m.digamma(x))  # XLA returns NaN at zeros.


def _polygamma_in_m(t, m, x):
    raise ValueError(
        "polygamma gradient with respect to m is not supported: m is the order of a derivative. Give it "
        "as a constant, or differentiate in x."
    )


# B₂ⱼ / (2j)! for j = 1, 2, …
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
)
_TERMS = 12


def _zeta_in_s(t, s, q):
    """-Σ ln(q + k)·(q + k)⁻ˢ, by the formula of Euler and Maclaurin; NaN where s ≤ 1 or q ≤ 0."""

    def times(x, *factors):
        for f in factors:
            x = mul(x, f)
        return x

    def of(value):
        return scalar_like(s, value)

    inside = bitwise_and(gt(s, of(1)), gt(q, of(0)))
    s, q = choose(inside, of(2), s), choose(inside, of(1), q)
    total = None
    for k in range(_TERMS):
        x = log(add(q, of(k)))
        term = times(exp(neg(mul(s, x))), x)
        total = term if total is None else add(total, term)
    a = add(q, of(_TERMS))
    x, less = log(a), sub(s, of(1))
    power = exp(neg(mul(s, x)))  # a⁻ˢ
    total = add(total, times(power, a, add(div(x, less), div(of(1), mul(less, less)))))
    total = add(total, times(of(0.5), power, x))
    # s (s + 1) … (s + 2j - 2) and its derivative, times a⁻ˢ⁻²ʲ⁺¹
    rising, slope, power = s, of(1), div(power, a)
    for j, c in enumerate(_BERNOULLI):
        if j:
            for i in (2 * j - 1, 2 * j):
                factor = add(s, of(i))
                rising, slope = mul(rising, factor), add(mul(slope, factor), rising)
            power = div(power, mul(a, a))
        total = add(total, times(of(c), power, sub(mul(x, rising), slope)))
    return mul(t, choose(inside, of(np.nan), neg(total)))


def _zeta(m, s, q):
    """The zeta function by XLA, whose ten terms are too few where `q` is far below zero.

    There it is the sum from -∞ to ∞ less the terms before `q`. The whole sum depends only on the
    distance `r` of `q` to the nearest whole number. It is zeta from `1 + r` on, plus zeta from
    `1 - r` on, plus the term of `r`.
    """
    value, whole = m.zeta(s, q), q == m.floor(q)
    even = s * 0.5 == m.floor(s * 0.5)
    # XLA returns NaN for some poles, infinite powers and infinite `q`.
    value = m.where((q <= 0.0) & whole, m.where(s >= 1.0, np.inf + s * 0.0, np.nan), value)
    value = m.where((q == np.inf) & (s > 1.0), 0.0, value)
    limit = m.where(q > 1.0, 0.0, m.where(q == 1.0, 1.0, m.where(q < 1.0, np.inf + m.abs(q), q)))
    value = m.where(s == np.inf, limit, value)
    far = (q < -8.0) & ~whole & (s > 1.0) & (s == m.floor(s))

    def reflect(i, value):
        # Times the loop count, which is 1, so that XLA hoists nothing of this out of the loop.
        x, p = q * i, s * i
        r = x - m.floor(x + 0.5)
        nearest = m.pow(m.abs(r), -p)
        below = m.zeta(p, 1.0 - r) - m.zeta(p, 1.0 - x)
        return [
            m.where(even | (r > 0.0), nearest, -nearest) + m.zeta(p, 1.0 + r) + m.where(even, below, -below)
        ], q != q

    return m.loop(reflect, far, [value], 1)[0]


def _quick(simple, formula):
    """The host rule of a formula: `simple` where all operands are finite and all `x` positive."""
    general = host(formula)

    def rule(n, x):
        if not ((x > 0) & (x < np.inf)).all() or not (n < np.inf).all():
            return general(n, x)
        with np.errstate(all="ignore"):
            return np.asarray(simple(n.astype(np.float64), x.astype(np.float64))).astype(x.dtype)

    return rule


def _positive_polygamma(n, x):
    if not ((n > 0) & (n == np.floor(n))).all():
        return _polygamma(HOST, *np.broadcast_arrays(n, x))
    return (2 * (n % 2) - 1) * _special.gamma(n + 1) * _special.zeta(n + 1, x)


def _polygamma(m, n, x):
    """(-1)ⁿ⁺¹ n! ζ(n + 1, x); digamma for n = 0."""
    size = m.exp(m.lgamma(n + 1.0)) * _zeta(m, n + 1.0, x)
    signed = m.where(n * 0.5 == m.floor(n * 0.5), -size, size)
    order = (n > 0.0) & (n == m.floor(n))
    return m.where(n == 0.0, _digamma(m, x), m.where(order, signed, np.nan))


lgamma_p = Elementwise(
    "lgamma",
    _host(_host_lgamma),
    lambda t, x: mul(t, digamma(x)),
    hlo="chlo.lgamma",
    dtypes=_REAL,
    values=ValueTraits(singular=True),
)
digamma_p = Elementwise(
    "digamma",
    _host(_host_digamma),
    lambda t, x: mul(t, polygamma(scalar_like(x, 1), x)),
    hlo=program(_digamma),
    dtypes=_REAL,
    values=ValueTraits(singular=True),
)
polygamma_p = Elementwise(
    "polygamma",
    _quick(_positive_polygamma, _polygamma),
    _polygamma_in_m,
    lambda t, m, x: mul(t, polygamma(add(m, scalar_like(m, 1)), x)),
    hlo=program(_polygamma),
    dtypes=_REAL,
    values=ValueTraits(singular=True),
)
zeta_p = Elementwise(
    "zeta",
    _quick(lambda s, q: _special.zeta(s, q), _zeta),
    _zeta_in_s,
    lambda t, s, q: mul(t, mul(mul(s, scalar_like(s, -1)), zeta(add(s, scalar_like(s, 1)), q))),
    hlo=program(_zeta),
    dtypes=_REAL,
    values=ValueTraits(singular=True),
)


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the size of the gamma function.

    Example:
        >>> from gradix import lax
        >>> lax.lgamma(1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return bind(lgamma_p, operands("lgamma", x), {})


def digamma(x: ArrayLike) -> Array:
    """The derivative of `lgamma`.

    Example:
        >>> from gradix import lax
        >>> lax.digamma(1.0).round(4)
        Array(-0.5772, dtype=float32, weak_type=True)
    """
    return bind(digamma_p, operands("digamma", x), {})


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `digamma` of order `m`, a whole number of floating type.

    Example:
        >>> from gradix import lax
        >>> lax.polygamma(1.0, 1.0).round(4)
        Array(1.6449, dtype=float32, weak_type=True)
    """
    return bind(polygamma_p, operands("polygamma", m, x), {})


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz's zeta function, the sum of `(q + k)⁻ˣ` over k = 0, 1, …

    Example:
        >>> from gradix import lax
        >>> lax.zeta(2.0, 1.0).round(4)
        Array(1.6449, dtype=float32, weak_type=True)
    """
    return bind(zeta_p, operands("zeta", x, q), {})
