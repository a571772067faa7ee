"""What the distributions share: the promotion of arguments, and values outside of the support."""

from __future__ import annotations

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.implicit import stop_gradient
from gradix.numpy.promotion import promote_dtypes_inexact


def arguments(name: str, *xs):
    """The arguments as arrays of one float dtype.

    Python numbers that are broadcast to the rank of an array are no longer weakly typed. Where a
    parameter is outside of its domain, the first argument becomes NaN, and with it every result.
    """
    given, xs = xs, promote_dtypes_inexact(name, *xs)
    if xs[0].aval.weak_type and len({x.ndim for x in xs}) > 1:
        xs = [lax.convert_element_type(x, x.dtype) for x in xs]
    valid = None
    for i, inside in _DOMAINS.get(name.partition(".")[0], {}).items():
        if isinstance(given[i], (int, float)) and inside(given[i]):
            continue
        here = inside(xs[i])
        valid = here if valid is None else valid & here
    return xs if valid is None else [jnp.where(valid, xs[0], np.nan), *xs[1:]]


def _positive(x):
    return x > 0


def _not_negative(x):
    return x >= 0


def _probability(p):
    return (p >= 0) & (p <= 1)


def _possible(p):
    return (p > 0) & (p <= 1)


# The domains of a distribution's parameters, by their place among the arguments.
_SCALE_AT_2, _SHAPE_AND_SCALE = {2: _positive}, {1: _positive, 3: _positive}
_DOMAINS: dict[str, dict] = {
    "bernoulli": {1: _probability},
    "beta": {1: _positive, 2: _positive, 4: _positive},
    "betabinom": {1: _not_negative, 2: _positive, 3: _positive},
    "binom": {1: _not_negative, 2: _probability},
    "chi2": _SHAPE_AND_SCALE,
    "gamma": _SHAPE_AND_SCALE,
    "geom": {1: _possible},
    "nbinom": {1: _positive, 2: _possible},
    "pareto": _SHAPE_AND_SCALE,
    "poisson": {1: _not_negative},
    "t": _SHAPE_AND_SCALE,
    "truncnorm": {4: _positive},
    "vonmises": {1: _not_negative},
    "wrapcauchy": {1: lambda c: (c > 0) & (c < 1)},
    **dict.fromkeys(
        ("cauchy", "expon", "gumbel_l", "gumbel_r", "laplace", "logistic", "norm", "uniform"),
        _SCALE_AT_2,
    ),
}


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
    return jnp.where(
        near,
        jnp.log(-jnp.expm1(jnp.where(near, x, -1))),
        jnp.log1p(-jnp.exp(jnp.where(near, -1, x))),
    )


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
