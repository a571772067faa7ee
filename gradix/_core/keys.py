"""When two parameters mean the same: the keys by which programs and results are found again.

Python calls 0.0 and -0.0 equal, and 1, 1.0 and True, though operations tell them apart.
"""

from __future__ import annotations

import dis
import functools
import weakref
from types import CodeType
from typing import Any

import numpy as np

_PLAIN = frozenset([int, str, type(None)])


def exact(value):
    """A hashable key of a value, equal only to that of a value of its type with its digits and signs.

    The elements of tuples count too. Values of other kinds are compared by their own `__eq__`.

    Raises:
        TypeError: when the key is hashed, if the value cannot be.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple):
        if _PLAIN.issuperset(map(type, value)):
            return kind, value
        return (kind, *[v if type(v) in _PLAIN else exact(v) for v in value])
    if isinstance(value, float | complex | np.generic):
        return kind, repr(value)
    return kind, value


def exact_items(params: dict) -> tuple:
    """A hashable key of the parameters of an operation, by name."""
    return tuple([(k, v if type(v) in _PLAIN else exact(v)) for k, v in params.items()])


def typed_items(params: dict) -> tuple:
    """As `exact_items` for parameters that hold no signed zeros, nor mixed types within tuples: quicker."""
    return tuple([(k, type(v), v) for k, v in params.items()])


class Same:
    """A key for one object, equal only to keys of the same object, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.value is self.value

    def __repr__(self) -> str:
        return f"<one {type(self.value).__name__}>"


class SameWhileAlive:
    """A key for one object, equal only to keys of the same object, which it does not keep alive.

    Raises:
        TypeError: the object cannot be referenced weakly.
    """

    __slots__ = ("number", "ref")

    def __init__(self, value: Any):
        self.number, self.ref = id(value), weakref.ref(value)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        mine = self.ref()
        return mine is not None and type(other) is SameWhileAlive and other.ref() is mine


@functools.lru_cache(4096)
def assigned_outside(code: CodeType) -> frozenset[str]:
    """The variables of outer functions that a function, or one inside of it, assigns or deletes."""
    names = {
        i.argval
        for i in dis.get_instructions(code)
        if i.opname in ("STORE_DEREF", "DELETE_DEREF") and i.argval in code.co_freevars
    }
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= assigned_outside(inner).intersection(code.co_freevars)
    return frozenset(names)
