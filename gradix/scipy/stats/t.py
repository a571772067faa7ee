"""Student's t distribution.

Its density is `(1 + z²/df)^(-(df + 1)/2) / (√df B(df/2, 1/2)) / scale`, `z = (x - loc) / scale`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import betaln
from gradix.scipy.stats._distribution import Distribution, Parameter, is_positive
from gradix.scipy.stats.operands import LOG_2PI, kept

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("t", "Student's t distribution", df=Parameter("the degrees of freedom, positive", is_positive))


@_family.given("0.0, 1.0", "-1.1447")
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    # With infinitely many degrees of freedom it is the normal distribution.
    normal = df == np.inf
    df = kept(normal, df, 1)
    half = df / 2
    # The difference of two values of log Γ would lose digits for many degrees of freedom.
    value = -betaln(half, jnp.full_like(half, 0.5)) - jnp.log(df) / 2 - (half + 0.5) * jnp.log1p(z * z / df)
    return jnp.where(normal, -(z * z + LOG_2PI) / 2, value) - jnp.log(scale)


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.0, 1.0", value="0.3183")


__dir__ = _own_names(__name__)
