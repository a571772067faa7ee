"""The names that users call: what `dir` shows of a face, and second names of functions."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from gradix._base.lazy import tell_face

F = TypeVar("F")


def listing(face: str, *modules: str, is_home: bool = False) -> Callable[[], list[str]]:
    """A `__dir__` for the module `face`: its `__all__`, or its public names, and `modules`."""

    def names() -> list[str]:
        namespace = vars(sys.modules[face])
        public = namespace.get("__all__") or [
            name
            for name, value in namespace.items()
            if not name.startswith("_") and (name in modules or not isinstance(value, ModuleType))
        ]
        return sorted(
            {
                *public,
                *modules,
                *(name for name in namespace if name.startswith("__") and name != "__dir__"),
            }
        )

    for name, value in list(vars(sys.modules[face]).items()):
        if not name.startswith("_"):
            tell_face(value, face, name, is_home)
    return names


def own_names(face: str, *others: str) -> Callable[[], list[str]]:
    """A `__dir__` for a module with code of its own, which leaves out what it imports.

    It lists `__all__`; without one, the functions and classes that the module defines, and `others`.
    """

    def names() -> list[str]:
        namespace = vars(sys.modules[face])
        public = namespace.get("__all__") or [
            name
            for name, value in namespace.items()
            if not name.startswith("_") and _is_own(value, namespace)
        ]
        special = [name for name in namespace if name.startswith("__") and name != "__dir__"]
        return sorted({*public, *others, *special})

    return names


def _is_own(value, namespace: dict) -> bool:
    """Whether a module defines the function or class; a function may name another module."""
    if isinstance(value, FunctionType):
        return getattr(inspect.unwrap(value), "__globals__", None) is namespace
    return isinstance(value, type) and value.__module__ == namespace["__name__"]


def alias(function: F, name: str, module: str | None = None) -> F:
    """A function that does the same under another name: as `__name__`, in `repr` and in tracebacks.

    Args:
        function: a function of Python, with or without decorators.
        name: the other name.
        module: the module in which it has this name; by default that of the function.

    Example:
        >>> def absolute(x):
        ...     return x if x >= 0 else -x
        >>> size = alias(absolute, "size")
        >>> size.__name__, size(-3), absolute.__name__
        ('size', 3, 'absolute')
    """
    f: Any = function
    other: Any = FunctionType(f.__code__, f.__globals__, name, f.__defaults__, f.__closure__)
    other.__kwdefaults__, other.__annotations__ = f.__kwdefaults__, f.__annotations__
    other.__dict__.update(f.__dict__)
    other.__doc__, other.__module__ = f.__doc__, module or f.__module__
    other.__qualname__ = name
    return other
