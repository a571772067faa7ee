"""The χ² distribution: the gamma distribution with shape df / 2 and twice the scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats import gamma
from gradix.scipy.stats._distribution import Distribution, Parameter, is_positive

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("chi2", "the χ² distribution", df=Parameter("the degrees of freedom, positive", is_positive))


@_family.given("1.0, 2.0", "-1.1931")
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@_family.given("1.0, 2.0", "0.3935")
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@_family.given("1.0, 2.0", "-0.9328")
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@_family.given("1.0, 2.0", "0.6065")
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return gamma.sf(x, df / 2, loc, 2 * scale)


@_family.given("1.0, 2.0", "-0.5")
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return gamma.logsf(x, df / 2, loc, 2 * scale)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="1.0, 2.0", value="0.3033")


__dir__ = _own_names(__name__)
