"""The χ² distribution: the gamma distribution with shape df / 2 and twice the scale."""

from __future__ import annotations

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats import gamma
from gradix.scipy.stats.operands import arguments


def logpdf(x, df, loc=0, scale=1) -> Array:
    """The logarithm of the density of the χ² distribution.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import chi2
        >>> chi2.logpdf(1.0, 2.0).round(4) + 0.0
        Array(-1.1931, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = arguments("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


def cdf(x, df, loc=0, scale=1) -> Array:
    """The probability that a draw from the χ² distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import chi2
        >>> chi2.cdf(1.0, 2.0).round(4) + 0.0
        Array(0.3935, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = arguments("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


def logcdf(x, df, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import chi2
        >>> chi2.logcdf(1.0, 2.0).round(4) + 0.0
        Array(-0.9328, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = arguments("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


def sf(x, df, loc=0, scale=1) -> Array:
    """The probability that a draw from the χ² distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import chi2
        >>> chi2.sf(1.0, 2.0).round(4) + 0.0
        Array(0.6065, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = arguments("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


def logsf(x, df, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import chi2
        >>> chi2.logsf(1.0, 2.0).round(4) + 0.0
        Array(-0.5, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = arguments("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, df / 2, loc, 2 * scale)


def pdf(x, df, loc=0, scale=1) -> Array:
    """The density of the χ² distribution.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import chi2
        >>> chi2.pdf(1.0, 2.0).round(4) + 0.0
        Array(0.3033, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, df, loc, scale))


__dir__ = _own_names(__name__)
