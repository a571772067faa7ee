"""The Pareto distribution: `b / zᵇ⁺¹`, `z = (x - loc) / scale ≥ 1`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats.operands import arguments, kept, log1m_exp, probability, within


def logpdf(x, b, loc=0, scale=1) -> Array:
    """The logarithm of the density of the Pareto distribution.

    Args:
        x: the points at which it is evaluated.
        b: the power, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import pareto
        >>> pareto.logpdf(2.0, 1.0).round(4) + 0.0
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = arguments("pareto.logpdf", x, b, loc, scale)
    z = (x - loc) / scale
    outside = z < 1
    return within(outside, jnp.log(b / scale) - (b + 1) * jnp.log(kept(outside, z, 1)), -np.inf)


def pdf(x, b, loc=0, scale=1) -> Array:
    """The density of the Pareto distribution.

    Args:
        x: the points at which it is evaluated.
        b: the power, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import pareto
        >>> pareto.pdf(2.0, 1.0).round(4) + 0.0
        Array(0.25, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, b, loc, scale))


def logsf(x, b, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        b: the power, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import pareto
        >>> pareto.logsf(2.0, 1.0).round(4) + 0.0
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = arguments("pareto.logsf", x, b, loc, scale)
    z = (x - loc) / scale
    return within(z < 1, -b * jnp.log(kept(z < 1, z, 1)), 0)


def sf(x, b, loc=0, scale=1) -> Array:
    """The probability that a draw from the Pareto distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        b: the power, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import pareto
        >>> pareto.sf(2.0, 1.0).round(4) + 0.0
        Array(0.5, dtype=float32, weak_type=True)
    """
    return jnp.exp(logsf(x, b, loc, scale))


def cdf(x, b, loc=0, scale=1) -> Array:
    """The probability that a draw from the Pareto distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        b: the power, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import pareto
        >>> pareto.cdf(2.0, 1.0).round(4) + 0.0
        Array(0.5, dtype=float32, weak_type=True)
    """
    return -jnp.expm1(logsf(x, b, loc, scale))


def logcdf(x, b, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        b: the power, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import pareto
        >>> pareto.logcdf(2.0, 1.0).round(4) + 0.0
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    tail = logsf(x, b, loc, scale)
    return within(tail >= 0, log1m_exp(kept(tail >= 0, tail, -1)), -np.inf)


def ppf(q, b, loc=0, scale=1) -> Array:
    """The quantile of the Pareto distribution, the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1.
        b: the power, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import pareto
        >>> pareto.ppf(0.5, 1.0).round(4) + 0.0
        Array(2., dtype=float32, weak_type=True)
    """
    q, b, loc, scale = arguments("pareto.ppf", q, b, loc, scale)
    return probability(q, loc + scale * jnp.exp(-jnp.log1p(-q) / b))


__dir__ = _own_names(__name__)
