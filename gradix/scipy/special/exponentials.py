"""Exponential, sine and cosine integrals; the dilogarithm; power transforms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy.promotion import as_operand, convert, promote_dtypes_inexact
from gradix.scipy.special.faddeeva import is_double, real_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

# -- exponential integrals -------------------------------------------------------------------------


def exp1(x: ArrayLike) -> Array:
    """The exponential integral `∫ₓ^∞ e⁻ᵗ/t dt`; NaN for negative numbers, infinite at zero.

    Example:
        >>> from gradix.scipy import special
        >>> special.exp1(1.0).round(4)
        Array(0.2194, dtype=float32)
    """
    x, dtype = real_operand("exp1", x)
    return _exp1(x).astype(dtype)


@custom_jvp
def _exp1(x):
    small = x <= 1
    s = jnp.where(small & (x > 0), x, 0.5)
    total = jnp.zeros_like(x)
    for k in range(20, 0, -1):  # Σ (-x)ᵏ / (k k!), DLMF 6.6.2
        total = -s / k * (1 / k + total)
    near = -np.euler_gamma - jnp.log(s) - total
    y = jnp.where(small | (x == np.inf), 2, x)
    far = jnp.exp(-y) * _fraction(jnp.ones_like(y), y)
    value = jnp.where(small, near, jnp.where(x == np.inf, 0, far))
    return jnp.where(x < 0, np.nan, jnp.where(x == 0, np.inf, jnp.where(x == x, value, np.nan)))


def _fraction(n, x):
    """`eˣ Eₙ(x)` for x > 1: its continued fraction, evaluated from the end (DLMF 8.19.17)."""
    turns = 90 if is_double(x) else 30

    def step(i, below):
        k = convert(jnp.asarray(turns - i), x.aval.dtype)
        return x + n + 2 * (k - 1) - k * (n + k - 1) / below

    return 1 / lax.fori_loop(0, turns, step, x + n + 2 * turns)


@_exp1.defjvp
def _exp1_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _exp1(x), -t * jnp.exp(-x) / x


def expi(x: ArrayLike) -> Array:
    """The exponential integral `-∫₋ₓ^∞ e⁻ᵗ/t dt`; for positive x it is a principal value.

    Example:
        >>> from gradix.scipy import special
        >>> special.expi(1.0).round(4)
        Array(1.8951, dtype=float32)
    """
    x, dtype = real_operand("expi", x)
    return _expi(x).astype(dtype)


@custom_jvp
def _expi(x):
    edge, terms = (40.0, 150) if is_double(x) else (20.0, 80)
    middle = (x > 0) & (x <= edge)
    s = jnp.where(middle, x, 1)

    def term(i, state):
        power, total = state
        k = convert(jnp.asarray(i), x.aval.dtype)
        power = power * s / k
        return power, total + power / k

    series = lax.fori_loop(1, terms, term, (jnp.ones_like(x), jnp.zeros_like(x)))[1]
    y = jnp.where((x > edge) & (x < np.inf), x, 2 * edge)
    tail = jnp.ones_like(x)
    for k in range(38 if is_double(x) else 18, 0, -1):
        tail = 1 + k / y * tail
    half = jnp.exp(y / 2)
    value = jnp.where(middle, np.euler_gamma + jnp.log(s) + series, half * (half * tail / y))
    value = jnp.where(x < 0, -_exp1(jnp.where(x < 0, -x, 1)), value)
    return jnp.where(x == 0, -np.inf, jnp.where(x == np.inf, np.inf, jnp.where(x == x, value, np.nan)))


@_expi.defjvp
def _expi_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _expi(x), t * jnp.exp(x) / x


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral `∫₁^∞ e⁻ˣᵗ / tⁿ dt`.

    Args:
        n: orders, which are non-negative integers.
        x: non-negative real numbers, which broadcast with `n`.

    Returns:
        An array of floats; NaN where `n` is not a non-negative integer or `x` is negative.

    Example:
        >>> from gradix.scipy import special
        >>> special.expn(2, 1.0).round(4)
        Array(0.1485, dtype=float32)
    """
    x, dtype = real_operand("expn", promote_dtypes_inexact("expn", as_operand("expn", n), x)[1])
    n = convert(as_operand("expn", n), x.aval.dtype)
    return _expn(*jnp.broadcast_arrays(lax.stop_gradient(n), x)).astype(dtype)


@custom_jvp
def _expn(n, x):
    positive = (n >= 1) & (x > 0)
    order, y = jnp.where(positive, n, 1), jnp.where(positive, x, 1)
    far = jnp.exp(-y) * _fraction(order, jnp.maximum(y, 1))
    value = jnp.where(y > 1, far, _small_expn(order, jnp.minimum(y, 1)))
    value = jnp.where(n == 0, jnp.exp(-x) / x, value)
    at_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), np.inf)
    valid = (n >= 0) & (x >= 0) & (n == jnp.floor(n))
    return jnp.where(valid, jnp.where(x == 0, at_zero, jnp.where(x == np.inf, 0, value)), np.nan)


def _small_expn(n, x):
    """The series for x ≤ 1, whose term of order n - 1 contains a logarithm (DLMF 8.19.8)."""

    def term(i, state):
        power, total = state
        k = convert(jnp.asarray(i), x.aval.dtype)
        gap = k - n + 1
        total = total - jnp.where(gap == 0, 0, power / jnp.where(gap == 0, 1, gap))
        return -power * x / (k + 1), total

    total = lax.fori_loop(0, 24, term, (jnp.ones_like(x), jnp.zeros_like(x)))[1]
    size = jnp.exp((n - 1) * jnp.log(x) - lax.lgamma(n))
    sign = jnp.where(jnp.mod(n, 2) == 1, 1, -1)
    return sign * size * (lax.digamma(n) - jnp.log(x)) + total


@_expn.defjvp
def _expn_jvp(primals, tangents):
    """The derivative in x is `-Eₙ₋₁(x)`."""
    (n, x), (_, t) = primals, tangents
    slope = jnp.where(n == 0, -jnp.exp(-x) * (1 + x) / (x * x), -_expn(jnp.maximum(n - 1, 0), x))
    return _expn(n, x), t * slope


# -- sine and cosine integrals ---------------------------------------------------------------------


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals, `∫₀ˣ sin t / t dt` and `γ + log |x| + ∫₀ˣ (cos t - 1) / t dt`.

    Example:
        >>> from gradix.scipy import special
        >>> si, ci = special.sici(1.0)
        >>> si.round(4), ci.round(4)
        (Array(0.9461, dtype=float32), Array(0.3374, dtype=float32))
    """
    x, dtype = real_operand("sici", x)
    si, ci = _sici(x)
    return si.astype(dtype), ci.astype(dtype)


@custom_jvp
def _sici(x):
    size = abs(x)
    small = size <= 4
    s = jnp.where(small, size, 1)
    q = s * s
    sine, cosine = jnp.zeros_like(x), jnp.zeros_like(x)
    for k in range(16, -1, -1):  # DLMF 6.6.5, 6.6.6
        sine = 1 / (2 * k + 1) - sine * q / ((2 * k + 2) * (2 * k + 3))
        cosine = 1 / (2 * k + 2) - cosine * q / ((2 * k + 3) * (2 * k + 4))
    near_s, near_c = s * sine, np.euler_gamma + jnp.log(s) - q / 2 * cosine
    far_s, far_c = _far_sici(jnp.where(small | (size == np.inf), 5, size))
    si = jnp.where(small, near_s, jnp.where(size == np.inf, math.pi / 2, far_s))
    ci = jnp.where(small, near_c, jnp.where(size == np.inf, 0, far_c))
    ci = jnp.where(x == 0, -np.inf, jnp.where(x == -np.inf, np.nan, ci))
    return jnp.where(x == x, jnp.sign(x) * si, np.nan), jnp.where(x == x, ci, np.nan)


def _far_sici(x):
    """Both by `E₁(ix)`, which has the same continued fraction as `E₁(x)` (DLMF 6.9.1, 6.5.6)."""
    turns = 60 if is_double(x) else 20
    ix = lax.complex(jnp.zeros_like(x), x)

    def step(i, below):
        k = convert(jnp.asarray(turns - i), ix.aval.dtype)
        return ix + (2 * k - 1) - k * k / below

    fraction = 1 / lax.fori_loop(0, turns, step, ix + (2 * turns + 1))
    value = fraction * lax.complex(jnp.cos(x), -jnp.sin(x))
    return math.pi / 2 + lax.imag(value), -lax.real(value)


@_sici.defjvp
def _sici_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _sici(x), (t * jnp.sinc(x / math.pi), t * jnp.cos(x) / x)


# -- the dilogarithm -------------------------------------------------------------------------------

# B₂ₖ / (2k + 1)!: the coefficients of the dilogarithm's series in powers of a logarithm.
_BERNOULLI = (
    1 / 36,
    -1 / 3600,
    1 / 211680,
    -1 / 10886400,
    1 / 526901760,
    -691 / 16999766784000,
    7 / 7846046208000,
    -3617 / 181400588328960000,
)


def spence(x: ArrayLike) -> Array:
    """The dilogarithm `-∫₁ˣ log t / (t - 1) dt`; NaN for negative numbers.

    Raises:
        TypeError: `x` holds integers or complex numbers.

    Example:
        >>> from gradix.scipy import special
        >>> special.spence(0.0).round(4)
        Array(1.6449, dtype=float32)
    """
    x = as_operand("spence", x)
    if x.aval.dtype not in INEXACT or x.aval.dtype in COMPLEX:
        raise TypeError(f"spence takes floats, but x has dtype {x.aval.dtype}. Convert integers with x.astype(float).")
    x, dtype = real_operand("spence", x)
    return _spence(x).astype(dtype)


@custom_jvp
def _spence(x):
    """The series in log x at an argument within [½, 1] or [1, 2] (DLMF 25.12.4, 25.12.6)."""
    large = x > 2
    y = jnp.where(large, 1 / jnp.where(large, x, 1), x)
    small = y < 0.5
    u = -jnp.log(jnp.where(small, jnp.where(y > -1, 1 - y, 1), jnp.where(y > 0, y, 1)))
    q = u * u
    total = jnp.zeros_like(x)
    for c in _BERNOULLI[::-1]:
        total = total * q + c
    value = u - q / 4 + u * q * total
    logs = jnp.where((y > 0) & small, jnp.log(jnp.where(y > 0, y, 1)) * jnp.log1p(-jnp.where(small, y, 0)), 0)
    value = jnp.where(small, math.pi**2 / 6 - logs - value, value)
    value = jnp.where(large, -0.5 * jnp.log(jnp.where(large, x, 1)) ** 2 - value, value)
    return jnp.where((x >= 0) & (x < np.inf), value, np.nan)


@_spence.defjvp
def _spence_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    off = x - 1
    near = abs(off) < 1e-3
    series = -1 + off / 2 - off**2 / 3 + off**3 / 4 - off**4 / 5
    return _spence(x), t * jnp.where(near, series, -jnp.log(jnp.where(near, 2, x)) / jnp.where(near, 1, off))


# -- power transforms ------------------------------------------------------------------------------


def _power_of_log(logarithm, power):
    """`(exp(power · logarithm) - 1) / power`, whose limit at a power of zero is the logarithm."""
    # Zero times an infinite logarithm would be NaN; for power 0 the result is the logarithm.
    u = power * jnp.where((power == 0) & (abs(logarithm) == np.inf), 0, logarithm)
    small = abs(u) < 1e-3
    beyond = abs(u) == np.inf
    safe = jnp.where(small | beyond, 1, u)
    ratio = jnp.where(small, 1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5))), jnp.expm1(safe) / safe)
    highest = jnp.where(abs(power) < np.inf, np.inf, np.nan)
    limit = jnp.where(u > 0, highest, -1 / jnp.where(beyond, power, 1))
    return jnp.where(beyond, limit, logarithm * ratio)


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The transform of Box and Cox: `(x^λ - 1) / λ`, or `log x` where λ is 0; NaN for x < 0.

    Example:
        >>> from gradix.scipy import special
        >>> special.boxcox(4.0, 0.5)
        Array(2., dtype=float32, weak_type=True)
    """
    x, power = promote_dtypes_inexact("boxcox", x, lmbda)
    positive = x > 0
    value = _power_of_log(jnp.log(jnp.where(positive, x, 1)), power)
    at_zero = jnp.where(power > 0, -1 / jnp.where(power > 0, power, 1), -np.inf)
    out = jnp.where(positive, value, jnp.where((x == 0) & (power == power), at_zero, np.nan))
    return convert(out, x.aval.dtype, x.aval.weak_type)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox(1 + x, lmbda)`, which is accurate also for small x.

    Example:
        >>> from gradix.scipy import special
        >>> special.boxcox1p(3.0, 0.5)
        Array(2., dtype=float32, weak_type=True)
    """
    x, power = promote_dtypes_inexact("boxcox1p", x, lmbda)
    positive = x > -1
    value = _power_of_log(jnp.log1p(jnp.where(positive, x, 0)), power)
    at_zero = jnp.where(power > 0, -1 / jnp.where(power > 0, power, 1), -np.inf)
    out = jnp.where(positive, value, jnp.where((x == -1) & (power == power), at_zero, np.nan))
    return convert(out, x.aval.dtype, x.aval.weak_type)
