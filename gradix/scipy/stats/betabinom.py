"""The beta-binomial distribution: `C(n, k) B(k + a, n - k + b) / B(a, b)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special.gammas import log_beta
from gradix.scipy.stats._distribution import Distribution, Parameter, is_not_negative, is_positive
from gradix.scipy.stats.operands import as_log_probability, kept, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "betabinom",
    "the beta-binomial distribution",
    n=Parameter("the number of trials", is_not_negative),
    a=Parameter("the first shape of the beta distribution, positive", is_positive),
    b=Parameter("the second shape, positive", is_positive),
)


@_family.given("1, 2, 1.0, 1.0", "-1.0986")
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    k = k - loc
    outside = (k < 0) | (k > n)
    k = kept(outside, k, 0)
    ways = -log_beta(k + 1, n - k + 1, n + 2) - jnp.log1p(n)
    chances = log_beta(k + a, n - k + b, n + a + b) - log_beta(a, b, a + b)
    return within(outside, as_log_probability(ways + chances), -np.inf)


pmf = _family.derived("pmf", jnp.exp, logpmf, example="1, 2, 1.0, 1.0", value="0.3333")


__dir__ = _own_names(__name__)
