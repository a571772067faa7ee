"""The generalized normal distribution: `β exp(-|x|^β) / (2 Γ(1/β))`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import gammaincc, gammaln
from gradix.scipy.stats.operands import arguments


def logpdf(x, beta) -> Array:
    """The logarithm of the density of the generalized normal distribution.

    Args:
        x: the points at which it is evaluated.
        beta: the power, positive.

    Example:
        >>> from gradix.scipy.stats import gennorm
        >>> gennorm.logpdf(0.0, 2.0).round(4) + 0.0
        Array(-0.5724, dtype=float32, weak_type=True)
    """
    x, beta = arguments("gennorm.logpdf", x, beta)
    beta = jnp.where(beta > 0, beta, np.nan)  # A NaN to the power 0 would be 1.
    return jnp.log(beta / 2) - gammaln(1 / beta) - jnp.power(abs(x), beta)


def pdf(x, beta) -> Array:
    """The density of the generalized normal distribution.

    Args:
        x: the points at which it is evaluated.
        beta: the power, positive.

    Example:
        >>> from gradix.scipy.stats import gennorm
        >>> gennorm.pdf(0.0, 2.0).round(4) + 0.0
        Array(0.5642, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, beta))


def cdf(x, beta) -> Array:
    """The probability that a draw from the generalized normal distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        beta: the power, positive.

    Example:
        >>> from gradix.scipy.stats import gennorm
        >>> gennorm.cdf(0.5, 2.0).round(4) + 0.0
        Array(0.7602, dtype=float32, weak_type=True)
    """
    x, beta = arguments("gennorm.cdf", x, beta)
    beta = jnp.where(beta > 0, beta, np.nan)
    tail = gammaincc(1 / beta, jnp.power(abs(x), beta)) / 2
    return jnp.where(x < 0, tail, 1 - tail)


__dir__ = _own_names(__name__)
