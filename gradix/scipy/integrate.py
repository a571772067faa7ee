"""Integrals of sampled functions, as in `scipy.integrate`."""

from __future__ import annotations

from gradix import numpy as jnp
from gradix._base.listing import listing
from gradix._core.operators import Array

__all__ = ["trapezoid"]


def trapezoid(y, x=None, dx=1.0, axis: int = -1) -> Array:
    """The integral of a sampled function by the trapezoidal rule.

    Args:
        y: the samples.
        x: their coordinates; by default equally spaced.
        dx: the distance between samples, if `x` is not given.
        axis: the axis along which to integrate.

    Returns:
        An array of the shape of `y` without the axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import integrate
        >>> integrate.trapezoid(jnp.array([1.0, 2.0, 3.0]))
        Array(4., dtype=float32)
    """
    return jnp.trapezoid(y, x, dx, axis)


__dir__ = listing(__name__)
