"""The Poisson distribution: `μᵏ e^(-μ) / k!`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.numpy.promotion import convert, promote_dtypes_inexact, raise_rank
from gradix.scipy.special import gammaincc, gammaln, xlogy
from gradix.scipy.stats._distribution import Distribution, Parameter, is_not_negative
from gradix.scipy.stats.operands import kept, within

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_family = Distribution("poisson", "the Poisson distribution", mu=Parameter("the mean, not negative", is_not_negative))

_SERIES_FROM, _TERMS = 60.0, 140


@_family.given("1, 1.0", "-1.")
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    k = k - loc
    outside = (k < 0) | (jnp.floor(k) < k)
    k = kept(outside, k, 0)
    return within(outside, xlogy(k, mu) - gammaln(k + 1) - mu, -np.inf)


pmf = _family.derived("pmf", jnp.exp, logpmf, example="1, 1.0", value="0.3679")


@_family.given("1, 1.0", "0.7358")
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    whole = lax.floor(k - loc)
    return within(whole < 0, gammaincc(kept(whole < 0, whole, 0) + 1, mu), 0)


def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy of the Poisson distribution, in nats.

    Args:
        mu: the mean, not negative.
        loc: the location, by which the distribution is shifted; it only gives the result its shape.

    Example:
        >>> from gradix.scipy.stats import poisson
        >>> poisson.entropy(1.0).round(4) + 0.0
        Array(1.3048, dtype=float32)
    """
    mu, loc = promote_dtypes_inexact("poisson.entropy", mu, loc)
    mu = convert(mu, mu.aval.dtype)
    shape = np.broadcast_shapes(mu.shape, loc.shape)
    small = mu < _SERIES_FROM
    m = jnp.where(small & (mu > 0), mu, 1)[..., None]
    terms = raise_rank(jnp.asarray(np.arange(_TERMS).astype(mu.dtype)), m.ndim)
    log_terms = xlogy(terms, m) - gammaln(terms + 1) - m
    total = -jnp.sum(jnp.exp(log_terms) * log_terms, -1)
    large = jnp.where(small, _SERIES_FROM, mu)
    # R. Evans, J. Boersma, "The entropy of a Poisson distribution" (1988), and one more term.
    series = (
        jnp.log(2 * np.pi * np.e * large) / 2
        - 1 / (12 * large)
        - 1 / (24 * large**2)
        - 19 / (360 * large**3)
        - 9 / (80 * large**4)
    )
    value = jnp.where(small, total, series)
    found = jnp.where(mu < 0, np.nan, jnp.where(mu == 0, 0, jnp.where(mu == mu, value, np.nan)))
    return jnp.broadcast_to(found, shape)


__dir__ = _own_names(__name__)
