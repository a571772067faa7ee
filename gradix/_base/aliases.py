"""Second names of public functions, which are told by the function itself."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F")


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
