"""The logistic distribution: `e⁻ᶻ / (1 + e⁻ᶻ)²`, `z = (x - loc) / scale`."""

from __future__ import annotations

from gradix import lax, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import logit
from gradix.scipy.stats.operands import arguments


def logpdf(x, loc=0, scale=1) -> Array:
    """The logarithm of the density of the logistic distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import logistic
        >>> logistic.logpdf(0.0).round(4) + 0.0
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("logistic.logpdf", x, loc, scale)
    z = abs(x - loc) / scale
    return -z - 2 * jnp.log1p(jnp.exp(-z)) - jnp.log(scale)


def pdf(x, loc=0, scale=1) -> Array:
    """The density of the logistic distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import logistic
        >>> logistic.pdf(0.0).round(4) + 0.0
        Array(0.25, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the logistic distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import logistic
        >>> logistic.cdf(1.0).round(4) + 0.0
        Array(0.7311, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("logistic.cdf", x, loc, scale)
    return lax.logistic((x - loc) / scale)


def sf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the logistic distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import logistic
        >>> logistic.sf(1.0).round(4) + 0.0
        Array(0.2689, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("logistic.sf", x, loc, scale)
    return lax.logistic((loc - x) / scale)


def ppf(x, loc=0, scale=1) -> Array:
    """The quantile of the logistic distribution, the inverse of `cdf`.

    Args:
        x: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import logistic
        >>> logistic.ppf(0.75).round(4) + 0.0
        Array(1.0986, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("logistic.ppf", x, loc, scale)
    return loc + scale * logit(x)


def isf(x, loc=0, scale=1) -> Array:
    """The inverse of `sf`: the value that a draw exceeds with a given probability.

    Args:
        x: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import logistic
        >>> logistic.isf(0.25).round(4) + 0.0
        Array(1.0986, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("logistic.isf", x, loc, scale)
    return loc - scale * logit(x)


__dir__ = _own_names(__name__)
