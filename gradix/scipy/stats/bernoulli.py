"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py, xlogy
from gradix.scipy.stats._distribution import Distribution, Parameter, is_probability
from gradix.scipy.stats.operands import kept, probability, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "bernoulli",
    "the Bernoulli distribution",
    k=Parameter("the outcomes, 0 or 1, floats or integers"),
    p=Parameter("the probability of success", is_probability),
)


@_family.given("1, 0.25", "-1.3863")
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    k = k - loc
    outside = (k < 0) | (k > 1)
    k = kept(outside, k, 0)
    return within(outside, xlogy(k, p) + xlog1py(1 - k, -p), -np.inf)


pmf = _family.derived("pmf", jnp.exp, logpmf, example="1, 0.25", value="0.25")


@_family.given("0, 0.25", "0.75")
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(k == k, value, np.nan)


@_family.given("0.9, 0.25", "1.", is_weak=False)
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    value = jnp.where(q <= 1 - p, 0, 1).astype(q.dtype)
    return probability(q, value)


__dir__ = _own_names(__name__)
