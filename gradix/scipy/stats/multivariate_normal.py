"""The multivariate normal distribution: `exp(-dᵀ C⁻¹ d / 2) / √((2π)ⁿ |C|)`, `d = x - mean`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.operators import Array
from gradix.numpy.promotion import broadcast_to
from gradix.scipy.stats import norm
from gradix.scipy.stats.operands import LOG_2PI, arguments

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density of the multivariate normal distribution.

    Args:
        x: vectors along the last axis, of shape (..., n).
        mean: their mean, of shape (..., n); a number makes `x` independent numbers.
        cov: positive definite covariance matrices, of shape (..., n, n), or a number for its
            product with the identity; the variances if `mean` is a number.
        allow_singular: must be None.

    Returns:
        An array of the shape of `x` without its last axis; NaN where a covariance matrix is not
        positive definite.

    Raises:
        NotImplementedError: `allow_singular` is given.
        ValueError: the shapes do not fit each other.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import multivariate_normal
        >>> multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
        Array(-1.8379, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal: allow_singular is not supported, because a singular covariance has no "
            "density. Leave it out."
        )
    x, mean, cov = arguments("multivariate_normal.logpdf", (x, mean, cov))
    if not mean.aval.shape:
        return norm.logpdf(x, mean, jnp.sqrt(cov))
    n = mean.aval.shape[-1]
    if not cov.aval.shape:
        cov = cov * jnp.eye(n, dtype=cov.dtype)
    if cov.aval.ndim < 2 or cov.aval.shape[-2:] != (n, n) or x.aval.shape[-1:] not in ((n,), (1,)):
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: x must be of shape (..., n), mean (..., n) "
            f"and cov (..., n, n); got {x.aval.shape}, {mean.aval.shape} and {cov.aval.shape}."
        )
    off = x - mean
    lead = lax.broadcast_shapes(off.aval.shape[:-1], cov.aval.shape[:-2])
    off = broadcast_to(off, (*lead, n))
    factor = lax.linalg.cholesky(cov)
    half_log = jnp.sum(jnp.log(lax.linalg._diagonal(factor)), -1)
    # With one covariance matrix, all vectors are columns of one triangular system.
    if cov.aval.ndim == 2:
        flat = off.reshape(-1, n).T
        scaled = lax.linalg.triangular_solve(factor, flat, left_side=True, lower=True).T.reshape(off.shape)
    else:
        factor = broadcast_to(factor, (*lead, n, n))
        scaled = lax.linalg.triangular_solve(factor, off[..., None], left_side=True, lower=True)[..., 0]
    return -(jnp.sum(scaled * scaled, -1) + n * LOG_2PI) / 2 - half_log


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density of the multivariate normal distribution.

    Args:
        x, mean, cov: as for `logpdf`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import multivariate_normal
        >>> multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)).round(4)
        Array(0.1592, dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))


__dir__ = _own_names(__name__)
