"""Finds what keeps an object alive, by the garbage collector's referrers, for an error message."""

import gc
import inspect
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_SCANS = 24  # the most walks over the heap, each of which is slow
_DEEP = 6  # the most containers within containers

# the finished traces to check, if the option jax_check_tracer_leaks is set
pending: list[weakref.ref] = []


def _is_ours(module: str) -> bool:
    """Whether a module is of this package, by its own name or by that which it stands for."""
    if module.partition(".")[0] == _PACKAGE:
        return True
    found = sys.modules.get(module)
    return getattr(found, "__name__", "").partition(".")[0] == _PACKAGE


def holders(value: Any, limit: int = 3) -> list[str]:
    """Descriptions of what holds `value`, such as "the global variable `cache[0]` of module m"."""
    found: list[str] = []
    queue: list[tuple[Any, str]] = [(value, "")]
    seen, scans = {id(value), id(queue), id(found)}, 0
    while queue and scans < _SCANS and len(found) < limit:
        held, path = queue.pop(0)
        scans += 1
        for holder in gc.get_referrers(held):
            if id(holder) in seen or isinstance(holder, (types.FrameType, weakref.ref)) or holder is queue:
                continue
            seen.add(id(holder))
            for text, suffix in _steps(holder, held, path):
                if text:
                    found.append(text)
                elif suffix.count("[") + suffix.count(".") <= _DEEP:
                    queue.append((holder, suffix))
    return list(dict.fromkeys(found))[:limit]


def _steps(holder, held, path: str) -> Iterator[tuple[str, str]]:
    """Pairs of a description, if users know the place, and else the path from holder to value."""
    if isinstance(holder, dict):
        keys = [k for k, v in list(holder.items()) if v is held]
        if "__name__" in holder and "__builtins__" in holder:
            module = str(holder["__name__"])
            if not _is_ours(module):
                yield from ((f"the global variable `{k}{path}` of module {module}", "") for k in keys[:1])
            return
        owner = _owner(holder)
        if owner is not None:
            yield from _attribute(owner, keys[0] if keys else "?", path)
        else:
            yield from (("", f"[{_key(k)}]{path}") for k in keys[:1])
    elif isinstance(holder, (list, tuple)):
        at = next((i for i, v in enumerate(holder) if v is held), None)
        if at is not None and not _is_closure(holder):
            yield "", f"[{at}]{path}"
    elif isinstance(holder, (set, frozenset)):
        yield "", f"{{...}}{path}"
    elif isinstance(holder, types.CellType):
        name = _captured_by(holder)
        if name:
            yield f"the variable `{name[0]}{path}` that {name[1]} closes over", ""
    elif isinstance(holder, types.FunctionType):
        yield f"a default argument of the function {holder.__qualname__}", ""
    elif not isinstance(holder, (types.ModuleType, types.GeneratorType, types.BuiltinFunctionType)):
        names = [
            n
            for n in _names(holder)
            if inspect.getattr_static(holder, n, None) is not None and getattr(holder, n, None) is held
        ]
        yield from _attribute(holder, names[0] if names else "?", path)


def _attribute(owner, name: str, path: str) -> Iterator[tuple[str, str]]:
    kind = owner if isinstance(owner, type) else type(owner)
    if name == "?" or _is_ours(kind.__module__) or hasattr(kind, "_trace"):
        return  # it is an iterator, a bound method, or an object of this package
    named = _global_name(owner)
    if named:
        yield (f"`{named[0]}.{name}{path}`, where `{named[0]}` is a global variable of module {named[1]}", "")
    else:
        what = "of the class" if isinstance(owner, type) else "of an object of class"
        yield f"the attribute `{name}{path}` {what} {kind.__module__}.{kind.__qualname__}", ""


def _owner(namespace: dict):
    """The object whose attributes these are; None if it is an ordinary dict."""
    for o in gc.get_referrers(namespace):
        if isinstance(o, (types.FrameType, dict, list, tuple)):
            continue
        if getattr(o, "__dict__", None) is namespace:
            return o
    return None


def _names(o) -> list[str]:
    slots = [s for c in type(o).__mro__ for s in _as_tuple(getattr(c, "__slots__", ()))]
    return [*getattr(o, "__dict__", ()), *slots]


def _as_tuple(x) -> tuple:
    return (x,) if isinstance(x, str) else tuple(x)


def _is_closure(holder) -> bool:
    return isinstance(holder, tuple) and bool(holder) and all(isinstance(v, types.CellType) for v in holder)


def _captured_by(cell) -> tuple[str, str] | None:
    """The name of a cell's variable in a function that closes over it, and the function's name."""
    for closure in gc.get_referrers(cell):
        if not _is_closure(closure):
            continue
        for function in gc.get_referrers(closure):
            if isinstance(function, types.FunctionType) and function.__closure__ is closure:
                if function.__module__ is not None and _is_ours(function.__module__):
                    continue
                at = next(i for i, c in enumerate(function.__closure__ or ()) if c is cell)
                return function.__code__.co_freevars[at], function.__qualname__
    return None


def _global_name(o) -> tuple[str, str] | None:
    for name, module in list(sys.modules.items()):
        if _is_ours(name):
            continue
        for k, v in list(getattr(module, "__dict__", {}).items()):
            if v is o:
                return k, name
    return None


def _key(k) -> str:
    text = repr(k) if isinstance(k, (str, int, float, bool, bytes, tuple)) else f"a key of type {type(k).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


# -- the option jax_check_tracer_leaks -------------------------------------------------------------


def note(trace) -> None:
    """Record a finished trace, to check later whether its values are still alive."""
    pending.append(weakref.ref(trace))


def survivors() -> list:
    """The traced values that outlive their finished traces."""
    left = pending[:]
    pending.clear()
    for generation in range(3):  # young objects are found without a walk over the whole heap
        left = [r for r in left if r() is not None]
        if not left:
            return []
        gc.collect(generation)
    traces = [t for t in (r() for r in left) if t is not None]
    if not traces:
        return []
    ids = {id(t) for t in traces}
    return [
        o
        for o in gc.get_referrers(*traces)
        if hasattr(type(o), "_trace") and id(getattr(o, "_trace", None)) in ids and holders(o, 1)
    ]
