"""What the distributions share: the promotion of arguments, and values outside of the support."""

from __future__ import annotations

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.implicit import stop_gradient
from gradix.numpy.promotion import promote_dtypes_inexact


def arguments(name: str, given: tuple, domains=()):
    """The arguments as arrays of one float dtype.

    Python numbers that are broadcast to the rank of an array are no longer weakly typed. Where an
    argument is outside of its domain, the first one becomes NaN, and with it every result. A domain
    is the place of an argument, and a function that says where values are within.
    """
    xs = promote_dtypes_inexact(name, *given)
    if xs[0].aval.weak_type and len({x.ndim for x in xs}) > 1:
        xs = [lax.convert_element_type(x, x.dtype) for x in xs]
    valid = None
    for i, inside in domains:
        if isinstance(given[i], (int, float)) and inside(given[i]):
            continue
        here = inside(xs[i])
        valid = here if valid is None else valid & here
    return xs if valid is None else [jnp.where(valid, xs[0], np.nan), *xs[1:]]


def zero_where(at, x):
    """`x`, but exactly 0 at places where it is 0 but for rounding; its derivatives stay."""
    return x - stop_gradient(jnp.where(at, x, 0))


def as_log_probability(x):
    """`x`, but 0 where rounding has taken it above; its derivatives stay."""
    return zero_where(x > 0, x)


LOG_2PI = float(np.log(2 * np.pi))


def log1m_exp(x):
    """log(1 - eˣ) for x ≤ 0, accurate near 0 and far from it.

    M. Mächler, "Accurately computing log(1 - exp(-|a|))" (2012).
    """
    near = x > -0.6931472
    return jnp.where(near, jnp.log(-jnp.expm1(jnp.where(near, x, -1))), jnp.log1p(-jnp.exp(jnp.where(near, -1, x))))


def complement(x):
    """1 - eˣ, accurate near 0: a probability from the logarithm of the rest."""
    return -jnp.expm1(x)


def log_of_part(part, rest):
    """log(part) for two probabilities that add up to 1, accurate also where `part` is near 1."""
    near = rest < 0.5
    return jnp.where(near, jnp.log1p(-jnp.where(near, rest, 0)), jnp.log(jnp.where(near, 1, part)))


def within(outside, value, otherwise):
    """`value` in the support, and `otherwise` outside of it, where derivatives are zero.

    `outside` must be a comparison that is false for NaN, so that the result for NaN is NaN.
    """
    return jnp.where(outside, otherwise, value)


def kept(outside, x, safe):
    """x in the support and for NaN, and a safe value outside, where derivatives must be finite."""
    return jnp.where(outside, safe, x)


def probability(q, value):
    """`value`, but NaN where q is not within [0, 1]."""
    return jnp.where((q >= 0) & (q <= 1), value, np.nan)
