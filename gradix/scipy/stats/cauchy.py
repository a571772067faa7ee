"""The Cauchy distribution: `1 / (π (1 + z²))`, `z = (x - loc) / scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats._distribution import Distribution
from gradix.scipy.stats.operands import probability

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("cauchy", "the Cauchy distribution")


def _quantile(q):
    """`tan(π (q - 1/2))`, computed so that it is accurate near both ends."""
    near = jnp.minimum(q, 1 - q)
    size = 1 / jnp.tan(np.pi * jnp.where(near > 0, near, 0.25))
    size = jnp.where(near > 0, size, np.inf)
    return probability(q, jnp.where(q == 0.5, 0, jnp.where(q < 0.5, -size, size)))


@_family.given("0.0", "-1.1447")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    return -jnp.log(np.pi * scale) - jnp.log1p(z * z)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0", value="0.3183")


@_family.given("1.0", "0.75")
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return jnp.arctan2(jnp.ones_like(x), (loc - x) / scale) / np.pi


logcdf = _family.derived("logcdf", jnp.log, cdf, example="1.0", value="-0.2877")


@_family.given("1.0", "0.25")
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return jnp.arctan2(jnp.ones_like(x), (x - loc) / scale) / np.pi


logsf = _family.derived("logsf", jnp.log, sf, example="1.0", value="-1.3863")


@_family.given("0.75", "1.")
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return loc + scale * _quantile(q)


@_family.given("0.25", "1.")
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return loc - scale * _quantile(q)


__dir__ = _own_names(__name__)
