"""The wrapped Cauchy distribution: `(1 - c²) / (2π (1 + c² - 2c cos x))`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.stats.operands import LOG_2PI, arguments, within


def logpdf(x, c) -> Array:
    """The logarithm of the density of the wrapped Cauchy distribution.

    Args:
        x: angles from 0 to 2π.
        c: the concentration, between 0 and 1.

    Example:
        >>> from gradix.scipy.stats import wrapcauchy
        >>> wrapcauchy.logpdf(0.0, 0.5).round(4) + 0.0
        Array(-0.7393, dtype=float32, weak_type=True)
    """
    x, c = arguments("wrapcauchy.logpdf", x, c)
    value = jnp.log1p(-c * c) - LOG_2PI - jnp.log1p(c * c - 2 * c * jnp.cos(x))
    return within((x < 0) | (x > 2 * np.pi), value, -np.inf)


def pdf(x, c) -> Array:
    """The density of the wrapped Cauchy distribution.

    Args:
        x: angles from 0 to 2π.
        c: the concentration, between 0 and 1.

    Example:
        >>> from gradix.scipy.stats import wrapcauchy
        >>> wrapcauchy.pdf(0.0, 0.5).round(4) + 0.0
        Array(0.4775, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, c))


__dir__ = _own_names(__name__)
