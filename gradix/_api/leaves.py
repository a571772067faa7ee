"""The leaves of a jitted function's arguments and results, as arrays or as names in errors."""

from __future__ import annotations

import numpy as np

from gradix._api.arguments import debug_info
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.tree import keystr, tree_flatten_with_path
from gradix._core.array import ArrayImpl, as_array, without_value
from gradix._core.aval import located, make_aval
from gradix._core.divisions import explicit_part
from gradix._core.dtypes import canonicalize_dtype
from gradix._core.operators import Array
from gradix._core.sharding import Sharding
from gradix._runtime.placement import committed


class Typed:
    """A leaf of which only the type is known."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval


def typed(x) -> Typed:
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic)):
        aval = make_aval(
            tuple(x.shape),
            canonicalize_dtype(x.dtype, allow_extended_dtype=True),
            bool(getattr(x, "weak_type", False)),
        )
        sharding = getattr(x, "sharding", None)
        if not isinstance(sharding, Sharding):
            return Typed(aval)
        return Typed(
            located(aval, committed(sharding), division=explicit_part(sharding, aval.ndim))
        )
    return Typed(as_array(x).aval)


def path_of(index: int, tree, fun) -> str:
    from_path = tree_flatten_with_path(tree)[0][index][0]
    args, kwargs = tree
    names = debug_info(fun, args, kwargs).arg_names
    return names[index] if index < len(names) else keystr(from_path)


def stand_in_of(x) -> ArrayImpl | None:
    """An array without a value if `x` is a `ShapeDtypeStruct`; else None."""
    return without_value(typed(x).aval) if type(x) is ShapeDtypeStruct and not x.is_ref else None


def as_result(x, index: int, result, name: str) -> Array:
    known = stand_in_of(x)
    if known is not None:
        return known
    try:
        return as_array(x)
    except (TypeError, OverflowError) as e:
        path = keystr(tree_flatten_with_path(result)[0][index][0])
        raise type(e)(
            f"function {name} to be transformed must return arrays, but at output path result{path} it "
            f"returned {x!r} of type {type(x)}. {e}"
        ) from None
