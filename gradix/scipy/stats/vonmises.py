"""The von Mises distribution: `exp(κ cos x) / (2π I₀(κ))`."""

from __future__ import annotations

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import i0e
from gradix.scipy.stats.operands import LOG_2PI, arguments


def logpdf(x, kappa) -> Array:
    """The logarithm of the density of the von Mises distribution.

    Args:
        x: angles.
        kappa: the concentration, not negative.

    Example:
        >>> from gradix.scipy.stats import vonmises
        >>> vonmises.logpdf(0.0, 1.0).round(4) + 0.0
        Array(-1.0738, dtype=float32, weak_type=True)
    """
    x, kappa = arguments("vonmises.logpdf", x, kappa)
    return kappa * (jnp.cos(x) - 1) - jnp.log(i0e(kappa)) - LOG_2PI


def pdf(x, kappa) -> Array:
    """The density of the von Mises distribution.

    Args:
        x: angles.
        kappa: the concentration, not negative.

    Example:
        >>> from gradix.scipy.stats import vonmises
        >>> vonmises.pdf(0.0, 1.0).round(4) + 0.0
        Array(0.3417, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, kappa))


__dir__ = _own_names(__name__)
