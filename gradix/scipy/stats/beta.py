"""The beta distribution: `zᵃ⁻¹ (1 - z)ᵇ⁻¹ / B(a, b)`, `z = (x - loc) / scale` between 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import betainc, betaln, xlog1py, xlogy
from gradix.scipy.stats._distribution import Distribution, Parameter, is_positive
from gradix.scipy.stats.operands import kept, log_of_part, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "beta",
    "the beta distribution",
    a=Parameter("the first shape, positive", is_positive),
    b=Parameter("the second shape, positive", is_positive),
)


@_family.given("0.5, 2.0, 2.0", "0.4055")
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    outside = (z < 0) | (z > 1)
    z = kept(outside, z, 0.5)
    return within(outside, xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b) - jnp.log(scale), -np.inf)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.5, 2.0, 2.0", value="1.5")


@_family.given("0.5, 2.0, 2.0", "0.5")
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


@_family.given("0.5, 2.0, 2.0", "0.5")
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return betainc(b, a, jnp.clip(1 - (x - loc) / scale, 0, 1))


logcdf = _family.derived("logcdf", log_of_part, cdf, sf, example="0.5, 2.0, 2.0", value="-0.6931")
logsf = _family.derived("logsf", log_of_part, sf, cdf, example="0.5, 2.0, 2.0", value="-0.6931")


__dir__ = _own_names(__name__)
