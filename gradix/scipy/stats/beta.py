"""The beta distribution: `zᵃ⁻¹ (1 - z)ᵇ⁻¹ / B(a, b)`, `z = (x - loc) / scale` between 0 and 1."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import betainc, betaln, xlog1py, xlogy
from gradix.scipy.stats.operands import arguments, kept, log_of_part, within


def logpdf(x, a, b, loc=0, scale=1) -> Array:
    """The logarithm of the density of the beta distribution.

    Args:
        x: the points at which it is evaluated.
        a: the first shape, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import beta
        >>> beta.logpdf(0.5, 2.0, 2.0).round(4) + 0.0
        Array(0.4055, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = arguments("beta.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    outside = (z < 0) | (z > 1)
    z = kept(outside, z, 0.5)
    return within(
        outside, xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b) - jnp.log(scale), -np.inf
    )


def pdf(x, a, b, loc=0, scale=1) -> Array:
    """The density of the beta distribution.

    Args:
        x: the points at which it is evaluated.
        a: the first shape, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import beta
        >>> beta.pdf(0.5, 2.0, 2.0).round(4) + 0.0
        Array(1.5, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


def cdf(x, a, b, loc=0, scale=1) -> Array:
    """The probability that a draw from the beta distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        a: the first shape, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import beta
        >>> beta.cdf(0.5, 2.0, 2.0).round(4) + 0.0
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = arguments("beta.cdf", x, a, b, loc, scale)
    return betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


def logcdf(x, a, b, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        a: the first shape, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import beta
        >>> beta.logcdf(0.5, 2.0, 2.0).round(4) + 0.0
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    return log_of_part(cdf(x, a, b, loc, scale), sf(x, a, b, loc, scale))


def sf(x, a, b, loc=0, scale=1) -> Array:
    """The probability that a draw from the beta distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        a: the first shape, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import beta
        >>> beta.sf(0.5, 2.0, 2.0).round(4) + 0.0
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = arguments("beta.sf", x, a, b, loc, scale)
    return betainc(b, a, jnp.clip(1 - (x - loc) / scale, 0, 1))


def logsf(x, a, b, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        a: the first shape, positive.
        b: the second shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import beta
        >>> beta.logsf(0.5, 2.0, 2.0).round(4) + 0.0
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    return log_of_part(sf(x, a, b, loc, scale), cdf(x, a, b, loc, scale))


__dir__ = _own_names(__name__)
