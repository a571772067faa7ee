"""The generalized normal distribution: `β exp(-|x|^β) / (2 Γ(1/β))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import gammaincc, gammaln
from gradix.scipy.stats._distribution import Distribution, Parameter

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("gennorm", "the generalized normal distribution", beta=Parameter("the power, positive"))


@_family.given("0.0, 2.0", "-0.5724")
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    beta = jnp.where(beta > 0, beta, np.nan)  # A NaN to the power 0 would be 1.
    return jnp.log(beta / 2) - gammaln(1 / beta) - jnp.power(abs(x), beta)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0, 2.0", value="0.5642")


@_family.given("0.5, 2.0", "0.7602")
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    beta = jnp.where(beta > 0, beta, np.nan)
    tail = gammaincc(1 / beta, jnp.power(abs(x), beta)) / 2
    return jnp.where(x < 0, tail, 1 - tail)


__dir__ = _own_names(__name__)
