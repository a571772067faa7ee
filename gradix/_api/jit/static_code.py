"""Lines of generated code that tell whether a static argument has the content of one that was met.

They compare in place what `fingerprint` copies into a key: where they all hold, the keys are equal.
What has no line of its own here is compared by its key.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._api.jit.fingerprint import Walk, fingerprint, is_fixed, is_of_us, is_own
from gradix._core.array import ArrayImpl
from gradix._core.keys import assigned_outside
from gradix._core.trace import Tracer

if TYPE_CHECKING:
    from gradix._api.jit.fastcall import Writer

# parts that come after so many lines, or lie so deep, are compared by their keys
_LINES_LIMIT, _DEPTH_LIMIT = 600, 20
_EQUAL = frozenset({int, str, bytes, range})
_SINGLE = frozenset({bool, type(None), type(Ellipsis), types.CodeType})


def write_static(w: Writer, var: str, value: Any) -> None:
    """Write lines that return MISS unless the content of variable `var` is that of `value`."""
    _Comparison(w).of(var, value)


class _Comparison:
    """Writes the comparison of one static argument."""

    def __init__(self, w: Writer):
        self.w, self.depth = w, 0
        # what makes the key of a part that is compared by it
        self.key: Callable[[Any], Any] = fingerprint
        # the variables of functions that were compared, or are being compared, by their ids
        self.functions: dict[int, str] = {}

    def of(self, var: str, value: Any) -> None:
        condition = self._condition(var, value)
        if condition is not None:
            self.w.unless(condition)
            return
        part = _PARTS.get(tuple if _is_tuple(type(value)) else type(value))
        if part is not None and len(self.w.lines) < _LINES_LIMIT and self.depth < _DEPTH_LIMIT:
            outside, self.key = self.key, _key_of_part if self.key is fingerprint else self.key
            self.depth += 1
            is_written = part(self, var, value)
            self.depth -= 1
            self.key = outside
            if is_written:
                return
        condition = f"{self.w.name(_has_key)}({var}, {self.w.name(_Key(self.key, value))})"
        self.w.unless(f"{var} is {self.w.name(value)} or {condition}" if type(value) is ArrayImpl else condition)

    def _condition(self, var: str, value: Any) -> str | None:
        """The condition on a value that one comparison distinguishes."""
        kind, w = type(value), self.w
        if kind in _EQUAL:
            shown = repr(value) if kind is int or kind is str else w.name(value)
            return f"type({var}) is {w.name(kind)} and {var} == {shown}"
        if isinstance(value, np.dtype) or (kind.__hash__ not in (None, object.__hash__) and is_of_us(kind)):
            return f"type({var}) is {w.name(kind)} and {var} == {w.name(value)}"
        if kind is float and value == value != 0:
            return f"type({var}) is float and {var} == {w.name(value)}"
        if kind is types.FunctionType:
            is_one = is_own(value)
        else:
            is_one = kind in _SINGLE or isinstance(value, type) or (kind not in _BY_CONTENT and is_fixed(kind))
        if is_one:
            return f"{var} is {w.name(value)}"
        found = self.functions.get(id(value))
        return None if found is None else f"{var} is {found}"

    def _each(self, var: str, values: tuple | list, take: Callable[[str, Any], None]) -> None:
        """Take the elements of a sequence apart, and compare each of them."""
        if not values:
            self.w.unless(f"not {var}")
            return
        names = [f"{var}_{i}" for i in range(len(values))]
        self.w.lines.append(f"{''.join([f'{name}, ' for name in names])}= {var}")
        for name, value in zip(names, values):
            take(name, value)

    def _sequence(self, var: str, value: tuple | list) -> bool:
        condition = f"type({var}) is {self.w.name(type(value))}"
        if hasattr(value, "__dict__"):
            if vars(value):
                return False
            condition += f" and not {var}.__dict__"
        self.w.unless(condition)
        self._each(var, value, self.of)
        return True

    def _dict(self, var: str, value: dict) -> bool:
        if any(type(k) is not str for k in value):
            return False
        self.w.unless(f"type({var}) is dict and [*{var}] == {[*value]!r} and {self.w.name(_are_texts)}({var})")
        for i, (k, v) in enumerate(value.items()):
            self.w.lines.append(f"{var}_{i} = {var}[{k!r}]")
            self.of(f"{var}_{i}", v)
        return True

    def _captured(self, var: str, value: Any) -> None:
        """Compare what a function captures: arrays by identity."""
        if isinstance(value, (ArrayImpl, Tracer)):
            self.w.unless(f"{var} is {self.w.name(value)}")
            return
        outside, self.key = self.key, _key_within
        self.of(var, value)
        self.key = outside

    def _function(self, var: str, f: types.FunctionType) -> bool:
        cells = f.__closure__ or ()
        if any(_is_unset(c) for c in cells):
            return False
        w = self.w
        self.functions[id(f)] = var
        w.unless(
            f"type({var}) is {w.name(types.FunctionType)} and {var}.__code__ is {w.name(f.__code__)}"
            f" and {var}.__globals__ is {w.name(f.__globals__)}"
        )
        if cells:
            w.lines.append(f"{var}_c = {var}.__closure__")
            own = assigned_outside(f.__code__)
            for i, (name, cell) in enumerate(zip(f.__code__.co_freevars, cells)):
                if name not in own:
                    w.lines.append(f"{var}_c{i} = {var}_c[{i}].cell_contents")
                    self._captured(f"{var}_c{i}", cell.cell_contents)
        for name in ("__defaults__", "__kwdefaults__", "__dict__"):
            value = getattr(f, name)
            if value:
                w.lines.append(f"{var}{name} = {var}.{name}")
                self._captured(f"{var}{name}", value)
            else:
                w.unless(f"not {var}.{name}")
        return True

    def _partial(self, var: str, f: functools.partial) -> bool:
        if any(type(k) is not str for k in f.keywords):
            return False
        w = self.w
        w.unless(f"type({var}) is {w.name(functools.partial)}")
        w.lines.append(f"{var}_f = {var}.func; {var}_a = {var}.args; {var}_k = {var}.keywords")
        self.of(f"{var}_f", f.func)
        self._each(f"{var}_a", f.args, self._captured)
        w.unless(f"[*{var}_k] == {[*f.keywords]!r}")
        for i, (k, v) in enumerate(f.keywords.items()):
            w.lines.append(f"{var}_k{i} = {var}_k[{k!r}]")
            self._captured(f"{var}_k{i}", v)
        return True

    def _method(self, var: str, f: types.MethodType) -> bool:
        self.w.unless(f"type({var}) is {self.w.name(types.MethodType)}")
        self.w.lines.append(f"{var}_f = {var}.__func__; {var}_s = {var}.__self__")
        self.of(f"{var}_f", f.__func__)
        self.of(f"{var}_s", f.__self__)
        return True


_PARTS: dict[type, Callable[[_Comparison, str, Any], bool]] = {
    tuple: _Comparison._sequence,
    list: _Comparison._sequence,
    dict: _Comparison._dict,
    types.FunctionType: _Comparison._function,
    functools.partial: _Comparison._partial,
    types.MethodType: _Comparison._method,
}
_BY_CONTENT = frozenset({ArrayImpl, *_PARTS})


class _Key:
    """The key of a part as it was met, its hash, and the function that makes the key of another."""

    __slots__ = ("hash", "key", "make")

    def __init__(self, make: Callable[[Any], Any], value: Any):
        self.make, self.key = make, make(value)
        self.hash = hash(self.key)


def _has_key(value: Any, met: _Key) -> bool:
    try:
        key = met.make(value)
        return hash(key) == met.hash and bool(key == met.key)
    except Exception:  # what a user's class raises; tracing tells of it
        return False


def _key_of_part(value: Any) -> Any:
    return Walk(None).of(value)


def _key_within(value: Any) -> Any:
    """The key of a value that a function captures."""
    walk = Walk(None)
    walk.inside = True
    return walk.of(value)


def _is_tuple(kind: type) -> bool:
    """Whether the class is `tuple`, or one that differs by names for its elements."""
    return issubclass(kind, tuple) and kind.__hash__ is tuple.__hash__ and kind.__iter__ is tuple.__iter__


def _are_texts(keys) -> bool:
    return {str}.issuperset(map(type, keys))


def _is_unset(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  (it raises for a variable that has no value)
    except ValueError:
        return True
    return False
