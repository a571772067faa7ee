"""The binomial distribution: `C(n, k) pᵏ (1 - p)ⁿ⁻ᵏ`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py, xlogy
from gradix.scipy.special.gammas import log_beta
from gradix.scipy.stats._distribution import Distribution, Parameter, is_not_negative, is_probability
from gradix.scipy.stats.operands import as_log_probability, kept, within, zero_where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "binom",
    "the binomial distribution",
    n=Parameter("the number of trials", is_not_negative),
    p=Parameter("the probability of success", is_probability),
)


@_family.given("1, 2, 0.5", "-0.6931")
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    k = k - loc
    outside = (k < 0) | (k > n)
    k = kept(outside, k, 0)
    ways = -log_beta(k + 1, n - k + 1, n + 2) - jnp.log1p(n)
    ways = zero_where((k == 0) | (k == n), ways)
    value = as_log_probability(ways + xlogy(k, p) + xlog1py(n - k, -p))
    return within(outside, value, -np.inf)


pmf = _family.derived("pmf", jnp.exp, logpmf, example="1, 2, 0.5", value="0.5")


__dir__ = _own_names(__name__)
