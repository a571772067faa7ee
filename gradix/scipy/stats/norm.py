"""The normal distribution: `exp(-z²/2) / √(2π)`, `z = (x - loc) / scale`."""

from __future__ import annotations

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import log_ndtr, ndtr, ndtri
from gradix.scipy.stats.operands import LOG_2PI, arguments


def logpdf(x, loc=0, scale=1) -> Array:
    """The logarithm of the density of the normal distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.logpdf(0.0).round(4) + 0.0
        Array(-0.9189, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("norm.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -(z * z + LOG_2PI) / 2 - jnp.log(abs(scale))


def pdf(x, loc=0, scale=1) -> Array:
    """The density of the normal distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.pdf(0.0).round(4) + 0.0
        Array(0.3989, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the normal distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.cdf(0.0).round(4) + 0.0
        Array(0.5, dtype=float32)
    """
    x, loc, scale = arguments("norm.cdf", x, loc, scale)
    return ndtr((x - loc) / scale)


def logcdf(x, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.logcdf(0.0).round(4) + 0.0
        Array(-0.6931, dtype=float32)
    """
    x, loc, scale = arguments("norm.logcdf", x, loc, scale)
    return log_ndtr((x - loc) / scale)


def sf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the normal distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.sf(0.0).round(4) + 0.0
        Array(0.5, dtype=float32)
    """
    x, loc, scale = arguments("norm.sf", x, loc, scale)
    return ndtr((loc - x) / scale)


def logsf(x, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.logsf(0.0).round(4) + 0.0
        Array(-0.6931, dtype=float32)
    """
    x, loc, scale = arguments("norm.logsf", x, loc, scale)
    return log_ndtr((loc - x) / scale)


def ppf(q, loc=0, scale=1) -> Array:
    """The quantile of the normal distribution, the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.ppf(0.975).round(4) + 0.0
        Array(1.96, dtype=float32)
    """
    q, loc, scale = arguments("norm.ppf", q, loc, scale)
    return ndtri(q) * scale + loc


def isf(q, loc=0, scale=1) -> Array:
    """The inverse of `sf`: the value that a draw exceeds with a given probability.

    Args:
        q: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import norm
        >>> norm.isf(0.025).round(4) + 0.0
        Array(1.96, dtype=float32)
    """
    q, loc, scale = arguments("norm.isf", q, loc, scale)
    return loc - ndtri(q) * scale


__dir__ = _own_names(__name__)
