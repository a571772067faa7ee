"""The Laplace distribution: `exp(-|z|) / 2`, `z = (x - loc) / scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats._distribution import Distribution

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("laplace", "the Laplace distribution")


@_family.given("1.0", "-1.6931")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return -abs(x - loc) / scale - jnp.log(2 * scale)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="1.0", value="0.1839")


@_family.given("1.0", "0.8161")
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    tail = jnp.exp(-abs(z)) / 2
    return jnp.where(z < 0, tail, 1 - tail)


__dir__ = _own_names(__name__)
