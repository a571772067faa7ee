"""The Laplace distribution: `exp(-|z|) / 2`, `z = (x - loc) / scale`."""

from __future__ import annotations

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats.operands import arguments


def logpdf(x, loc=0, scale=1) -> Array:
    """The logarithm of the density of the Laplace distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import laplace
        >>> laplace.logpdf(1.0).round(4) + 0.0
        Array(-1.6931, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("laplace.logpdf", x, loc, scale)
    return -abs(x - loc) / scale - jnp.log(2 * scale)


def pdf(x, loc=0, scale=1) -> Array:
    """The density of the Laplace distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import laplace
        >>> laplace.pdf(1.0).round(4) + 0.0
        Array(0.1839, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the Laplace distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import laplace
        >>> laplace.cdf(1.0).round(4) + 0.0
        Array(0.8161, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    tail = jnp.exp(-abs(z)) / 2
    return jnp.where(z < 0, tail, 1 - tail)


__dir__ = _own_names(__name__)
