"""Axis arguments: negative ones counted from the end, checked against the rank."""

from __future__ import annotations

import operator

from gradix._base.errors import ConcretizationTypeError
from gradix._core.dimensions.expression import as_dim
from gradix._core.trace import Tracer, is_unknown

ALL = tuple([tuple(range(n)) for n in range(65)])  # the axes of an array of n dimensions


def axis_of(axis, ndim: int) -> int:
    """An axis counted from the front.

    Raises:
        ValueError: it is out of bounds.
        TypeError: it is no integer.
    """
    try:
        i = operator.index(axis)
    except TypeError:
        if isinstance(axis, Tracer):
            raise ConcretizationTypeError(
                axis, "The axis argument must be known while tracing."
            ) from None
        raise TypeError(
            f"axis must be an integer, got {axis!r} of type {type(axis).__name__}."
        ) from None
    if not -ndim <= i < ndim:
        raise ValueError(f"axis {i} is out of bounds for array of dimension {ndim}")
    return i + ndim if i < 0 else i


def axes_of(axis, ndim: int) -> tuple:
    """Axes counted from the front: one, several, or all for None.

    Raises:
        ValueError: one is out of bounds, or named twice.
    """
    if axis is None:
        return ALL[ndim]
    if isinstance(axis, (tuple, list, range)):
        axes = tuple([axis_of(a, ndim) for a in axis])
        if len(set(axes)) != len(axes):
            raise ValueError(f"duplicate value in 'axis': {axis}")
        return axes
    return (axis_of(axis, ndim),)


def known_int(value, argument: str) -> int:
    """An argument that decides a shape, as a Python integer or a symbolic dimension.

    Raises:
        ConcretizationTypeError: it is traced.
        TypeError: it is no integer.
    """
    if type(value) is int:
        return value
    if is_unknown(value):
        raise ConcretizationTypeError(value, f"The {argument} decides a shape.")
    return as_dim(value)


def positions_and_names(axis) -> tuple:
    """An axis argument without the names of mapped axes in it, and these names."""
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
            f"The 'out' argument to jnp.{name} is not supported: arrays are immutable. "
            f"Write result = jnp.{name}(...) instead."
        )
