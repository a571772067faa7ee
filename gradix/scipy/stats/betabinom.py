"""The beta-binomial distribution: `C(n, k) B(k + a, n - k + b) / B(a, b)`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special.gammas import log_beta
from gradix.scipy.stats.operands import arguments, as_log_probability, kept, within


def logpmf(k, n, a, b, loc=0) -> Array:
    """The logarithm of the probability of `k` under the beta-binomial distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        n: the number of trials.
        a: the first shape of the beta distribution, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import betabinom
        >>> betabinom.logpmf(1, 2, 1.0, 1.0).round(4) + 0.0
        Array(-1.0986, dtype=float32, weak_type=True)
    """
    k, n, a, b, loc = arguments("betabinom.logpmf", k, n, a, b, loc)
    k = k - loc
    outside = (k < 0) | (k > n)
    k = kept(outside, k, 0)
    ways = -log_beta(k + 1, n - k + 1, n + 2) - jnp.log1p(n)
    chances = log_beta(k + a, n - k + b, n + a + b) - log_beta(a, b, a + b)
    return within(outside, as_log_probability(ways + chances), -np.inf)


def pmf(k, n, a, b, loc=0) -> Array:
    """The probability of `k` under the beta-binomial distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        n: the number of trials.
        a: the first shape of the beta distribution, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import betabinom
        >>> betabinom.pmf(1, 2, 1.0, 1.0).round(4) + 0.0
        Array(0.3333, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, a, b, loc))


__dir__ = _own_names(__name__)
