"""Axis arguments, checked against the number of axes; negative ones count from the end."""

from __future__ import annotations

import operator

import numpy as np

from gradix._base.errors import ConcretizationTypeError
from gradix._core.dimensions.expression import as_dim
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown

ALL = tuple([tuple(range(n)) for n in range(65)])  # ALL[n] are the axes of an array of rank n.


def axis_of(axis, ndim: int) -> int:
    """An axis as a number from 0 on.

    Raises:
        ValueError: the axis is out of bounds.
        TypeError: the axis is not an integer.
        ConcretizationTypeError: the axis is traced.
    """
    try:
        i = operator.index(axis)
    except TypeError:
        if isinstance(axis, Tracer):
            raise ConcretizationTypeError(axis, "axis must be known while tracing.") from None
        two = "" if not isinstance(axis, Array) else " jnp.maximum and jnp.minimum compare two arrays."
        raise TypeError(f"axis must be an integer, got {axis!r} of type {type(axis).__name__}.{two}") from None
    if not -ndim <= i < ndim:
        raise np.exceptions.AxisError(f"axis {i} is out of bounds for an array of rank {ndim}.")
    return i + ndim if i < 0 else i


def are_several(axis) -> bool:
    """Whether an axis argument is a sequence of axes; a NumPy vector is one too."""
    return isinstance(axis, (tuple, list, range)) or isinstance(axis, np.ndarray) and axis.ndim == 1


def axes_of(axis, ndim: int) -> tuple:
    """One axis, several, or all for None, as numbers from 0 on.

    Raises:
        ValueError: an axis is out of bounds, or named twice.
        TypeError: an axis is not an integer.
    """
    if axis is None:
        return ALL[ndim]
    if are_several(axis):
        axes = tuple([axis_of(a, ndim) for a in axis])
        if len(set(axes)) != len(axes):
            raise ValueError(f"axis={axis} names a duplicate axis. Name each axis once.")
        return axes
    return (axis_of(axis, ndim),)


def known_int(value, argument: str) -> int:
    """An argument that determines a shape, as a Python integer or a symbolic dimension.

    Raises:
        ConcretizationTypeError: the argument is traced.
        TypeError: the argument is not an integer.
    """
    if type(value) is int:
        return value
    if is_unknown(value):
        raise ConcretizationTypeError(value, f"The {argument} determines a shape.")
    try:
        return as_dim(value)
    except TypeError:
        raise TypeError(f"The {argument} must be an integer, got {value!r} of type {type(value).__name__}.") from None


def positions_and_names(axis) -> tuple:
    """An axis argument split in two: the axes of the array, and the names of mapped axes."""
    if type(axis) is str:
        return (), (axis,)
    if isinstance(axis, (tuple, list)):
        names = tuple([a for a in axis if type(a) is str])
        if names:
            return tuple([a for a in axis if type(a) is not str]), names
    return axis, ()


def no_out(name: str, out) -> None:
    """Refuse NumPy's `out=`: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(
            f"{name}: out is not supported, since arrays are immutable. Write result = jnp.{name}(...) instead."
        )
