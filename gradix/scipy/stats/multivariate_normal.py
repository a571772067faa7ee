"""The normal distribution of vectors: `exp(-dᵀ C⁻¹ d / 2) / √((2π)ⁿ |C|)`, d the distance to the mean."""

from __future__ import annotations

from gradix import lax, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.numpy.promotion import broadcast_to
from gradix.scipy.stats import norm
from gradix.scipy.stats.operands import LOG_2PI, arguments


def logpdf(x, mean, cov, allow_singular: None = None) -> Array:
    """The logarithm of the density of the normal distribution of vectors.

    Args:
        x: vectors, along the last axis.
        mean: their mean; a number for independent numbers.
        cov: covariance matrices, in the last two axes, positive definite; a number or a vector for
            independent numbers.
        allow_singular: must be None.

    Returns:
        NaN where a covariance is not positive definite.

    Raises:
        NotImplementedError: `allow_singular` is given.
        ValueError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import multivariate_normal
        >>> multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
        Array(-1.8379, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal: allow_singular is not supported; a singular covariance has no "
            "density."
        )
    x, mean, cov = arguments("multivariate_normal.logpdf", x, mean, cov)
    if not mean.aval.shape:
        return norm.logpdf(x, mean, jnp.sqrt(cov))
    n = mean.aval.shape[-1]
    if not cov.aval.shape:
        cov = cov * jnp.eye(n, dtype=cov.dtype)
    if cov.aval.ndim < 2 or cov.aval.shape[-2:] != (n, n) or x.aval.shape[-1:] not in ((n,), (1,)):
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: x of shape (..., n), mean (..., n) and "
            f"cov (..., n, n) are needed, got {x.aval.shape}, {mean.aval.shape} and {cov.aval.shape}."
        )
    off = x - mean
    lead = lax.broadcast_shapes(off.aval.shape[:-1], cov.aval.shape[:-2])
    off = broadcast_to(off, (*lead, n))
    factor = lax.linalg.cholesky(cov)
    half_log = jnp.sum(jnp.log(lax.linalg._diagonal(factor)), -1)
    # one factor for all: one system of many columns
    if cov.aval.ndim == 2:
        flat = off.reshape(-1, n).T
        scaled = lax.linalg.triangular_solve(factor, flat, left_side=True, lower=True).T.reshape(
            off.shape
        )
    else:
        factor = broadcast_to(factor, (*lead, n, n))
        scaled = lax.linalg.triangular_solve(factor, off[..., None], left_side=True, lower=True)[
            ..., 0
        ]
    return -(jnp.sum(scaled * scaled, -1) + n * LOG_2PI) / 2 - half_log


def pdf(x, mean, cov) -> Array:
    """The density of the normal distribution of vectors.

    Args:
        x: vectors, along the last axis.
        mean: their mean; a number for independent numbers.
        cov: covariance matrices, in the last two axes, positive definite; a number or a vector for
            independent numbers.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import multivariate_normal
        >>> multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
        Array(0.1592, dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))


__dir__ = _own_names(__name__)
