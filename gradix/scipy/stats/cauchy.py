"""The Cauchy distribution: `1 / (π (1 + z²))`, `z = (x - loc) / scale`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats.operands import arguments, probability


def _quantile(q):
    """`tan(π (q - 1/2))`, computed so that it is accurate near both ends."""
    near = jnp.minimum(q, 1 - q)
    size = 1 / jnp.tan(np.pi * jnp.where(near > 0, near, 0.25))
    size = jnp.where(near > 0, size, np.inf)
    return probability(q, jnp.where(q == 0.5, 0, jnp.where(q < 0.5, -size, size)))


def logpdf(x, loc=0, scale=1) -> Array:
    """The logarithm of the density of the Cauchy distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.logpdf(0.0).round(4) + 0.0
        Array(-1.1447, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -jnp.log(np.pi * scale) - jnp.log1p(z * z)


def pdf(x, loc=0, scale=1) -> Array:
    """The density of the Cauchy distribution.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.pdf(0.0).round(4) + 0.0
        Array(0.3183, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the Cauchy distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.cdf(1.0).round(4) + 0.0
        Array(0.75, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("cauchy.cdf", x, loc, scale)
    return jnp.arctan2(jnp.ones_like(x), (loc - x) / scale) / np.pi


def logcdf(x, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.logcdf(1.0).round(4) + 0.0
        Array(-0.2877, dtype=float32, weak_type=True)
    """
    return jnp.log(cdf(x, loc, scale))


def sf(x, loc=0, scale=1) -> Array:
    """The probability that a draw from the Cauchy distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.sf(1.0).round(4) + 0.0
        Array(0.25, dtype=float32, weak_type=True)
    """
    x, loc, scale = arguments("cauchy.sf", x, loc, scale)
    return jnp.arctan2(jnp.ones_like(x), (x - loc) / scale) / np.pi


def logsf(x, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.logsf(1.0).round(4) + 0.0
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    return jnp.log(sf(x, loc, scale))


def ppf(q, loc=0, scale=1) -> Array:
    """The quantile of the Cauchy distribution, the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.ppf(0.75).round(4) + 0.0
        Array(1., dtype=float32, weak_type=True)
    """
    q, loc, scale = arguments("cauchy.ppf", q, loc, scale)
    return loc + scale * _quantile(q)


def isf(q, loc=0, scale=1) -> Array:
    """The inverse of `sf`: the value that a draw exceeds with a given probability.

    Args:
        q: probabilities, from 0 to 1.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import cauchy
        >>> cauchy.isf(0.25).round(4) + 0.0
        Array(1., dtype=float32, weak_type=True)
    """
    q, loc, scale = arguments("cauchy.isf", q, loc, scale)
    return loc - scale * _quantile(q)


__dir__ = _own_names(__name__)
