"""The truncated normal distribution, between `loc + a·scale` and `loc + b·scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.scipy.special import log_ndtr, ndtr
from gradix.scipy.stats._distribution import Distribution, Parameter
from gradix.scipy.stats.operands import LOG_2PI, kept, log1m_exp, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution(
    "truncnorm",
    "the truncated normal distribution",
    a=Parameter("the lower end, in units of `scale` from `loc`"),
    b=Parameter("the upper end, likewise"),
)


def log_mass(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the probability of a standard normal number between a and b.

    Example:
        >>> from gradix.scipy.stats import truncnorm
        >>> truncnorm.log_mass(0.0, float("inf")).round(4)
        Array(-0.6931, dtype=float32)
    """
    # If both are on one side, the tails of that side are subtracted; else both tails from 1.
    left, right = b <= 0, a > 0
    low, high = (jnp.where(right, -b, jnp.where(left, a, -1)), jnp.where(right, -a, jnp.where(left, b, -0.5)))
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


@_family.given("0.5, -1.0, 1.0", "-0.6622", is_weak=False)
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    outside = (z < a) | (z > b)
    value = -(z * z + LOG_2PI) / 2 - log_mass(a, b) - jnp.log(scale)
    return _valid(a, b, within(outside, value, -np.inf))


pdf = _family.derived("pdf", jnp.exp, logpdf, example="0.5, -1.0, 1.0", value="0.5157", is_weak=False)


@_family.given("0.5, -1.0, 1.0", "-0.2479", is_weak=False)
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    outside = (z <= a) | (z >= b)
    value = _log_part(*_log_masses(a, kept(outside, z, (a + b) / 2), b))
    return _valid(a, b, within(outside, value, jnp.where(z <= a, -np.inf, 0)))


cdf = _family.derived("cdf", jnp.exp, logcdf, example="0.5, -1.0, 1.0", value="0.7805", is_weak=False)


@_family.given("0.5, -1.0, 1.0", "-1.5162", is_weak=False)
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    z = (x - loc) / scale
    outside = (z <= a) | (z >= b)
    below, above = _log_masses(a, kept(outside, z, (a + b) / 2), b)
    value = _log_part(above, below)
    return _valid(a, b, within(outside, value, jnp.where(z >= b, -np.inf, 0)))


sf = _family.derived("sf", jnp.exp, logsf, example="0.5, -1.0, 1.0", value="0.2195", is_weak=False)


__dir__ = _own_names(__name__)
