"""The gamma distribution: `zᵃ⁻¹ e⁻ᶻ / Γ(a)`, `z = (x - loc) / scale ≥ 0`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import gammainc, gammaincc, gammaln, xlogy
from gradix.scipy.stats._distribution import Distribution, Parameter, is_positive
from gradix.scipy.stats.operands import kept, log_of_part, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("gamma", "the gamma distribution", a=Parameter("the shape, positive", is_positive))


def _positive(z):
    return jnp.where(z < 0, 0, z)


@_family.given("1.0, 2.0", "-1.")
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    outside = z < 0
    z = kept(outside, z, 1)
    return within(outside, xlogy(a - 1, z) - z - gammaln(a) - jnp.log(scale), -np.inf)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="1.0, 2.0", value="0.3679")


@_family.given("1.0, 2.0", "0.2642")
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return gammainc(a, _positive((x - loc) / scale))


@_family.given("1.0, 2.0", "0.7358")
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    return gammaincc(a, _positive((x - loc) / scale))


logcdf = _family.derived("logcdf", log_of_part, cdf, sf, example="1.0, 2.0", value="-1.3309")
logsf = _family.derived("logsf", log_of_part, sf, cdf, example="1.0, 2.0", value="-0.3069")


__dir__ = _own_names(__name__)
