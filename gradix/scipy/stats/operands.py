"""What the distributions share: arguments of one dtype, and values outside of the support."""

from __future__ import annotations

import numpy as np

from gradix import lax, numpy as jnp
from gradix.numpy.promotion import promote_dtypes_inexact


def arguments(name: str, *xs):
    """Arrays of one float dtype; numbers stretched to meet an array have the strength of an array's dtype."""
    xs = promote_dtypes_inexact(name, *xs)
    if not xs[0].aval.weak_type or len({x.ndim for x in xs}) == 1:
        return xs
    return [lax.convert_element_type(x, x.dtype) for x in xs]


LOG_2PI = float(np.log(2 * np.pi))


def log1m_exp(x):
    """log(1 - eˣ) for x ≤ 0, exact at both ends (M. Mächler, "Accurately computing log(1 - exp(-|a|))", 2012)."""
    near = x > -0.6931472
    return jnp.where(
        near,
        jnp.log(-jnp.expm1(jnp.where(near, x, -1))),
        jnp.log1p(-jnp.exp(jnp.where(near, -1, x))),
    )


def log_of_part(part, rest):
    """The logarithm of one of two probabilities that add up to 1, with all digits where it is near 1 too."""
    near = rest < 0.5
    return jnp.where(near, jnp.log1p(-jnp.where(near, rest, 0)), jnp.log(jnp.where(near, 1, part)))


def within(outside, value, otherwise):
    """`value`, but `otherwise` outside of the support, where derivatives are zero.

    `outside` is a comparison that is false for NaN, so that the value of NaN is NaN.
    """
    return jnp.where(outside, otherwise, value)


def kept(outside, x, safe):
    """x, and a safe value outside of the support, so that derivatives of what is not selected are finite. NaN stays."""
    return jnp.where(outside, safe, x)


def probability(q, value):
    """`value`, NaN where q is no probability."""
    return jnp.where((q >= 0) & (q <= 1), value, np.nan)
