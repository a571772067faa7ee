"""The geometric distribution of trials until the first success: `(1 - p)ᵏ⁻¹ p`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py
from gradix.scipy.stats.operands import arguments, kept, within


def logpmf(k, p, loc=0) -> Array:
    """The logarithm of the probability of `k` under the geometric distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import geom
        >>> geom.logpmf(2, 0.5).round(4) + 0.0
        Array(-1.3863, dtype=float32, weak_type=True)
    """
    k, p, loc = arguments("geom.logpmf", k, p, loc)
    k = k - loc
    outside = k < 1
    k = kept(outside, k, 1)
    return within(outside, xlog1py(k - 1, -p) + jnp.log(p), -np.inf)


def pmf(k, p, loc=0) -> Array:
    """The probability of `k` under the geometric distribution.

    Args:
        k: the counts at which it is evaluated, floats or integers.
        p: the probability of success.
        loc: the location, by which the distribution is shifted.

    Example:
        >>> from gradix.scipy.stats import geom
        >>> geom.pmf(2, 0.5).round(4) + 0.0
        Array(0.25, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, p, loc))


__dir__ = _own_names(__name__)
