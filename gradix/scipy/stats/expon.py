"""The exponential distribution: `exp(-z)`, `z = (x - loc) / scale ≥ 0`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats.operands import arguments, kept, log1m_exp, probability, within


def logpdf(x, loc=0, scale=1) -> Array:
    """The logarithm of the density of the exponential distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import expon
        >>> expon.logpdf(1.0).round(4) + 0.0
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("expon.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, -z - jnp.log(scale), -np.inf)


def pdf(x, loc=0, scale=1) -> Array:
    """The density of the exponential distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import expon
        >>> expon.pdf(1.0).round(4) + 0.0
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the exponential distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import expon
        >>> expon.cdf(1.0).round(4) + 0.0
        Array(0.6321, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("expon.cdf", x, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, -jnp.expm1(-z), 0)


def logcdf(x, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import expon
        >>> expon.logcdf(1.0).round(4) + 0.0
        Array(-0.4587, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("expon.logcdf", x, loc, scale)
    z = (x - loc) / scale
    return within(z <= 0, log1m_exp(-kept(z <= 0, z, 1)), -np.inf)


def sf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the exponential distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import expon
        >>> expon.sf(1.0).round(4) + 0.0
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return jnp.exp(logsf(x, loc, scale))


def logsf(x, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import expon
        >>> expon.logsf(1.0).round(4) + 0.0
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("expon.logsf", x, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, -z, 0)


def ppf(q, loc=0, scale=1) -> Array:
    """The quantile of the exponential distribution, the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import expon
        >>> expon.ppf(0.5).round(4) + 0.0
        Array(0.6931, dtype=float32, weak_type=True)
    """
    q, loc, scale = arguments("expon.ppf", q, loc, scale)
    return probability(q, loc - scale * jnp.log1p(-q))


__dir__ = _own_names(__name__)
