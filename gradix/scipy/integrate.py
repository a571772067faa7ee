"""Integrals of sampled functions, as in `scipy.integrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import numpy as jnp
from gradix._base.listing import listing
from gradix._core.operators import Array

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

__all__ = ["trapezoid"]


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
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
