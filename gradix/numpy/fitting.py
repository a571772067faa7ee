"""Polynomials fitted to points, and the roots of polynomials."""

from __future__ import annotations

from operator import index as as_int
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy import reductions
from gradix.numpy.broadcasting import atleast_1d
from gradix.numpy.creation import zeros
from gradix.numpy.decompositions import eigvals
from gradix.numpy.joining import concatenate
from gradix.numpy.matrices import eye, vander
from gradix.numpy.products import outer
from gradix.numpy.promotion import as_operand, convert, inexact_operand, number, promote_dtypes_inexact
from gradix.numpy.rearrangement import concrete, roll
from gradix.numpy.selection import where
from gradix.numpy.solving import inv, lstsq
from gradix.numpy.sorting import argsort

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, in no particular order.

    Args:
        p: a vector of coefficients, the highest power first.
        strip_zeros: whether to leave out leading zeros, which the coefficients must be known for.

    Returns:
        A complex vector with an element for each root. If `strip_zeros` is False, it has one
        element fewer than `p`, and NaN for roots that leading zeros take away.

    Raises:
        ValueError: `p` has more than one axis.
        ConcretizationTypeError: `strip_zeros` is True and the coefficients are traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.roots(jnp.array([0, 1, 2]))
        Array([-2.+0.j], dtype=complex64)
        >>> jnp.roots(jnp.array([0, 1, 2]), strip_zeros=False)
        Array([-2. +0.j, nan+nanj], dtype=complex64)
    """
    p = atleast_1d(inexact_operand("roots", p))
    if p.aval.ndim != 1:
        raise ValueError(f"roots: p must be a vector, got shape {p.aval.shape}.")
    n = p.aval.shape[0]
    if n < 2:
        return _roots(p)
    if strip_zeros:
        values = concrete(
            p,
            "it determines how many roots there are. Pass strip_zeros=False to roots, which gives "
            "NaN for roots that leading zeros take away.",
        )
        leading = n if not values.any() else int(np.argmax(values != 0))
        return _roots(p[leading:])
    leading = reductions.sum(lax.cumsum(convert(p != 0, np.dtype("int32")), 0) == 0)
    # Leading zeros moved to the end add roots that are exactly 0.
    found = _roots(roll(p, -leading, 0))
    found = found[argsort(found == 0, stable=True)]
    return where(lax.iota("int32", n - 1) < n - 1 - leading, found, number(complex(np.nan, np.nan), found.aval.dtype))


def _roots(p):
    """The roots as eigenvalues of the companion matrix; the first coefficient is not 0."""
    n = p.aval.shape[0] - 1
    if n < 1:
        return zeros(0, dtypes.to_complex_dtype(p.aval.dtype))
    below = eye(n - 1, n, dtype=p.aval.dtype)
    return eigvals(concatenate([lax.neg(p[None, 1:] / p[0]), below], 0))


@replayed
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool = False,
) -> Any:
    """The coefficients of the polynomial with the least sum of squared distances from points.

    Args:
        x: a vector of m coordinates.
        y: a vector of m values, or a matrix with a set of m values in each column.
        deg: the degree.
        rcond: singular values of the matrix of powers below this fraction of the largest one count
            as zero; by default m times the rounding error of the dtype.
        full: whether to return details of the solution too.
        w: a vector of m weights of the distances.
        cov: whether to return the covariance of the coefficients too, scaled by the distances;
            "unscaled" is for weights that are inverse standard deviations.

    Returns:
        The coefficients, the highest power first: a vector of size deg + 1, or a matrix with a
        polynomial in each column. With `full`, a tuple of the coefficients, the sums of squared
        distances, the rank and the singular values of the matrix of powers, and `rcond`. With
        `cov`, a pair of the coefficients and their covariance.

    Raises:
        ValueError: `deg` is negative, or there are too few points to scale the covariance.
        TypeError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
        Array([2., 1.], dtype=float32)
    """
    deg = as_int(deg)
    real_places = as_operand("polyfit", x).aval.dtype not in dtypes.COMPLEX
    x, y, w = _points(x, y, deg, w)
    count, order = x.aval.shape[0], deg + 1
    real = dtypes.real_dtype(x.aval.dtype) if x.aval.dtype in dtypes.COMPLEX else x.aval.dtype
    if rcond is None:
        rcond = count * float(ml_dtypes.finfo(real).eps)
    powers = vander(x, order)
    if w is not None:
        powers, y = powers * w[:, None], y * (w[:, None] if y.aval.ndim == 2 else w)
    scale = lax.sqrt(
        reductions.sum(
            lax.real(powers * lax.conj(powers)) if x.aval.dtype in dtypes.COMPLEX else powers * powers, axis=0
        )
    )
    powers = powers / scale[None, :]
    solved, resid, rank, s = lstsq(powers, y, rcond)
    out = solved / (scale if solved.aval.ndim == 1 else scale[:, None])
    if full:
        return out, resid, rank, s, as_operand("polyfit", rcond)
    if not cov:
        return out
    base = inv(powers.T @ powers) / outer(scale, scale)
    base = lax.real(base) if real_places and base.aval.dtype in dtypes.COMPLEX else base
    if cov == "unscaled":
        return out, base if y.aval.ndim == 1 else base[:, :, None]
    if count <= order:
        raise ValueError(
            f"polyfit: {count} points are too few to scale the covariance for deg={deg}; it takes "
            f"{order + 1}. Give cov='unscaled' to leave it unscaled."
        )
    factor = resid / (count - order)
    return out, base * factor[:, None] if y.aval.ndim == 1 else base[:, :, None] * factor[None, None, :]


def _points(x, y, deg: int, w):
    given = [as_operand("polyfit", v) for v in ((x, y) if w is None else (x, y, w))]
    x, y, *rest = promote_dtypes_inexact("polyfit", *given)
    if deg < 0:
        raise ValueError(f"polyfit: deg must not be negative, got {deg}.")
    if x.aval.ndim != 1:
        raise TypeError(f"polyfit: x must be a vector, got shape {x.aval.shape}.")
    if not x.aval.size:
        raise TypeError("polyfit: x must not be empty, got shape (0,).")
    if y.aval.ndim not in (1, 2):
        raise TypeError(f"polyfit: y must be a vector or a matrix, got shape {y.aval.shape}.")
    if x.aval.shape[0] != y.aval.shape[0]:
        raise TypeError(f"polyfit: x and y must have the same length, got shapes {x.aval.shape} and {y.aval.shape}.")
    if rest and rest[0].aval.shape != x.aval.shape:
        raise TypeError(
            f"polyfit: w must be a vector of the length of x, got shapes {rest[0].aval.shape} and {x.aval.shape}."
        )
    return x, y, rest[0] if rest else None
