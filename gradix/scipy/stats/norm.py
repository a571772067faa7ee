"""The normal distribution: `exp(-z²/2) / √(2π)`, `z = (x - loc) / scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import log_ndtr, ndtr, ndtri
from gradix.scipy.stats._distribution import Distribution
from gradix.scipy.stats.operands import LOG_2PI

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("norm", "the normal distribution")


@_family.given("0.0", "-0.9189")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return -(z * z + LOG_2PI) / 2 - jnp.log(abs(scale))


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0", value="0.3989")


@_family.given("0.0", "0.5", is_weak=False)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return ndtr((x - loc) / scale)


@_family.given("0.0", "-0.6931", is_weak=False)
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return log_ndtr((x - loc) / scale)


@_family.given("0.0", "0.5", is_weak=False)
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return ndtr((loc - x) / scale)


@_family.given("0.0", "-0.6931", is_weak=False)
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return log_ndtr((loc - x) / scale)


@_family.given("0.975", "1.96", is_weak=False)
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return ndtri(q) * scale + loc


@_family.given("0.025", "1.96", is_weak=False)
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return loc - ndtri(q) * scale


__dir__ = _own_names(__name__)
