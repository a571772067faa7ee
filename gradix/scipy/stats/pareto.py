"""The Pareto distribution: `b / zᵇ⁺¹`, `z = (x - loc) / scale ≥ 1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats._distribution import Distribution, Parameter, is_positive
from gradix.scipy.stats.operands import complement, kept, log1m_exp, probability, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("pareto", "the Pareto distribution", b=Parameter("the power, positive", is_positive))


def _logarithm_of_rest(tail):
    return within(tail >= 0, log1m_exp(kept(tail >= 0, tail, -1)), -np.inf)


@_family.given("2.0, 1.0", "-1.3863")
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    outside = z < 1
    return within(outside, jnp.log(b / scale) - (b + 1) * jnp.log(kept(outside, z, 1)), -np.inf)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="2.0, 1.0", value="0.25")


@_family.given("2.0, 1.0", "-0.6931")
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return within(z < 1, -b * jnp.log(kept(z < 1, z, 1)), 0)


sf = _family.derived("sf", jnp.exp, logsf, example="2.0, 1.0", value="0.5")
cdf = _family.derived("cdf", complement, logsf, example="2.0, 1.0", value="0.5")
logcdf = _family.derived("logcdf", _logarithm_of_rest, logsf, example="2.0, 1.0", value="-0.6931")


@_family.given("0.5, 1.0", "2.")
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return probability(q, loc + scale * jnp.exp(-jnp.log1p(-q) / b))


__dir__ = _own_names(__name__)
