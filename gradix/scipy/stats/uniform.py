"""The uniform distribution from `loc` to `loc + scale`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats.operands import arguments, probability, within


def logpdf(x, loc=0, scale=1) -> Array:
    """The logarithm of the density of the uniform distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import uniform
        >>> uniform.logpdf(0.5).round(4) + 0.0
        Array(0., dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("uniform.logpdf", x, loc, scale)
    return within((x < loc) | (x > loc + scale), -jnp.log(scale) + 0 * x, -np.inf)


def pdf(x, loc=0, scale=1) -> Array:
    """The density of the uniform distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import uniform
        >>> uniform.pdf(0.5).round(4) + 0.0
        Array(1., dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the uniform distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import uniform
        >>> uniform.cdf(0.25).round(4) + 0.0
        Array(0.25, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("uniform.cdf", x, loc, scale)
    return jnp.clip((x - loc) / scale, 0, 1)


def ppf(q, loc=0, scale=1) -> Array:
    """The quantile of the uniform distribution, the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import uniform
        >>> uniform.ppf(0.25, 1.0, 2.0).round(4) + 0.0
        Array(1.5, dtype=float32, weak_type=True)
    """
    q, loc, scale = arguments("uniform.ppf", q, loc, scale)
    return probability(q, loc + q * scale)


__dir__ = _own_names(__name__)
