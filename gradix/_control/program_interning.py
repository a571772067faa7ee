"""Recognises equal programs: a body that is traced again is replaced by its first trace.

All that was derived from the first trace, such as compiled code, is used again.
"""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from gradix._base.bounded import BoundedCache, on_clear
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from gradix._core.keys import Same, SameWhileAlive, assigned_outside, exact
from gradix._core.operators import Array

_DEPTH = 8
# few of those that hold objects their functions captured, such as the model a callback reads
_captors: BoundedCache[tuple, tuple[ClosedJaxpr, bool]] = BoundedCache(16, drop=1)
_interned: BoundedCache[tuple, tuple[ClosedJaxpr, bool]] = BoundedCache(1024, drop=1)


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
        found, has_closures = _interned.get(key) or _captors.get(key) or (None, False)
        # what a function captured may be another value by now, such as a later loop index
        if found is not None and has_closures and _fingerprint(found.jaxpr) != key:
            found = None
    except (TypeError, ValueError, _Opaque):
        return closed
    if found is None:
        table = _captors if _holds_captured(key) else _interned
        found, _ = table.keep(key, (closed, _mentions(key, FunctionType)))
        if table is _interned:
            found.memo["interned"] = True
    return found


def _mentions(key, marker) -> bool:
    """Whether a nested tuple contains an object."""
    return key is marker or type(key) is tuple and any(_mentions(k, marker) for k in key)


def _holds_captured(key) -> bool:
    """Whether a program of this key holds an object that may be used nowhere else."""
    if type(key) is tuple:
        return any(_holds_captured(k) for k in key)
    if type(key) is SameWhileAlive:  # functions of modules live on
        return "<locals>" in getattr(key.ref(), "__qualname__", "<locals>")
    return type(key) is Same


def clear() -> None:
    """Forget all programs."""
    _interned.clear()
    _captors.clear()


on_clear(clear)


class _Opaque(Exception):
    """Raised for a parameter whose equality to another cannot be decided."""


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
        params = tuple([(k, key_of(v)) for k, v in eqn.params.items()])
        parts.append((eqn.primitive, ins, params, len(eqn.outvars), *_place(eqn.source)))
    parts.append(tuple([atom(v) for v in jaxpr.outvars]))
    return tuple(parts)


def _place(source) -> tuple:
    """The source line of an equation, as a key: messages name it, so it distinguishes programs.

    The interned program keeps the code object alive, so its id stays valid.
    """
    return () if source is None else (id(source.code), source.lasti, source.name_stack)


def key_of(value, depth: int = 0):
    """A parameter as part of a key; keys are equal only if the parameters mean the same."""
    t = type(value)
    if t is tuple or t is list:
        return t, tuple([key_of(v, depth) for v in value])
    if t is ClosedJaxpr:
        return value if value.consts else (ClosedJaxpr, _fingerprint(value.jaxpr))
    if t is dict:
        return t, tuple([(k, key_of(v, depth)) for k, v in value.items()])
    if t is FunctionType:
        return _settled_function(value, depth + 1)
    if t is functools.partial:
        return t, *[key_of(v, depth) for v in (value.func, value.args, value.keywords)]
    if t is MethodType:
        return t, key_of(value.__func__, depth), SameWhileAlive(value.__self__)
    if callable(value) and not isinstance(value, type):
        return SameWhileAlive(value)
    return exact(value)


def _settled_function(function, depth: int):
    """A key for a closure: its code and captured values; closures over arrays are opaque."""
    if depth > _DEPTH:
        raise _Opaque
    cells: list[Any] = []
    written = assigned_outside(function.__code__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        content = cell.cell_contents
        if isinstance(content, (Array, np.ndarray)):
            raise _Opaque
        # what a function writes is seen outside of it, so that another one cannot stand for it
        cells.append(Same(cell) if name in written else _captured(content, depth))
    return (
        FunctionType if cells else None,
        function.__code__,
        id(function.__code__),
        tuple(cells),
        key_of(function.__defaults__, depth),
    )


def _captured(value, depth: int):
    t = type(value)
    if t is list or t is dict:
        return Same(value)
    interning_key = getattr(t, "interning_key", None)
    if interning_key is not None:
        return t, interning_key(value)
    try:
        return (
            SameWhileAlive(value) if t.__hash__ is object.__hash__ and t is not FunctionType else key_of(value, depth)
        )
    except (TypeError, ValueError):
        return SameWhileAlive(value)
