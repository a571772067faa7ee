"""The exponential distribution: `exp(-z)`, `z = (x - loc) / scale ≥ 0`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats._distribution import Distribution
from gradix.scipy.stats.operands import kept, log1m_exp, probability, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("expon", "the exponential distribution")


@_family.given("1.0", "-1.")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return within(z < 0, -z - jnp.log(scale), -np.inf)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="1.0", value="0.3679")


@_family.given("1.0", "0.6321")
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return within(z < 0, -jnp.expm1(-z), 0)


@_family.given("1.0", "-0.4587")
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return within(z <= 0, log1m_exp(-kept(z <= 0, z, 1)), -np.inf)


@_family.given("1.0", "-1.")
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return within(z < 0, -z, 0)


sf = _family.derived("sf", jnp.exp, logsf, example="1.0", value="0.3679")


@_family.given("0.5", "0.6931")
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return probability(q, loc - scale * jnp.log1p(-q))


__dir__ = _own_names(__name__)
