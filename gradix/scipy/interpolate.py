"""Interpolation of samples on a grid, as in `scipy.interpolate`."""

from __future__ import annotations

import itertools

import numpy as np

from gradix import numpy as jnp
from gradix._base.listing import listing
from gradix.numpy.promotion import inexact_operand

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function that interpolates values on a rectangular grid.

    Args:
        points: a sequence with the coordinates along each axis of the grid, strictly increasing.
        values: the values; its first axes are those of the grid.
        method: "linear" or "nearest".
        bounds_error: must be False, because points are not known when a program is compiled.
        fill_value: the value outside of the grid; None to extrapolate.

    Raises:
        ValueError: `method` has another value, shapes do not fit each other, or `fill_value` is of
            another kind of dtype than the values.
        NotImplementedError: `bounds_error` is True.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.interpolate import RegularGridInterpolator
        >>> axes = jnp.array([0.0, 1.0]), jnp.array([0.0, 2.0])
        >>> f = RegularGridInterpolator(axes, jnp.array([[0.0, 2.0], [1.0, 3.0]]))
        >>> f(jnp.array([[0.5, 1.0], [2.0, 0.0]]))
        Array([1.5, nan], dtype=float32)
    """

    def __init__(self, points, values, method="linear", bounds_error=False, fill_value=np.nan):
        _check_method(method)
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: bounds_error=True is not supported, because points are not "
                "known when a program is compiled. Pass fill_value, the result outside of the grid."
            )
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        self.values = inexact_operand("RegularGridInterpolator", jnp.asarray(values))
        if not hasattr(points, "__iter__"):
            raise TypeError(
                "RegularGridInterpolator: points must be a sequence with a vector for each axis of values, got a "
                f"{type(points).__name__}."
            )
        self.grid = tuple([jnp.asarray(p) for p in points])
        shape = self.values.aval.shape
        if len(self.grid) > len(shape):
            raise ValueError(f"there are {len(self.grid)} point arrays, but values has {len(shape)} dimensions.")
        for i, p in enumerate(self.grid):
            if p.aval.ndim != 1 or p.aval.shape[0] != shape[i] or not shape[i]:
                raise ValueError(
                    f"the points of axis {i} must be a vector with as many elements as values of shape "
                    f"{shape} has along this axis, and at least one; got shape {p.aval.shape}."
                )
        if fill_value is not None:
            kind = jnp.asarray(fill_value).aval.dtype
            if not jnp.can_cast(kind, self.values.aval.dtype, casting="same_kind"):
                raise ValueError(
                    "fill_value must be either 'None' or of a type compatible with values, of dtype "
                    f"{self.values.aval.dtype}; got {fill_value!r}."
                )

    def __call__(self, xi, method=None):
        """The interpolated values at points.

        Args:
            xi: an array of shape (..., axes of the grid), or a tuple of an array for each axis,
                which are broadcast.
            method: "linear" or "nearest"; by default that of the constructor.

        Returns:
            An array of shape (..., further axes of the values).

        Raises:
            ValueError: `method` has another value, or the points have another dimension.
        """
        method = self.method if method is None else method
        _check_method(method)
        count = len(self.grid)
        xi = self._points(xi)
        if xi.aval.shape[-1] != count:
            raise ValueError(
                f"the requested sample points xi have dimension {xi.aval.shape[-1]}, but this "
                f"RegularGridInterpolator has dimension {count}."
            )
        places = [xi[..., i] for i in range(count)]
        cells = [_cell(p, x) for p, x in zip(self.grid, places)]
        out = (_linear if method == "linear" else _nearest)(self.values, cells)
        spread = (..., *[None] * (self.values.aval.ndim - count))
        if self.fill_value is not None:
            outside = _any((x < p[0]) | (x > p[-1]) for p, x in zip(self.grid, places))
            out = jnp.where(outside[spread], jnp.asarray(self.fill_value, out.aval.dtype), out)
        return jnp.where(_any(x != x for x in places)[spread], jnp.asarray(np.nan, out.aval.dtype), out)

    def _points(self, xi):
        if isinstance(xi, tuple):
            return jnp.stack(jnp.broadcast_arrays(*[inexact_operand("xi", jnp.asarray(x)) for x in xi]), -1)
        xi = inexact_operand("xi", jnp.asarray(xi))
        return xi.reshape(-1, len(self.grid)) if xi.aval.ndim < 2 and xi.aval.size % len(self.grid) == 0 else xi


def _check_method(method) -> None:
    if method not in _METHODS:
        raise ValueError(f"method {method!r} is not defined. Use 'linear' or 'nearest'.")


def _any(masks):
    out = None
    for mask in masks:
        out = mask if out is None else out | mask
    return out


def _cell(points, x):
    """The numbers of the grid points around a coordinate, and the fraction between them."""
    n = points.aval.shape[0]
    low = jnp.clip(jnp.searchsorted(points, x) - 1, 0, max(n - 2, 0))
    high = jnp.minimum(low + 1, n - 1)
    width = points[high] - points[low]
    return low, high, (x - points[low]) / jnp.where(width == 0, 1, width)


def _linear(values, cells):
    more = values.aval.ndim - len(cells)
    total = None
    for corner in itertools.product((0, 1), repeat=len(cells)):
        weight = None
        for upper, (_, _, part) in zip(corner, cells):
            w = part if upper else 1 - part
            weight = w if weight is None else weight * w
        value = values[tuple([c[upper] for upper, c in zip(corner, cells)])] * weight[(..., *[None] * more)]
        total = value if total is None else total + value
    return total


def _nearest(values, cells):
    return values[tuple([jnp.where(part <= 0.5, low, high) for low, high, part in cells])]


__dir__ = listing(__name__)
