"""The Gumbel distribution of maxima: `exp(-(z + e⁻ᶻ))`, `z = (x - loc) / scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats._distribution import Distribution
from gradix.scipy.stats.operands import complement, log1m_exp, probability

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("gumbel_r", "the Gumbel distribution of maxima")


@_family.given("0.0", "-1.")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return -(z + jnp.exp(-z)) - jnp.log(scale)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0", value="0.3679")


@_family.given("0.0", "-1.")
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return -jnp.exp((loc - x) / scale)


cdf = _family.derived("cdf", jnp.exp, logcdf, example="0.0", value="0.3679")
sf = _family.derived("sf", complement, logcdf, example="0.0", value="0.6321")
logsf = _family.derived("logsf", log1m_exp, logcdf, example="0.0", value="-0.4587")


@_family.given("0.5", "0.3665")
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return probability(p, loc - scale * jnp.log(-jnp.log(p)))


__dir__ = _own_names(__name__)
