"""The binomial distribution: `C(n, k) pᵏ (1 - p)ⁿ⁻ᵏ`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py, xlogy
from gradix.scipy.special.gammas import log_beta
from gradix.scipy.stats.operands import arguments, as_log_probability, kept, within, zero_where


def logpmf(k, n, p, loc=0) -> Array:
    """The logarithm of the probability of `k` under the binomial distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        n: the number of trials.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import binom
        >>> binom.logpmf(1, 2, 0.5).round(4) + 0.0
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    k, n, p, loc = arguments("binom.logpmf", k, n, p, loc)
    k = k - loc
    outside = (k < 0) | (k > n)
    k = kept(outside, k, 0)
    ways = -log_beta(k + 1, n - k + 1, n + 2) - jnp.log1p(n)
    ways = zero_where((k == 0) | (k == n), ways)
    value = as_log_probability(ways + xlogy(k, p) + xlog1py(n - k, -p))
    return within(outside, value, -np.inf)


def pmf(k, n, p, loc=0) -> Array:
    """The probability of `k` under the binomial distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        n: the number of trials.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import binom
        >>> binom.pmf(1, 2, 0.5).round(4) + 0.0
        Array(0.5, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, p, loc))


__dir__ = _own_names(__name__)
