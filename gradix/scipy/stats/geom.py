"""The geometric distribution of trials until the first success: `(1 - p)ᵏ⁻¹ p`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import xlog1py
from gradix.scipy.stats._distribution import Distribution, Parameter, is_possible
from gradix.scipy.stats.operands import kept, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("geom", "the geometric distribution", p=Parameter("the probability of success", is_possible))


@_family.given("2, 0.5", "-1.3863")
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    k = k - loc
    outside = k < 1
    k = kept(outside, k, 1)
    return within(outside, xlog1py(k - 1, -p) + jnp.log(p), -np.inf)


pmf = _family.derived("pmf", jnp.exp, logpmf, example="2, 0.5", value="0.25")


__dir__ = _own_names(__name__)
