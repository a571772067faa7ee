"""Gamma and beta functions, their logarithms and integrals; factorials and binomials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.nn.composition import fused
from gradix.numpy.promotion import as_operand, convert, promote_dtypes_inexact, raise_rank
from gradix.scipy.special.complex_gamma import log_gamma

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _real(name: str, *xs) -> list:
    """The operands as real floats of one dtype."""
    xs = promote_dtypes_inexact(name, *xs)
    if xs[0].aval.dtype in COMPLEX:
        raise TypeError(
            f"{name} takes real numbers, got dtype {xs[0].aval.dtype}. Pass the real parts, as jnp.real gives them."
        )
    return xs


# -- gamma -----------------------------------------------------------------------------------------


def gammaln(x: ArrayLike) -> Array:
    """log |Γ(x)|.

    Example:
        >>> from gradix.scipy import special
        >>> special.gammaln(4.0)
        Array(1.7917595, dtype=float32, weak_type=True)
    """
    return lax.lgamma(*_real("gammaln", x))


def loggamma(x: ArrayLike) -> Array:
    """log Γ(x), which is NaN for negative real numbers.

    For complex numbers it is analytic except on the negative real axis.

    Example:
        >>> from gradix.scipy import special
        >>> special.loggamma(4.0)
        Array(1.7917595, dtype=float32, weak_type=True)
    """
    (x,) = promote_dtypes_inexact("loggamma", x)
    if x.aval.dtype in COMPLEX:
        return log_gamma(convert(x, x.aval.dtype))
    return jnp.where(x < 0, np.nan, lax.lgamma(x))


def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x): 1, -1, or NaN at negative integers; at ±0 it is the sign of the zero.

    Example:
        >>> from gradix.scipy import special
        >>> special.gammasgn(-0.5)
        Array(-1., dtype=float32)
    """
    (x,) = _real("gammasgn", x)
    whole, below = jnp.floor(x), x < 0
    half = 0.5 * whole
    negative = (below & (half != jnp.floor(half))) | ((x == 0) & jnp.signbit(x))
    sign = jnp.where(below & (x == whole), np.nan, jnp.where(negative, -1.0, 1.0))
    return jnp.where(x != x, x, sign).astype(x.aval.dtype)


def gamma(x: ArrayLike) -> Array:
    """Γ(x) of real or complex numbers; NaN at negative integers.

    It is infinite at a real zero, and NaN at a complex one.

    Example:
        >>> from gradix.scipy import special
        >>> special.gamma(5.0)
        Array(24., dtype=float32)
    """
    (x,) = promote_dtypes_inexact("gamma", x)
    if x.aval.dtype in COMPLEX:
        x = convert(x, x.aval.dtype)
        re = jnp.real(x)
        pole = (jnp.imag(x) == 0) & (re <= 0) & (re == jnp.floor(re))
        return jnp.where(pole, complex(np.nan, np.nan), jnp.exp(log_gamma(jnp.where(pole, 1, x))))
    return _gamma(convert(x, x.aval.dtype))


@custom_jvp
def _gamma(x):
    """`sgn · exp(log |Γ|)`; for |x| < 12 by `Γ(x + 1) = x Γ(x)`, since there exp loses digits."""
    near = abs(x) < 12
    y = jnp.where(near, x, 1.5)
    value = jnp.ones_like(y)
    for _ in range(11):
        above = y > 2
        y = jnp.where(above, y - 1, y)
        value = jnp.where(above, value * y, value)
    for _ in range(13):
        below = y < 1
        value = jnp.where(below, value / y, value)
        y = jnp.where(below, y + 1, y)
    value = value * jnp.exp(lax.lgamma(y))
    far = gammasgn(x) * jnp.exp(lax.lgamma(x))
    out = jnp.where(near, value, far)
    pole = (x < 0) & (x == jnp.floor(x))
    return jnp.where(pole | (x == -np.inf), np.nan, jnp.where(x == 0, jnp.copysign(jnp.full_like(x, np.inf), x), out))


@_gamma.defjvp
def _gamma_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _gamma(x)
    return y, t * y * lax.digamma(x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of log Γ(x).

    Example:
        >>> from gradix.scipy import special
        >>> special.digamma(1.0).round(5)
        Array(-0.57722, dtype=float32, weak_type=True)
    """
    return lax.digamma(*_real("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order n + 1 of log Γ(x).

    Args:
        n: non-negative integers.
        x: real numbers, which broadcast with `n`.

    Raises:
        ValueError: `n` does not have an integer dtype.

    Example:
        >>> from gradix.scipy import special
        >>> special.polygamma(1, 1.0).round(5)
        Array(1.64493, dtype=float32, weak_type=True)
    """
    n = as_operand("polygamma", n)
    if n.aval.dtype in INEXACT:
        raise ValueError(
            f"Argument `n` to polygamma must be of integer type. Got dtype {n.aval.dtype}; convert "
            "it with n.astype(int)."
        )
    n, x = _real("polygamma", n, x)
    return lax.polygamma(*jnp.broadcast_arrays(n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function, `Σ 1 / (k + q)^x` for k = 0, 1, ...

    Args:
        x: the powers, which are larger than 1.
        q: the first term's base; by default 1, which gives Riemann's zeta function.

    Example:
        >>> from gradix.scipy import special
        >>> special.zeta(2.0, 1.0).round(5)
        Array(1.64493, dtype=float32, weak_type=True)
    """
    x, q = _real("zeta", x, 1.0 if q is None else q)
    return lax.zeta(*jnp.broadcast_arrays(x, q))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, `∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a)`.

    Example:
        >>> from gradix.scipy import special
        >>> special.gammainc(1.0, 1.0).round(5)
        Array(0.63212, dtype=float32, weak_type=True)
    """
    return lax.igamma(*jnp.broadcast_arrays(*_real("gammainc", a, x)))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, `∫ₓ^∞ tᵃ⁻¹ e⁻ᵗ dt / Γ(a)`.

    Example:
        >>> from gradix.scipy import special
        >>> special.gammaincc(1.0, 1.0).round(5)
        Array(0.36788, dtype=float32, weak_type=True)
    """
    return lax.igammac(*jnp.broadcast_arrays(*_real("gammaincc", a, x)))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the multivariate gamma function.

    Args:
        a: real numbers that are larger than (d - 1) / 2.
        d: the dimension, an integer that is known while compiling.

    Example:
        >>> from gradix.scipy import special
        >>> special.multigammaln(2.0, 1)
        Array(0., dtype=float32)
    """
    (a,) = _real("multigammaln", a)
    d = int(d)
    halves = jnp.asarray((np.arange(d) / 2).astype(a.aval.dtype))
    parts = jnp.expand_dims(a, -1) - raise_rank(halves, a.ndim + 1)
    return jnp.sum(lax.lgamma(parts), -1) + d * (d - 1) / 4 * math.log(math.pi)


# -- beta ------------------------------------------------------------------------------------------


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log |B(a, b)|, which is accurate also where Γ(a) or Γ(b) would overflow.

    Where it is infinite and where both are integers, the values are those of `beta`.

    A. Didonato, A. Morris, "Significant digit computation of the incomplete beta function ratios"
    (1992).

    Example:
        >>> from gradix.scipy import special
        >>> special.betaln(2.0, 3.0).round(4)
        Array(-2.4849, dtype=float32, weak_type=True)
    """
    return _betaln(*_real("betaln", a, b))


@fused
def _betaln(a, b):
    return convert(log_beta(a, b, a + b), a.aval.dtype, a.aval.weak_type)


def log_beta(a, b, total):
    """`betaln(a, b)`, given a + b; none of the three is broadcast before its gamma function."""
    swap = b < a
    small, large = jnp.where(swap, b, a), jnp.where(swap, a, b)
    of_a, of_b, of_total = [_log_gamma_beside_poles(x) for x in (a, b, total)]
    near = jnp.where(swap, of_a, of_b) - of_total
    far = (large > 10) & (small > 0)
    safe, whole, s = [jnp.where(far, v, w) for v, w in ((large, 20), (total, 21), (small, 1))]
    # log Γ(b) - log Γ(a + b) by Stirling's series, whose large terms cancel before any rounding.
    rest = (_stirling(safe) - _stirling(whole)) - s * jnp.log(safe) - (whole - 0.5) * jnp.log1p(s / safe) + s
    out = jnp.where(swap, of_b, of_a) + jnp.where(far, rest, near)
    out = jnp.where((large == np.inf) & (small < np.inf), -jnp.copysign(np.inf, small), out)
    # The least operand is the one at a pole: B(-n, b) = ±B(1 + n - b, b) for whole b of 1 to n.
    at_pole, reflected = _poles_of_beta(a, b, total)
    finite = of_total + jnp.where(swap, of_a, of_b) - jnp.where(swap, of_b, of_a)
    out = jnp.where(_is_pole(total) & (total > -np.inf), -np.inf, out)
    return jnp.where(at_pole, jnp.where(reflected & (large > 0), finite, np.inf), out)


def _is_pole(x):
    return (x <= 0) & (x == jnp.floor(x))


def _log_gamma_beside_poles(x):
    """log |Γ(x)|; at a pole that of Γ(1 - x), to which the residue of Γ there is inverse."""
    return lax.lgamma(jnp.where(_is_pole(x), 1 - x, x))


def _poles_of_beta(a, b, total):
    """Where Γ(a) or Γ(b) has a pole; and where also Γ(a + b) has one, with both operands whole."""
    at_pole = (_is_pole(a) | _is_pole(b)) & (a == a) & (b == b)
    whole = (a == jnp.floor(a)) & (b == jnp.floor(b))
    return at_pole, at_pole & whole & (total < 1) & (total > -np.inf)


def _is_odd(x):
    """Whether the greatest whole number up to x is odd."""
    half = 0.5 * jnp.floor(x)
    return half != jnp.floor(half)


def _stirling(x):
    """`log Γ(x) - (x - ½) log x + x - ½ log 2π`, for x > 10 (DLMF 5.11.1)."""
    y = 1 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b).

    At a pole of Γ(a) or Γ(b) it is infinite, except that B(-n, b) has a limit along whole numbers b
    of 1 to n, (-1)ᵇ B(1 + n - b, b), which is the value there. It is 0 where only Γ(a + b) has one.

    Example:
        >>> from gradix.scipy import special
        >>> special.beta(2.0, 3.0).round(5)
        Array(0.08333, dtype=float32)
    """
    return _beta(*_real("beta", a, b))


@fused
def _beta(a, b):
    value = jnp.exp(convert(log_beta(a, b, a + b), a.aval.dtype))
    return jnp.where(_is_beta_negative(a, b, a + b), -value, value)


def _is_beta_negative(a, b, total):
    at_pole, reflected = _poles_of_beta(a, b, total)
    odd_a, odd_b, odd_total = [_is_odd(x) for x in (a, b, total)]
    plain = (odd_a & (a < 0)) ^ (odd_b & (b < 0)) ^ (odd_total & (total < 0))
    return jnp.where(at_pole, reflected & jnp.where(_is_pole(a), odd_b, odd_a), plain)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, `∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b)`.

    Args:
        a, b: positive real numbers.
        x: real numbers from 0 to 1; all three broadcast.

    Example:
        >>> from gradix.scipy import special
        >>> special.betainc(1.0, 2.0, 0.5)
        Array(0.75, dtype=float32, weak_type=True)
    """
    return lax.betainc(*jnp.broadcast_arrays(*_real("betainc", a, b, x)))


# -- counts ----------------------------------------------------------------------------------------


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n!; 0 for negative numbers.

    Args:
        n: real numbers, which need not be whole.
        exact: only False is supported.

    Raises:
        NotImplementedError: `exact` is True.

    Example:
        >>> from gradix.scipy import special
        >>> special.factorial(4.0)
        Array(24., dtype=float32, weak_type=True)
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact=True is not supported, since arrays hold no integers of any size; use math.factorial."
        )
    (n,) = _real("factorial", n)
    return convert(jnp.where(n < 0, 0, gamma(n + 1)), n.aval.dtype, n.aval.weak_type)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things.

    Args:
        N: the numbers of things, which need not be whole.
        k: the numbers of things to choose, which broadcast with `N`.
        repetition: whether a thing may be chosen more than once.

    Returns:
        An array of floats; 0 where k is negative or larger than N.

    Example:
        >>> from gradix.scipy import special
        >>> special.comb(5, 2)
        Array(10., dtype=float32, weak_type=True)
    """
    n, k = _real("comb", N, k)
    n = n + k - 1 if repetition else n
    valid = (k <= n) & (n >= 0) & (k >= 0)
    if repetition:
        valid = valid | ((k == 0) & (n == -1))
    m, j = jnp.where(valid, n, 1), jnp.where(valid, k, 0)
    value = jnp.exp(-betaln(1 + m - j, 1 + j) - jnp.log1p(m))
    value = jnp.where((m == np.inf) & (j < np.inf), np.inf, value)
    # Where N and k are whole the result is rounded to a whole number, if floats are that exact.
    count = (m == jnp.floor(m)) & (j == jnp.floor(j)) & (value < 1 / jnp.finfo(value.dtype).eps)
    value = jnp.where(count, value + lax.stop_gradient(jnp.round(value) - value), value)
    out = jnp.where(valid, jnp.where((j == 0) | (m == -1), 1, value), 0)
    return convert(out, n.aval.dtype, n.aval.weak_type)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol, Γ(z + m) / Γ(z).

    It is infinite where only Γ(z + m) has a pole, and 0 where only Γ(z) has one. Where both have
    one it is the limit along whole numbers m, (-1)ᵐ Γ(1 - z) / Γ(1 - z - m).

    Example:
        >>> from gradix.scipy import special
        >>> special.poch(1.0, 4.0).round(3)
        Array(24., dtype=float32)
    """
    return _poch(*_real("poch", z, m))


@fused
def _poch(z, m):
    above = z + m
    pole, pole_above = _is_pole(z), _is_pole(above) & (above > -np.inf)
    size = _log_gamma_beside_poles(above) - _log_gamma_beside_poles(z)
    value = jnp.exp(jnp.where(pole, -size, size))
    negative = (_is_odd(z) & (z < 0)) ^ (_is_odd(above) & (above < 0))
    value = jnp.where(negative, -value, value)
    value = jnp.where(pole ^ pole_above, jnp.where(pole, 0, np.inf), value)
    unknown = (z != z) | (m != m) | (z == -np.inf) | ((m == -np.inf) & ~pole)
    value = jnp.where(unknown, np.nan, value)
    far = (abs(z) == np.inf) & (abs(m) < np.inf) & ((z > 0) | (abs(m) == 1))
    value = jnp.where(far, jnp.where(m > 0, z, 1 / z), value)
    return jnp.where(m == 0, 1, value).astype(z.aval.dtype)
