"""Recognises equal programs: a body that is traced again is replaced by its first trace.

All that was derived from the first trace, such as compiled code, is used again.
"""

from __future__ import annotations

import weakref
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from gradix._core.operators import Array

_DEPTH = 8
_interned: BoundedCache[tuple, ClosedJaxpr] = BoundedCache(1024, drop=1)


def interned(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The first traced program that equals this one and comes from the same source lines.

    A body is traced in every call, since it may have captured other values; interning avoids
    compiling it again. Programs with constants, or with parameters whose equality is unknown, are
    returned unchanged.
    """
    if closed.consts:
        return closed
    try:
        key = _fingerprint(closed.jaxpr)
        found = _interned.get(key)
    except (TypeError, ValueError, _Opaque):
        return closed
    if found is None:
        found = _interned.keep(key, closed)
    return found


def clear() -> None:
    """Forget all programs."""
    _interned.clear()


class _Opaque(Exception):
    """Raised for a parameter whose equality to another cannot be decided."""


class _Same:
    """A key for an object compared by identity; the key does not keep the object alive."""

    __slots__ = ("id", "ref")

    def __init__(self, value):
        # this raises TypeError for objects without weak references
        self.id, self.ref = id(value), weakref.ref(value)

    def __hash__(self) -> int:
        return self.id

    def __eq__(self, other) -> bool:
        mine = self.ref()
        return mine is not None and isinstance(other, _Same) and other.ref() is mine


def _fingerprint(jaxpr: Jaxpr) -> tuple:
    names: dict = {v: i for i, v in enumerate(jaxpr.invars)}

    def atom(v):
        if type(v) is Literal:
            return v.aval, v.val.host.tobytes() if type(v.val) is ArrayImpl else repr(v.val)
        return names[v]

    parts: list[Any] = [tuple([v.aval for v in jaxpr.invars])]
    for eqn in jaxpr.eqns:
        ins = tuple([atom(v) for v in eqn.invars])
        for v in eqn.outvars:
            names[v] = len(names)
        params = tuple([(k, _settled(v)) for k, v in eqn.params.items()])
        parts.append((eqn.primitive, ins, params, len(eqn.outvars), *_place(eqn.source)))
    parts.append(tuple([atom(v) for v in jaxpr.outvars]))
    return tuple(parts)


def _place(source) -> tuple:
    """The source line of an equation, as a key: messages name it, so it distinguishes programs.

    The interned program keeps the code object alive, so its id stays valid.
    """
    return () if source is None else (id(source.code), source.lasti, source.name_stack)


def _settled(value, depth: int = 0):
    """A parameter as part of a key; keys are equal only if the parameters mean the same."""
    t = type(value)
    if t is int or t is bool or t is str or value is None or isinstance(value, np.dtype):
        return t, value
    if t is tuple or t is list:
        return t, tuple([_settled(v, depth) for v in value])
    if t is float or t is complex or isinstance(value, np.generic):
        return t, repr(value)
    if t is ClosedJaxpr:
        return value if value.consts else (ClosedJaxpr, _fingerprint(value.jaxpr))
    if t is dict:
        return t, tuple([(k, _settled(v, depth)) for k, v in value.items()])
    if t is FunctionType:
        return _settled_function(value, depth + 1)
    if t is MethodType:
        return t, _settled(value.__func__, depth), _Same(value.__self__)
    if callable(value) and not isinstance(value, type):
        return _Same(value)
    return t, value


def _settled_function(function, depth: int):
    """A key for a closure: its code and captured values; closures over arrays are opaque."""
    if depth > _DEPTH:
        raise _Opaque
    cells = []
    for cell in function.__closure__ or ():
        content = cell.cell_contents
        if isinstance(content, (Array, np.ndarray)):
            raise _Opaque
        cells.append(_captured(content, depth))
    return (
        function.__code__,
        id(function.__code__),
        tuple(cells),
        _settled(function.__defaults__, depth),
    )


def _captured(value, depth: int):
    t = type(value)
    try:
        return (
            _Same(value)
            if t.__hash__ is object.__hash__ and t is not FunctionType
            else _settled(value, depth)
        )
    except (TypeError, ValueError):
        return _Same(value)
