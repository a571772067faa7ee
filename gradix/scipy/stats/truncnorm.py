"""The truncated normal distribution, between `loc + a·scale` and `loc + b·scale`."""

from __future__ import annotations

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import log_ndtr, ndtr
from gradix.scipy.stats.operands import LOG_2PI, arguments, kept, log1m_exp, within


def log_mass(a, b):
    """The logarithm of the probability of a standard normal number between a and b."""
    # If both are on one side, the tails of that side are subtracted; else both tails from 1.
    left, right = b <= 0, a > 0
    low, high = (
        jnp.where(right, -b, jnp.where(left, a, -1)),
        jnp.where(right, -a, jnp.where(left, b, -0.5)),
    )
    larger, less = log_ndtr(high), log_ndtr(low)
    one_tail = larger + log1m_exp(less - larger)
    return jnp.where(left | right, one_tail, jnp.log1p(-ndtr(a) - ndtr(-b)))


def _log_masses(a, z, b):
    """The logarithms of the probabilities below and above z."""
    whole = log_mass(a, b)
    return log_mass(a, z) - whole, log_mass(z, b) - whole


def _log_part(part, rest):
    """`part`, by the logarithm of the rest where that is less than half."""
    near = rest < -0.6931472
    return jnp.where(near, log1m_exp(jnp.where(near, rest, -1)), part)


def _valid(a, b, value):
    return jnp.where(a < b, value, np.nan)


def logpdf(x, a, b, loc=0, scale=1) -> Array:
    """The logarithm of the density of the truncated normal distribution.

    Args:
        x: the points at which it is evaluated.
        a: the lower end, in units of `scale` from `loc`.
        b: the upper end, likewise.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import truncnorm
        >>> truncnorm.logpdf(0.5, -1.0, 1.0).round(4) + 0.0
        Array(-0.6622, dtype=float32)
    """
    x, a, b, loc, scale = arguments("truncnorm.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    outside = (z < a) | (z > b)
    value = -(z * z + LOG_2PI) / 2 - log_mass(a, b) - jnp.log(scale)
    return _valid(a, b, within(outside, value, -np.inf))


def pdf(x, a, b, loc=0, scale=1) -> Array:
    """The density of the truncated normal distribution.

    Args:
        x: the points at which it is evaluated.
        a: the lower end, in units of `scale` from `loc`.
        b: the upper end, likewise.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import truncnorm
        >>> truncnorm.pdf(0.5, -1.0, 1.0).round(4) + 0.0
        Array(0.5157, dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


def logcdf(x, a, b, loc=0, scale=1) -> Array:
    """The logarithm of `cdf`.

    Args:
        x: the points at which it is evaluated.
        a: the lower end, in units of `scale` from `loc`.
        b: the upper end, likewise.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import truncnorm
        >>> truncnorm.logcdf(0.5, -1.0, 1.0).round(4) + 0.0
        Array(-0.2479, dtype=float32)
    """
    x, a, b, loc, scale = arguments("truncnorm.logcdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    outside = (z <= a) | (z >= b)
    value = _log_part(*_log_masses(a, kept(outside, z, (a + b) / 2), b))
    return _valid(a, b, within(outside, value, jnp.where(z <= a, -np.inf, 0)))


def cdf(x, a, b, loc=0, scale=1) -> Array:
    """The probability that a draw from the truncated normal distribution is at most x.

    Args:
        x: the points at which it is evaluated.
        a: the lower end, in units of `scale` from `loc`.
        b: the upper end, likewise.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import truncnorm
        >>> truncnorm.cdf(0.5, -1.0, 1.0).round(4) + 0.0
        Array(0.7805, dtype=float32)
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


def logsf(x, a, b, loc=0, scale=1) -> Array:
    """The logarithm of `sf`.

    Args:
        x: the points at which it is evaluated.
        a: the lower end, in units of `scale` from `loc`.
        b: the upper end, likewise.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import truncnorm
        >>> truncnorm.logsf(0.5, -1.0, 1.0).round(4) + 0.0
        Array(-1.5162, dtype=float32)
    """
    x, a, b, loc, scale = arguments("truncnorm.logsf", x, a, b, loc, scale)
    z = (x - loc) / scale
    outside = (z <= a) | (z >= b)
    below, above = _log_masses(a, kept(outside, z, (a + b) / 2), b)
    value = _log_part(above, below)
    return _valid(a, b, within(outside, value, jnp.where(z >= b, -np.inf, 0)))


def sf(x, a, b, loc=0, scale=1) -> Array:
    """The probability that a draw from the truncated normal distribution exceeds x.

    Args:
        x: the points at which it is evaluated.
        a: the lower end, in units of `scale` from `loc`.
        b: the upper end, likewise.
        loc: the location, by which the distribution is shifted.
        scale: the scale, by which it is stretched about `loc`; positive.

    Example:
        >>> from gradix.scipy.stats import truncnorm
        >>> truncnorm.sf(0.5, -1.0, 1.0).round(4) + 0.0
        Array(0.2195, dtype=float32)
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


__dir__ = _own_names(__name__)
