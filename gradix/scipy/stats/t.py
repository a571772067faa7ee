"""Student's t distribution.

Its density is `(1 + z²/df)^(-(df + 1)/2) / (√df B(df/2, 1/2)) / scale`, `z = (x - loc) / scale`.
"""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import betaln
from gradix.scipy.stats.operands import LOG_2PI, arguments, kept


def logpdf(x, df, loc=0, scale=1) -> Array:
    """The logarithm of the density of Student's t distribution.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import t
        >>> t.logpdf(0.0, 1.0).round(4) + 0.0
        Array(-1.1447, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = arguments("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    # With infinitely many degrees of freedom it is the normal distribution.
    normal = df == np.inf
    df = kept(normal, df, 1)
    half = df / 2
    # The difference of two values of log Γ would lose digits for many degrees of freedom.
    value = (
        -betaln(half, jnp.full_like(half, 0.5))
        - jnp.log(df) / 2
        - (half + 0.5) * jnp.log1p(z * z / df)
    )
    return jnp.where(normal, -(z * z + LOG_2PI) / 2, value) - jnp.log(scale)


def pdf(x, df, loc=0, scale=1) -> Array:
    """The density of Student's t distribution.

    Args:
        x: the points at which it is evaluated.
        df: the degrees of freedom, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import t
        >>> t.pdf(0.0, 1.0).round(4) + 0.0
        Array(0.3183, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, df, loc, scale))


__dir__ = _own_names(__name__)
