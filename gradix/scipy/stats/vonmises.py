"""The von Mises distribution: `exp(κ cos x) / (2π I₀(κ))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import i0e
from gradix.scipy.stats._distribution import Distribution, Parameter, is_not_negative
from gradix.scipy.stats.operands import LOG_2PI

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "vonmises",
    "the von Mises distribution",
    x=Parameter("angles"),
    kappa=Parameter("the concentration, not negative", is_not_negative),
)


@_family.given("0.0, 1.0", "-1.0738")
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    return kappa * (jnp.cos(x) - 1) - jnp.log(i0e(kappa)) - LOG_2PI


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0, 1.0", value="0.3417")


__dir__ = _own_names(__name__)
