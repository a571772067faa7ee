"""Operands of `lax` functions: converted to arrays, Python numbers taking the dtype of the arrays beside them."""
from __future__ import annotations

import numpy as np

from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, scalar_array
from gradix._core.operators import Array

_PYTHON = (float, int, complex, bool)


def operands(name: str, *xs):
    """The operands as arrays; a Python number takes the first array's dtype when that can hold its kind."""
    for x in xs:
        if not isinstance(x, Array):
            break
    else:
        return xs
    like = next((x for x in xs if isinstance(x, (Array, np.ndarray, np.generic))), None)
    if like is None:
        return tuple([as_operand(name, x) for x in xs]) if len(xs) == 1 else _all_python(name, xs)
    dtype = like.dtype if isinstance(like, Array) else dtypes.canonicalize_dtype(like.dtype)
    return tuple([x if isinstance(x, Array) else _beside(name, x, dtype) for x in xs])


def arrays(name: str, *xs):
    """The operands as arrays, each by itself: structural operations promote nothing."""
    for x in xs:
        if not isinstance(x, Array):
            return tuple([x if isinstance(x, Array) else as_operand(name, x) for x in xs])
    return xs


def _all_python(name, xs):
    kinds = [as_operand(name, x) for x in xs]
    widest = max(kinds, key=lambda a: "biufc".index(a.dtype.kind)).dtype
    return tuple([a if a.dtype == widest else scalar_array(widest.type(x).item(), widest, True)
                  for a, x in zip(kinds, xs)])


def _beside(name, x, dtype):
    t = type(x)
    if t in _PYTHON and _holds(dtype, t):
        return scalar_array(x, dtype, False)
    return as_operand(name, x)


def _holds(dtype, python_type) -> bool:
    """Whether `dtype` can take a Python number of this type without changing its kind."""
    if python_type is bool:
        return dtype == bool
    if python_type is int:
        return dtype in dtypes.NUMERIC
    return dtype in (dtypes.INEXACT if python_type is float else dtypes.COMPLEX)


def as_operand(name: str, x) -> Array:
    try:
        return as_array(x)
    except TypeError as e:
        raise TypeError(f"{name} requires array or scalar arguments. {e}") from None


def scalar_like(x, value) -> ArrayImpl:
    """A scalar of the dtype and weak type of `x`, to be used beside it."""
    aval = x.aval
    return scalar_array(value, aval.dtype, aval.weak_type)
