"""The wrapped Cauchy distribution: `(1 - c²) / (2π (1 + c² - 2c cos x))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats._distribution import Distribution, Parameter
from gradix.scipy.stats.operands import LOG_2PI, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "wrapcauchy",
    "the wrapped Cauchy distribution",
    x=Parameter("angles from 0 to 2π"),
    c=Parameter("the concentration, between 0 and 1", lambda c: (c > 0) & (c < 1)),
)


@_family.given("0.0, 0.5", "-0.7393")
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    value = jnp.log1p(-c * c) - LOG_2PI - jnp.log1p(c * c - 2 * c * jnp.cos(x))
    return within((x < 0) | (x > 2 * np.pi), value, -np.inf)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0, 0.5", value="0.4775")


__dir__ = _own_names(__name__)
