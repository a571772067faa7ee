"""The logistic distribution: `e⁻ᶻ / (1 + e⁻ᶻ)²`, `z = (x - loc) / scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import logit
from gradix.scipy.stats._distribution import Distribution

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("logistic", "the logistic distribution")


@_family.given("0.0", "-1.3863")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = abs(x - loc) / scale
    return -z - 2 * jnp.log1p(jnp.exp(-z)) - jnp.log(scale)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0", value="0.25")


@_family.given("1.0", "0.7311")
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return lax.logistic((x - loc) / scale)


@_family.given("1.0", "0.2689")
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return lax.logistic((loc - x) / scale)


@_family.given("0.75", "1.0986")
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return loc + scale * logit(x)


@_family.given("0.25", "1.0986")
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return loc - scale * logit(x)


__dir__ = _own_names(__name__)
