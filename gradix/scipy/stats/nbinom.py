"""The negative binomial distribution of failures before success n: `C(k+n-1, k) pⁿ (1-p)ᵏ`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py, xlogy
from gradix.scipy.special.gammas import log_beta
from gradix.scipy.stats.operands import arguments, as_log_probability, kept, within, zero_where


def logpmf(k, n, p, loc=0) -> Array:
    """The logarithm of the probability of `k` under the negative binomial distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        n: the number of successes, positive.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import nbinom
        >>> nbinom.logpmf(1, 2, 0.5).round(4) + 0.0
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    k, n, p, loc = arguments("nbinom.logpmf", k, n, p, loc)
    k = k - loc
    outside = k < 0
    k = kept(outside, k, 0)
    ways = -log_beta(k + 1, n, k + n + 1) - jnp.log(k + n)
    ways = zero_where(k == 0, ways)
    value = as_log_probability(ways + xlogy(n, p) + xlog1py(k, -p))
    return within(outside, value, -np.inf)


def pmf(k, n, p, loc=0) -> Array:
    """The probability of `k` under the negative binomial distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        n: the number of successes, positive.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import nbinom
        >>> nbinom.pmf(1, 2, 0.5).round(4) + 0.0
        Array(0.25, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, p, loc))


__dir__ = _own_names(__name__)
