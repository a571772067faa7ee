"""The negative binomial distribution of failures before success n: `C(k+n-1, k) pⁿ (1-p)ᵏ`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py, xlogy
from gradix.scipy.special.gammas import log_beta
from gradix.scipy.stats._distribution import Distribution, Parameter, is_positive, is_possible
from gradix.scipy.stats.operands import as_log_probability, kept, within, zero_where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "nbinom",
    "the negative binomial distribution",
    n=Parameter("the number of successes, positive", is_positive),
    p=Parameter("the probability of success", is_possible),
)


@_family.given("1, 2, 0.5", "-1.3863")
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    k = k - loc
    outside = k < 0
    k = kept(outside, k, 0)
    ways = -log_beta(k + 1, n, k + n + 1) - jnp.log(k + n)
    ways = zero_where(k == 0, ways)
    value = as_log_probability(ways + xlogy(n, p) + xlog1py(k, -p))
    return within(outside, value, -np.inf)


pmf = _family.derived("pmf", jnp.exp, logpmf, example="1, 2, 0.5", value="0.25")


__dir__ = _own_names(__name__)
