"""Integrals of sampled functions, as `scipy.integrate`."""

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
        dx: the distance between samples, when `x` is not given.
        axis: the axis to integrate along.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import integrate
        >>> integrate.trapezoid(jnp.array([1.0, 2.0, 3.0]))
        Array(4., dtype=float32)
    """
    return jnp.trapezoid(y, x, dx, axis)


__dir__ = listing(__name__)
