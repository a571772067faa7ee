"""The uniform distribution from `loc` to `loc + scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats._distribution import Distribution
from gradix.scipy.stats.operands import probability, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("uniform", "the uniform distribution")


@_family.given("0.5", "0.")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return within((x < loc) | (x > loc + scale), -jnp.log(scale) + 0 * x, -np.inf)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.5", value="1.")


@_family.given("0.25", "0.25")
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return jnp.clip((x - loc) / scale, 0, 1)


@_family.given("0.25, 1.0, 2.0", "1.5")
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return probability(q, loc + q * scale)


__dir__ = _own_names(__name__)
