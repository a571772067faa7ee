"""Shapes and axes, converted from what users pass to tuples of dimensions and axes from 0 on."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from gradix._base import errors
from gradix._core import dtypes
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown

_PLANS = 4096  # how many results each memoised rule keeps


def memoised(rule: Callable) -> Any:
    """Memoise a rule of types and parameters, of primitives that live as long as the process."""
    return lru_cache(_PLANS)(rule)


def canonical_shape(shape, name: str = "shape") -> tuple:
    """A shape as a tuple of ints (symbolic dimensions stay); one int is a shape of one axis.

    Raises:
        TypeError: for traced or fractional dimensions.
    """
    if type(shape) is tuple:
        for d in shape:
            if type(d) is not int:
                break
        else:
            return shape
    if not isinstance(shape, (tuple, list)):
        if np.ndim(shape) == 0 and not is_unknown(shape):
            shape = (shape,)
        elif isinstance(shape, Tracer) and not shape.aval.ndim:
            raise _not_concrete(name, shape)
    try:
        return tuple([d if type(d) is int else _dimension(d) for d in shape])
    except TypeError:
        raise _not_concrete(name, shape) from None


def _dimension(d):
    if type(d) is SymbolicDim:
        return d
    if d is None or is_unknown(d) or isinstance(d, (float, complex, str)):
        raise TypeError
    return index(d) if hasattr(d, "__index__") else _symbolic(d)


def _symbolic(d):
    if isinstance(d, (Array, np.generic)) or not hasattr(d, "__floordiv__"):
        raise TypeError
    return d


def _not_concrete(name: str, shape) -> TypeError:
    hint = ""
    sizes = shape if isinstance(shape, (tuple, list)) else [shape]
    traced = next((d for d in sizes if isinstance(d, Tracer)), None)
    if isinstance(shape, (Array, np.ndarray)) and shape.ndim:
        hint = " Write x.shape for the shape of an array."
    if any(dtypes.is_extended(getattr(d, "dtype", None)) for d in sizes):
        hint = " A random key stands in the place of the shape: the key comes first."
    if traced is not None:
        hint = (
            " A shape must be known while the program is traced: pass what it depends on as static "
            f"(static_argnums or static_argnames of jit), or take it from x.shape.{errors.places_of(traced)}"
        )
    return TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {name}={shape!r}.{hint}")


def check_sizes(name: str, shape, what: str = "shape") -> None:
    """Raise TypeError when a dimension is negative."""
    for d in shape:
        if type(d) is int and d < 0:
            raise TypeError(f"{name} {what} must have every element be nonnegative, got {shape}.")


def canonical_axis(axis, ndim: int, name: str = "axis") -> int:
    """An axis counted from the front.

    Raises:
        AxisError: when the array has no such axis; it is a ValueError and an IndexError.
        TypeError: when it is no integer.
    """
    try:
        a = index(axis)
    except TypeError:
        if isinstance(axis, Tracer):
            raise
        raise TypeError(f"{name} must be an integer, got {axis!r} of type {type(axis).__name__}.") from None
    if not -ndim <= a < ndim:
        raise np.exceptions.AxisError(
            f"{name} {a} is out of bounds for array of dimension {ndim}. "
            + (f"Use one within [{-ndim}, {ndim})." if ndim else "An array of shape () has no axes.")
        )
    return a + ndim if a < 0 else a
