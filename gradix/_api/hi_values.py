"""Values of types above arrays, which libraries define, as pytree nodes inside of transformations.

A node holds the arrays that a value is made of, and its `carriers`: zeros of the type of its
tangents. The carriers only take part in derivatives. The cotangents that a library's rules return
flow along them through programs, loops and branches, as those of arrays do.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradix._api import hi_boxes
from gradix._api.boundary import Share, Value, values
from gradix._api.hi_boxes import kinds
from gradix._base.tree import register_pytree_node, tree_flatten
from gradix._core import library_values
from gradix._core.array import ArrayImpl, as_array
from gradix._core.aval import ShapedArray, make_aval
from gradix._core.dtypes import float0
from gradix._core.keys import Same
from gradix._core.operators import Array
from gradix._core.trace import Tracer, bind
from gradix._ops.arithmetic import sub
from gradix._ops.basis import zeros
from gradix._ops.markers import stop_gradient_p


@dataclasses.dataclass(frozen=True)
class FieldsType:
    """The type of a dataclass value whose own type, `given`, does not say of which arrays it is made.

    It is made of the arrays in the fields `names`, in the order of `tree`; `others` are the other fields.
    """

    given: Any
    cls: type
    names: tuple[str, ...]
    tree: Any
    avals: tuple
    others: tuple

    def lo_ty(self) -> list:
        return list(self.avals)

    def raise_val(self, *arrays: Any) -> Any:
        value = object.__new__(self.cls)
        others = [(name, x.value if type(x) is Same else x) for name, x in self.others]
        for name, x in (*others, *zip(self.names, self.tree.unflatten(arrays))):
            object.__setattr__(value, name, x)
        return value

    def to_tangent_aval(self) -> Any:
        return self.given.to_tangent_aval()

    def __repr__(self) -> str:
        return repr(self.given)


def arrays_of(aval: Any, value: Any) -> tuple[Any, list]:
    """The arrays of a value of type `aval`, and the type that makes the value of them again."""
    try:
        return aval, [as_array(a) for a in aval.lower_val(value)]
    except NotImplementedError:
        if not dataclasses.is_dataclass(value):
            raise
        return _fields(aval, value)


def _fields(aval: Any, value: Any) -> tuple[FieldsType, list]:
    """The type by the fields of a dataclass value of type `aval`, and the arrays in its fields."""
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    names = tuple([name for name, x in fields.items() if _holds_arrays(x)])
    arrays, tree = tree_flatten([fields.pop(name) for name in names])
    arrays = [as_array(a) for a in arrays]
    others = tuple([(name, x if _is_hashable(x) else Same(x)) for name, x in fields.items()])
    return FieldsType(aval, type(value), names, tree, tuple([a.aval for a in arrays]), others), arrays


def _holds_arrays(x: Any) -> bool:
    leaves = tree_flatten(x)[0]
    return bool(leaves) and all(isinstance(leaf, Array | np.ndarray | np.generic) for leaf in leaves)


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


class HiValue:
    """A value of a type above arrays, made of traced arrays; its type defines its attributes."""

    __slots__ = ("aval", "arrays", "carriers")

    def __init__(self, aval: Any, arrays: Iterable, carriers: Iterable):
        self.aval, self.arrays, self.carriers = aval, tuple(arrays), tuple(carriers)

    def raised(self) -> Any:
        """The value as an object of its library, made of arrays that may be traced."""
        return self.aval.raise_val(*self.arrays)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        given = getattr(type(type_of(self)), name, None)
        if type(given).__name__ == "aval_property":
            return given.fget(self)  # type: ignore[union-attr]
        if type(given).__name__ == "aval_method":
            return functools.partial(given.fun, self)  # type: ignore[union-attr]
        raise AttributeError(
            f"a traced value of type {self.aval} has no attribute {name!r}: use the operations of "
            "its library, or give its type an aval_property or aval_method of this name."
        )

    def __repr__(self) -> str:
        return f"Traced<{self.aval}>"


def tangent_type(aval: Any) -> Any:
    """The type of tangents of a type, either above arrays or of arrays."""
    return aval.to_tangent_aval()


def lo_types(aval: Any) -> list:
    """The types of the arrays that a value of this type is made of; for an array, its own type."""
    found = aval.lo_ty() if is_above(aval) else [aval]
    return [make_aval(tuple(a.shape), np.dtype(a.dtype), False) if a.dtype != float0 else a for a in found]


def is_above(aval: Any) -> bool:
    """Whether a type is above arrays."""
    return not isinstance(aval, ShapedArray) and hasattr(type(aval), "raise_val")


def is_value(x: Any) -> bool:
    """Whether `x` is a value of a type above arrays."""
    return type(x) is HiValue or type(x) in kinds


def type_of(x: Any) -> Any:
    """The type of such a value."""
    return getattr(x.aval, "given", x.aval) if type(x) is HiValue else kinds[type(x)](x)


def opened(x: Any) -> HiValue:
    """A library's value as a node of arrays; its carriers are zeros."""
    if type(x) is HiValue:
        return x
    aval = type_of(x)
    if getattr(aval, "has_qdd", False):
        raise NotImplementedError(
            f"a value of type {aval} changes in place, and cannot be differentiated: pass the arrays it holds."
        )
    if not is_above(aval):
        raise NotImplementedError(f"{type(aval).__name__} must implement `lower_val`.")
    aval, arrays = arrays_of(aval, x)
    return HiValue(aval, arrays, _linked(aval, arrays) or no_tangents(aval))


def _linked(aval: Any, arrays: list) -> list | None:
    """Carriers of a value made of traced arrays: zeros that have the tangents of these arrays."""
    if not any(isinstance(a, Tracer) for a in arrays):
        return None
    types = _carrier_types(aval)
    if [(t.shape, t.dtype) for t in types] != [(a.shape, a.dtype) for a in arrays]:
        return None
    return [sub(a, bind(stop_gradient_p, (a,), {})) for a in arrays]


def no_tangents(aval: Any) -> list:
    """The arrays of a tangent of zero for a type."""
    return [zeros(a) for a in _carrier_types(aval) if a.dtype != float0]


def made_of(aval: Any, arrays: list, n: int) -> Any:
    """The value of this type made of the first `n` arrays, with the others as its carriers."""
    return _joined((aval, n), arrays)


def tangent_lo_types(aval: Any) -> list:
    """The types of the arrays of a tangent of a type."""
    return lo_types(tangent_type(aval))


def _carrier_types(aval: Any) -> list:
    """The types of the arrays of a tangent; none of a type that does not say what its tangents are."""
    try:
        return tangent_lo_types(aval)
    except NotImplementedError:  # derivatives ask for it again, and raise
        return []


def _node(x: Any) -> Any:
    """A library's value as a pytree node."""
    return hi_boxes.node_of(x) if hi_boxes.is_mutable(x) else opened(x)


def _share(x: Any) -> Share:
    """A derivative is taken in the carriers of a value."""
    value = opened(x)
    return Share(
        list(value.carriers),
        lambda carriers: HiValue(value.aval, value.arrays, carriers),
        lambda cotangents: _cotangent(tangent_type(value.aval), cotangents),
    )


def _cotangent(aval: Any, arrays: list) -> Any:
    """A cotangent of type `aval`, made of its arrays."""
    if not is_above(aval):
        return arrays[0]
    if all(type(x) is ArrayImpl for x in arrays):
        return aval.raise_val(*arrays)
    return HiValue(aval, arrays, no_tangents(aval))


def register(cls: type, type_of: Callable[[Any], Any]) -> None:
    """Make instances of a library's class values above arrays, of the type `type_of(value)`."""
    library_values.types[cls] = kinds[cls] = type_of
    values[cls] = Value(_node, _share, is_above=cls not in (hi_boxes.Box, hi_boxes.OuterBox))


for _class in (hi_boxes.Box, hi_boxes.OuterBox):
    register(_class, lambda box: box.aval)


def _row(value: HiValue, size: Any) -> HiValue:
    return _resized(value, "dec_rank", size)


def _stack(value: HiValue, size: Any) -> HiValue:
    return _resized(value, "inc_rank", size)


def _resized(value: HiValue, change: str, size: Any) -> HiValue:
    """The value with the type that its library says; with the same type if the library says nothing."""
    try:
        spec = value.aval.leading_axis_spec()
    except (AttributeError, NotImplementedError):
        return value
    return HiValue(getattr(value.aval, change)(size, spec), value.arrays, value.carriers)


def _cotangents(value: HiValue, ct: Any) -> list:
    """The cotangent of a result, of which the carriers have the derivatives."""
    arrays = list(opened(ct).arrays) if is_value(ct) else [ct]
    types = tangent_lo_types(value.aval)
    return [*[None] * len(value.arrays), *[a for a, t in zip(arrays, types) if t.dtype != float0]]


library_values.types[HiValue] = type_of
values[HiValue] = Value(opened, _share, is_above=True, cotangent=_cotangents, row=_row, stack=_stack)


def _children(value: HiValue):
    return (*value.arrays, *value.carriers), (value.aval, len(value.arrays))


def _joined(aux, children):
    aval, n = aux
    children = tuple(children)
    if all(type(c) is ArrayImpl for c in children):
        return aval.raise_val(*children[:n])  # nothing is traced, so the library's object is made
    return HiValue(aval, children[:n], children[n:])


register_pytree_node(HiValue, _children, _joined)
