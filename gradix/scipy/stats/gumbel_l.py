"""The Gumbel distribution of minima: `exp(z - eᶻ)`, `z = (x - loc) / scale`."""

from __future__ import annotations

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats.operands import arguments, log1m_exp, probability


def logpdf(x, loc=0, scale=1) -> Array:
    """The logarithm of the density of the Gumbel distribution of minima.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gumbel_l
        >>> gumbel_l.logpdf(0.0).round(4) + 0.0
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("gumbel_l.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return z - jnp.exp(z) - jnp.log(scale)


def pdf(x, loc=0, scale=1) -> Array:
    """The density of the Gumbel distribution of minima.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gumbel_l
        >>> gumbel_l.pdf(0.0).round(4) + 0.0
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


def logsf(x, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gumbel_l
        >>> gumbel_l.logsf(0.0).round(4) + 0.0
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("gumbel_l.logsf", x, loc, scale)
    return -jnp.exp((x - loc) / scale)


def sf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the Gumbel distribution of minima exceeds x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gumbel_l
        >>> gumbel_l.sf(0.0).round(4) + 0.0
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return jnp.exp(logsf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the Gumbel distribution of minima is at most x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gumbel_l
        >>> gumbel_l.cdf(0.0).round(4) + 0.0
        Array(0.6321, dtype=float32, weak_type=True)
    """
    return -jnp.expm1(logsf(x, loc, scale))


def logcdf(x, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gumbel_l
        >>> gumbel_l.logcdf(0.0).round(4) + 0.0
        Array(-0.4587, dtype=float32, weak_type=True)
    """
    return log1m_exp(logsf(x, loc, scale))


def ppf(p, loc=0, scale=1) -> Array:
    """The quantile of the Gumbel distribution of minima, the inverse of `cdf`.

    Args:
        p: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gumbel_l
        >>> gumbel_l.ppf(0.5).round(4) + 0.0
        Array(-0.3665, dtype=float32, weak_type=True)
    """
    p, loc, scale = arguments("gumbel_l.ppf", p, loc, scale)
    return probability(p, loc + scale * jnp.log(-jnp.log1p(-p)))


__dir__ = _own_names(__name__)
