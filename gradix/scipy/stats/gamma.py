"""The gamma distribution: `zᵃ⁻¹ e⁻ᶻ / Γ(a)`, `z = (x - loc) / scale ≥ 0`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import gammainc, gammaincc, gammaln, xlogy
from gradix.scipy.stats.operands import arguments, kept, log_of_part, within


def _positive(z):
    return jnp.where(z < 0, 0, z)


def logpdf(x, a, loc=0, scale=1) -> Array:
    """The logarithm of the density of the gamma distribution.

    Args:
        x: the points at which it is evaluated.
        a: the shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gamma
        >>> gamma.logpdf(1.0, 2.0).round(4) + 0.0
        Array(-1., dtype=float32, weak_type=True)
    """
    x, a, loc, scale = arguments("gamma.logpdf", x, a, loc, scale)
    z = (x - loc) / scale
    outside = z < 0
    z = kept(outside, z, 1)
    return within(outside, xlogy(a - 1, z) - z - gammaln(a) - jnp.log(scale), -np.inf)


def pdf(x, a, loc=0, scale=1) -> Array:
    """The density of the gamma distribution.

    Args:
        x: the points at which it is evaluated.
        a: the shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gamma
        >>> gamma.pdf(1.0, 2.0).round(4) + 0.0
        Array(0.3679, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x, a, loc=0, scale=1) -> Array:
    """The probability that a draw from the gamma distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        a: the shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gamma
        >>> gamma.cdf(1.0, 2.0).round(4) + 0.0
        Array(0.2642, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = arguments("gamma.cdf", x, a, loc, scale)
    return gammainc(a, _positive((x - loc) / scale))


def logcdf(x, a, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        a: the shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gamma
        >>> gamma.logcdf(1.0, 2.0).round(4) + 0.0
        Array(-1.3309, dtype=float32, weak_type=True)
    """
    return log_of_part(cdf(x, a, loc, scale), sf(x, a, loc, scale))


def sf(x, a, loc=0, scale=1) -> Array:
    """The probability that a draw from the gamma distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        a: the shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gamma
        >>> gamma.sf(1.0, 2.0).round(4) + 0.0
        Array(0.7358, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = arguments("gamma.sf", x, a, loc, scale)
    return gammaincc(a, _positive((x - loc) / scale))


def logsf(x, a, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        a: the shape, positive.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import gamma
        >>> gamma.logsf(1.0, 2.0).round(4) + 0.0
        Array(-0.3069, dtype=float32, weak_type=True)
    """
    return log_of_part(sf(x, a, loc, scale), cdf(x, a, loc, scale))


__dir__ = _own_names(__name__)
