"""Telling equal programs: a body traced again is replaced by the first, with all that was made of it."""

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
    """The first program traced that is equal to this one, and written at the same place.

    Tracing anew keeps Python's meaning, whatever a body captured; this keeps it from compiling
    anew. Programs with constants, or with parameters whose equality is unknown, are left as they
    are.
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
    """A parameter that cannot tell whether it equals another."""


class _Same:
    """An object that only equals itself, and is not kept alive by being part of a key."""

    __slots__ = ("id", "ref")

    def __init__(self, value):
        # a TypeError where there is no weak reference
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
    """Where an equation was written: messages name it, so programs of two places stay two.

    The kept program keeps the code alive whose identity stands here.
    """
    return () if source is None else (id(source.code), source.lasti, source.name_stack)


def _settled(value, depth: int = 0):
    """A parameter as part of a key: equal only to what means the same."""
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
    """Closures are equal that have one code and equal captured values; arrays captured are not compared."""
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
