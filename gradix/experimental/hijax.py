"""Types and primitives of libraries' own, above arrays: values that hold arrays, and operations on them.

They are evaluated as Python objects. A value of such a type cannot be traced: inside of a
transformation its arrays are to be passed themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._api.inspect import typeof as _typeof
from gradix._core import library_values as _library_values
from gradix._core.abstract import AbstractValue as AbstractValue
from gradix._core.aval import ShapedArray as ShapedArray
from gradix._core.refs import AbstractRef as AbstractRef
from gradix._core.trace import Tracer, state
from gradix._core.user_primitive import Primitive
from gradix.interpreters.ad import (
    Zero as Zero,
    instantiate_zeros as instantiate_zeros,
    is_undefined_primal as is_undefined_primal,
)

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "cur_qdd",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]


class HiType(AbstractValue):
    """The type of values that libraries make of arrays: a subclass tells the types of the arrays by `lo_ty`."""


class MutableHiType(AbstractValue):
    """As `HiType`, of values that change: the types of the arrays are part of their state."""

    has_qdd = True


class AvalQDD(NamedTuple):
    """A type, and what is known of the state of a value of it."""

    aval: AbstractValue
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type, and the state of a value of it, which an operation may change."""

    aval: AbstractValue
    mutable_qdd: Any


class aval_method(NamedTuple):
    """A method that a type gives to its values."""

    fun: Callable


class aval_property(NamedTuple):
    """A property that a type gives to its values."""

    fget: Callable


class EffectTypes:
    """Which effects are allowed, as classes."""

    def __init__(self):
        self.types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        self.types.add(effect_type)

    def contains(self, effect) -> bool:
        return isinstance(effect, tuple(self.types))


control_flow_allowed_effects = EffectTypes()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Say what `typeof` gives of the values of a class.

    Example:
        >>> import gradix
        >>> from gradix.experimental import hijax
        >>> class Pair:
        ...     pass
        >>> class PairType(hijax.HiType):
        ...     def __repr__(self):
        ...         return "Pair"
        >>> hijax.register_hitype(Pair, lambda pair: PairType())
        >>> gradix.typeof(Pair())
        Pair
    """
    _library_values.types[val_cls] = typeof_fn


def cur_qdd(value: Any) -> Any:
    """What the arrays inside of a value that changes are now, as its method `cur_qdd` tells.

    Raises:
        TypeError: the value is none of a type that changes.

    Example:
        >>> from gradix.experimental import hijax
        >>> class Box:
        ...     def cur_qdd(self):
        ...         return "empty"
        >>> class BoxType(hijax.MutableHiType):
        ...     pass
        >>> hijax.register_hitype(Box, lambda box: BoxType())
        >>> cur_qdd(Box())
        'empty'
    """
    aval = _typeof(value)
    if not getattr(aval, "has_qdd", False):
        raise TypeError(
            f"cur_qdd takes values whose type changes, one whose `has_qdd` is true; got one of {aval}."
        )
    return value.cur_qdd()


class HiPrimitive(Primitive):
    """An operation on such values: `impl(*values, **params)` evaluates it."""

    def bind(self, *args, **params):
        """Evaluate the operation.

        Raises:
            NotImplementedError: it is being traced.
        """
        if state.stage is not None or any(isinstance(a, Tracer) for a in args):
            raise NotImplementedError(
                f"the primitive '{self.name}' works on values above arrays, which cannot be "
                "traced: pass the arrays they hold to the transformed function, and make the "
                "value anew inside."
            )
        return self.impl(*args, **params)
