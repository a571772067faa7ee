"""What `dir` shows of a face: the names that users call, without the modules it is made of."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType

from gradix._base.lazy import tell_face


def listing(face: str, *modules: str, is_home: bool = False) -> Callable[[], list[str]]:
    """A `__dir__` for the module `face`: its `__all__`, or its public names, and `modules`."""

    def names() -> list[str]:
        namespace = vars(sys.modules[face])
        public = namespace.get("__all__") or [
            name
            for name, value in namespace.items()
            if not name.startswith("_") and (name in modules or not isinstance(value, ModuleType))
        ]
        return sorted({*public, *modules, *(name for name in namespace if name.startswith("__") and name != "__dir__")})

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
            name for name, value in namespace.items() if not name.startswith("_") and _is_own(value, namespace)
        ]
        special = [name for name in namespace if name.startswith("__") and name != "__dir__"]
        return sorted({*public, *others, *special})

    return names


def _is_own(value, namespace: dict) -> bool:
    """Whether a module defines the function or class; a function may name another module."""
    if isinstance(value, FunctionType):
        return getattr(inspect.unwrap(value), "__globals__", None) is namespace
    return isinstance(value, type) and value.__module__ == namespace["__name__"]
