"""Densities estimated from samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradix import lax, numpy as jnp, random
from gradix._core.dtypes import COMPLEX
from gradix.numpy.promotion import promote_dtypes_inexact
from gradix.scipy.special import logsumexp, ndtr
from gradix.scipy.stats.operands import LOG_2PI
from gradix.tree_util import register_pytree_node_class


@register_pytree_node_class
@dataclass(frozen=True, init=False)
class gaussian_kde:
    """A density estimated from a sample, as the mean of normal densities around its points.

    B. Silverman, "Density Estimation for Statistics and Data Analysis" (1986). The estimate is a
    pytree of arrays.

    Args:
        dataset: the sample, of shape (dimensions, points), or (points,) in one dimension.
        bw_method: the standard deviation of the normal densities relative to that of the sample:
            "scott" (the default), "silverman", a number, or a function of the estimate that returns
            a number.
        weights: the weights of the points, of shape (points,); equal by default.

    Raises:
        ValueError: the sample has less than two elements, the weights do not fit, or `bw_method` has
            another value.
        NotImplementedError: the sample is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.stats import gaussian_kde
        >>> gaussian_kde(jnp.array([-1.0, 0.0, 1.0]))(jnp.array([0.0])).round(4)
        Array([0.3182], dtype=float32)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset, bw_method=None, weights=None):
        dataset = jnp.atleast_2d(jnp.asarray(dataset))
        if dataset.aval.dtype in COMPLEX:
            raise NotImplementedError(
                "gaussian_kde does not support complex data. Pass real and imaginary parts as two "
                "dimensions of `dataset`."
            )
        if dataset.size < 2:
            raise ValueError(f"`dataset` input should have multiple elements; got shape {dataset.shape}.")
        count = dataset.shape[1]
        weights = jnp.ones(count) / count if weights is None else jnp.atleast_1d(jnp.asarray(weights))
        dataset, weights = promote_dtypes_inexact("gaussian_kde", dataset, weights)
        if weights.shape != (count,):
            raise ValueError(
                "`weights` input should be one-dimensional and as long as the sample; got shape "
                f"{weights.shape} for {count} points."
            )
        weights = weights / jnp.sum(weights)
        self._set("dataset", dataset)
        self._set("weights", weights)
        self._set("neff", 1 / jnp.sum(weights * weights))
        factor = _factor(self, bw_method)
        own = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        self._set("covariance", own * factor**2)
        self._set("inv_cov", jnp.linalg.inv(own) / factor**2)

    def _set(self, name: str, value) -> None:
        object.__setattr__(self, name, value)

    def tree_flatten(self):
        """The arrays of the estimate; there is no other data."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The estimate with these arrays."""
        made = cls.__new__(cls)
        for name, value in zip(("neff", "dataset", "weights", "covariance", "inv_cov"), children):
            made._set(name, value)
        return made

    @property
    def d(self) -> int:
        """The number of dimensions of the points."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def evaluate(self, points):
        """The density at points of shape (dimensions, count), or (count,) in one dimension."""
        return jnp.exp(self.logpdf(points))

    def __call__(self, points):
        """The density at points, as by `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x):
        """The density at points, as by `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x):
        """The logarithm of the density at points of shape (dimensions, count)."""
        return _mixture(self._points(x), self.dataset, self.weights, self.covariance)

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times a normal density with this mean and covariance."""
        mean = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean)))
        cov = jnp.atleast_2d(jnp.asarray(cov))
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(
                f"mean must be of shape ({self.d},) and cov of shape ({self.d}, {self.d}); got shapes "
                f"{mean.shape} and {cov.shape}."
            )
        return jnp.exp(_mixture(mean[:, None], self.dataset, self.weights, self.covariance + cov))[0]

    def integrate_box_1d(self, low, high):
        """The probability of the interval from `low` to `high`, in one dimension."""
        if self.d != 1:
            raise ValueError(
                f"integrate_box_1d() only handles 1D pdfs, but this one has {self.d} dimensions. Take the "
                "mean of resample() within the box instead."
            )
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError(
                "the limits of integration in integrate_box_1d must be scalars, got shapes "
                f"{jnp.shape(low)} and {jnp.shape(high)}."
            )
        width = jnp.sqrt(self.covariance[0, 0])
        ends = [ndtr((end - self.dataset[0]) / width) for end in (low, high)]
        return jnp.sum(self.weights * (ends[1] - ends[0]))

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """Raise an error: boxes of several dimensions are not implemented."""
        raise NotImplementedError(
            "gaussian_kde.integrate_box is not implemented. Use integrate_box_1d in one dimension, and "
            "take the mean of resample() within the box otherwise."
        )

    def integrate_kde(self, other):
        """The integral of the product of two densities."""
        if other.d != self.d:
            raise ValueError(f"KDEs are not the same dimensionality: {self.d} and {other.d}. Both must have the same.")
        values = _mixture(other.dataset, self.dataset, self.weights, self.covariance + other.covariance)
        return jnp.sum(other.weights * jnp.exp(values))

    def resample(self, key, shape=()):
        """Random points drawn from the density.

        Args:
            key: a random key.
            shape: the shape of the draws.

        Returns:
            An array of shape (dimensions, *shape).
        """
        shape = tuple(shape)
        which, noise = random.split(key)
        centers = jnp.take(self.dataset, random.choice(which, self.n, shape, p=self.weights), axis=1)
        steps = random.multivariate_normal(noise, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape)
        return centers + jnp.moveaxis(steps, -1, 0)

    def set_bandwidth(self, bw_method=None):
        """Raise an error: estimates are immutable."""
        raise NotImplementedError(
            "gaussian_kde is immutable. Make another one by gaussian_kde(dataset, bw_method=...)."
        )

    def _points(self, points):
        points = jnp.atleast_2d(jnp.asarray(points))
        if points.shape[0] != self.d:
            if points.shape != (1, self.d):
                raise ValueError(
                    f"points have dimension {points.shape[0]}, dataset has dimension {self.d}. Pass points "
                    f"of shape ({self.d}, count)."
                )
            points = points.T  # This is a single point, given as a row.
        return promote_dtypes_inexact("gaussian_kde", points, self.dataset)[0]


def _factor(estimate, method):
    """The standard deviation of the normal densities, relative to that of the sample."""
    n, d = estimate.neff, estimate.d
    if callable(method):
        return method(estimate)
    if method is None or (isinstance(method, str) and method == "scott"):
        return n ** (-1 / (d + 4))
    if isinstance(method, str):
        if method == "silverman":
            return (n * (d + 2) / 4) ** (-1 / (d + 4))
    elif jnp.ndim(method) == 0:
        return jnp.asarray(method)
    raise ValueError(f"`bw_method` should be 'scott', 'silverman', a scalar, or a callable; got {method!r}.")


def _mixture(points, centers, weights, covariance):
    """The logarithm of the weighted mean of normal densities around `centers`, at `points`."""
    d = centers.shape[0]
    factor = lax.linalg.cholesky(covariance)
    solve = lambda v: lax.linalg.triangular_solve(factor, v, left_side=True, lower=True)  # noqa: E731
    x, c = solve(points), solve(centers)
    squares = sum((x[i][:, None] - c[i][None, :]) ** 2 for i in range(d))
    scale = d * LOG_2PI / 2 + jnp.sum(jnp.log(lax.linalg._diagonal(factor)))
    return logsumexp(-squares / 2, axis=1, b=weights[None]) - scale
