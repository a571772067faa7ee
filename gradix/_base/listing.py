"""What `dir` shows of a face: the names users call, not the modules and helpers it is made of; and whose they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any


def tell_face(value: Any, face: str, name: str, is_home: bool = True) -> None:
    """Let a function or class say that it is of the face users import it from, not of the file it is written in.

    A face that is no home of others' work takes what is written in files of its own alone.
    """
    if (
        not isinstance(value, (FunctionType, type))
        or not value.__name__ == name == value.__qualname__
    ):
        return
    package, _, place = (value.__module__ or "").partition(".")
    is_inside = f"{package}.{place}".startswith(face + ".")
    if package == face.partition(".")[0] and (is_inside or is_home and place.startswith("_")):
        value.__module__ = face


def listing(face: str, *modules: str, is_home: bool = False) -> Callable[[], list[str]]:
    """A `__dir__` for the module named `face`: its `__all__`, or else its public names, of modules only those named."""

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


def claim(face: str, *places: str) -> None:
    """Let what a face has from modules whose names begin with one of `places` say that it is of the face."""
    namespace = vars(sys.modules[face])
    for name in list(namespace.get("__all__") or namespace):
        value = namespace.get(name)  # others are loaded on demand
        is_told = isinstance(value, (FunctionType, type)) and value.__module__.startswith(places)
        if is_told and value.__name__ == name == value.__qualname__:
            value.__module__ = face
