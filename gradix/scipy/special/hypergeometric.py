"""Hypergeometric functions of real numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core.operators import Array
from gradix.numpy.promotion import convert, promote_dtypes_inexact
from gradix.scipy.special.faddeeva import is_double, real_operand
from gradix.scipy.special.gammas import gammasgn

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_TERMS = 20_000


def _series(ratio, like):
    """`Σ tₖ` with `tₖ₊₁ = ratio(k) tₖ`, `t₀ = 1`, until two successive terms are negligible."""
    eps = float(np.finfo(like.dtype).eps) / 4

    def going(state):
        k, term, last, total = state
        return (k < _TERMS) & jnp.any((abs(term) + abs(last)) > eps * abs(total))

    def step(state):
        k, term, _, total = state
        new = term * ratio(convert(k, like.aval.dtype))
        return k + 1, new, term, total + new

    one = jnp.ones_like(like)
    return lax.while_loop(going, step, (jnp.asarray(np.int32(0)), one, one, one))[3]


def _is_nonpositive_integer(x):
    return (x <= 0) & (x == jnp.floor(x))


def _operands(name: str, *xs):
    xs = promote_dtypes_inexact(name, *xs)
    dtype = real_operand(name, xs[0])[1]
    return jnp.broadcast_arrays(*[real_operand(name, x)[0] for x in xs]), dtype


# -- 1F1 -------------------------------------------------------------------------------------------


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function `₁F₁(a; b; x)`, of real numbers.

    It is summed by its series, for negative x by that of `eˣ ₁F₁(b - a; b; -x)`, and for large |x|
    by the asymptotic series (DLMF 13.2.2, 13.2.39, 13.7.1).

    Args:
        a, b, x: real numbers, which broadcast.

    Returns:
        An array of floats; infinite where b is zero or a negative integer.

    Example:
        >>> from gradix.scipy import special
        >>> special.hyp1f1(1.0, 1.0, 1.0).round(4)
        Array(2.7183, dtype=float32)
    """
    (a, b, x), dtype = _operands("hyp1f1", a, b, x)
    return _hyp1f1(a, b, x).astype(dtype)


def _hyp1f1(a, b, x):
    finite = ~_is_nonpositive_integer(a)
    turned = (x < 0) & finite
    top, y = jnp.where(turned, b - a, a), jnp.where(turned, -x, x)
    limit = jnp.maximum(150.0 if is_double(x) else 60.0, 4 * (abs(a) + 1) * (abs(a - b) + 1))
    far = (y > limit) & finite & ~_is_nonpositive_integer(top)
    pole = _is_nonpositive_integer(b)
    bottom = jnp.where(pole, 0.5, b)
    z = jnp.where(far | ~jnp.isfinite(y), 0, y)
    value = _series(lambda k: (top + k) * z / ((bottom + k) * (k + 1)), z) * jnp.exp(jnp.where(turned & ~far, x, 0))
    w = jnp.where(far & jnp.isfinite(y), y, limit)
    tail, term = jnp.ones_like(x), jnp.ones_like(x)
    for k in range(24):
        term = term * (bottom - top + k) * (1 - top + k) / ((k + 1) * w)
        tail = tail + jnp.where(far, term, 0)
    size = (
        lax.lgamma(bottom) - lax.lgamma(jnp.where(far, top, 1)) + (top - bottom) * jnp.log(w) + jnp.where(turned, 0, w)
    )
    sign = gammasgn(bottom) * gammasgn(jnp.where(far, top, 1))
    value = jnp.where(far, sign * jnp.exp(jnp.where(far, size, 0)) * tail, value)
    value = jnp.where(abs(x) == np.inf, _hyp1f1_at_infinity(a, bottom, x), value)
    return jnp.where(pole, np.inf, jnp.where(jnp.isnan(a + b + x), np.nan, value))


def _hyp1f1_at_infinity(a, b, x):
    """The limit of `Γ(b)/Γ(a) eˣ x^(a-b)` or `Γ(b)/Γ(b-a) |x|^-a` (DLMF 13.7.1-2), or of a polynomial."""
    ends, shrinks = _is_nonpositive_integer(a), _is_nonpositive_integer(b - a)
    degree = jnp.where(ends, -a, 0)
    odd = (x > 0) & (0.5 * degree != jnp.floor(0.5 * degree))
    other = jnp.where(ends, b + degree, jnp.where(x > 0, a, jnp.where(shrinks, 1, b - a)))
    size = gammasgn(b) * gammasgn(other) * jnp.where(odd, -np.inf, np.inf)
    vanishes = (x < 0) & ((a > 0) | (shrinks & ~ends))
    return jnp.where(a == 0, 1, jnp.where(vanishes, 0, size))


# -- 2F1 -------------------------------------------------------------------------------------------


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function `₂F₁(a, b; c; x)`, of real numbers with x ≤ 1.

    It is summed by its series in x, for negative x in `x / (x - 1)`, and near 1 in `1 - x` (DLMF
    15.2.1, 15.8.1, 15.8.4). Near 1, if `c - a - b` is an integer, the series in x is summed, which
    takes many terms.

    Args:
        a, b, c, x: real numbers, which broadcast.

    Returns:
        An array of floats; infinite where c is zero or a negative integer. Unless a or b is such
        an integer, it is infinite for x > 1, where the series has no limit, and at x = 1 if c ≤ a + b.

    Example:
        >>> from gradix.scipy import special
        >>> special.hyp2f1(1.0, 1.0, 2.0, 0.5).round(4)
        Array(1.3863, dtype=float32)
    """
    (a, b, c, x), dtype = _operands("hyp2f1", a, b, c, x)
    return _hyp2f1(a, b, c, x).astype(dtype)


def _hyp2f1(a, b, c, x):
    pole = _is_nonpositive_integer(c)
    bottom = jnp.where(pole, 0.5, c)
    ends = _is_nonpositive_integer(a) | _is_nonpositive_integer(b)
    turned = (x < 0) & ~ends
    y = jnp.where(turned, x / jnp.where(turned, x - 1, 1), x)
    second = jnp.where(turned, bottom - b, b)
    excess = bottom - a - second
    near = (y > 0.9) & (y < 1) & ~ends & (abs(excess - jnp.round(excess)) > 1e-3)
    z = jnp.where(near | (~ends & (y >= 1)) | ~jnp.isfinite(y), 0, y)
    value = _gauss(a, second, bottom, z)
    value = jnp.where(near, _around_one(a, second, bottom, jnp.where(near, y, 0.95)), value)
    at_one = jnp.where(
        excess > 0, _gamma_ratio(bottom, jnp.where(excess > 0, excess, 1), bottom - a, bottom - second), np.inf
    )
    value = jnp.where((y == 1) & ~ends, at_one, value)
    value = jnp.where(turned, value * jnp.exp(-a * jnp.log1p(jnp.where(turned, -x, 0))), value)
    value = jnp.where((x > 1) & ~ends, np.inf, value)
    return jnp.where(pole, np.inf, jnp.where(jnp.isnan(a + b + c + x), np.nan, value))


def _gauss(a, b, c, x):
    return _series(lambda k: (a + k) * (b + k) * x / ((c + k) * (k + 1)), x)


def _gamma_ratio(p, q, r, s):
    """`Γ(p) Γ(q) / (Γ(r) Γ(s))`, which is 0 at the poles of Γ(r) and Γ(s)."""
    zero = _is_nonpositive_integer(r) | _is_nonpositive_integer(s)
    r, s = jnp.where(zero, 1, r), jnp.where(zero, 1, s)
    size = jnp.exp(lax.lgamma(p) + lax.lgamma(q) - lax.lgamma(r) - lax.lgamma(s))
    return jnp.where(zero, 0, size * gammasgn(p) * gammasgn(q) * gammasgn(r) * gammasgn(s))


def _around_one(a, b, c, x):
    """`₂F₁` for x near 1, by two series in 1 - x (DLMF 15.8.4)."""
    e = c - a - b
    e = jnp.where(abs(e - jnp.round(e)) > 1e-3, e, 0.5)
    rest = 1 - x
    first = _gamma_ratio(c, e, c - a, c - b) * _gauss(a, b, 1 - e, rest)
    second = _gamma_ratio(c, -e, a, b) * jnp.exp(e * jnp.log(rest)) * _gauss(c - a, c - b, e + 1, rest)
    return first + second
