"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py, xlogy
from gradix.scipy.stats.operands import arguments, kept, probability, within


def logpmf(k, p, loc=0) -> Array:
    """The logarithm of the probability of `k` under the Bernoulli distribution.

    Args:
        k: the outcomes, 0 or 1, floats or integers.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import bernoulli
        >>> bernoulli.logpmf(1, 0.25).round(4) + 0.0
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    k, p, loc = arguments("bernoulli.logpmf", k, p, loc)
    k = k - loc
    outside = (k < 0) | (k > 1)
    k = kept(outside, k, 0)
    return within(outside, xlogy(k, p) + xlog1py(1 - k, -p), -np.inf)


def pmf(k, p, loc=0) -> Array:
    """The probability of `k` under the Bernoulli distribution.

    Args:
        k: the outcomes, 0 or 1, floats or integers.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import bernoulli
        >>> bernoulli.pmf(1, 0.25).round(4) + 0.0
        Array(0.25, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, p, loc))


def cdf(k, p) -> Array:
    """The probability that a draw from the Bernoulli distribution is at most k.

    Args:
        k: the outcomes, 0 or 1, floats or integers.
        p: the probability of success.

    Example:
        >>> from gradix.scipy.stats import bernoulli
        >>> bernoulli.cdf(0, 0.25).round(4) + 0.0
        Array(0.75, dtype=float32, weak_type=True)
    """
    k, p = arguments("bernoulli.cdf", k, p)
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(k == k, value, np.nan)


def ppf(q, p) -> Array:
    """The quantile of the Bernoulli distribution, the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1.
        p: the probability of success.

    Example:
        >>> from gradix.scipy.stats import bernoulli
        >>> bernoulli.ppf(0.9, 0.25).round(4) + 0.0
        Array(1., dtype=float32)
    """
    q, p = arguments("bernoulli.ppf", q, p)
    value = jnp.where(q <= 1 - p, 0, 1).astype(q.dtype)
    return probability(q, value)


__dir__ = _own_names(__name__)
