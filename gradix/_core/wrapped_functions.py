"""`WrappedFun`: functions in a wrapper, as interpreters that libraries define get and give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._core.jaxpr import DebugInfo


class WrappedFun:
    """A function, with keyword arguments for its calls and names for messages."""

    __slots__ = ("f", "params", "debug_info")

    def __init__(self, f: Callable, params: dict | None = None, debug_info: DebugInfo | None = None):
        self.f, self.params, self.debug_info = f, dict(params or {}), debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def call_wrapped(self, *args, **kwargs) -> Any:
        """The result of a call of the function."""
        return self.f(*args, **{**self.params, **kwargs})

    def wrap(self, function: Callable) -> WrappedFun:
        """A wrapper of another function, with the same names for messages."""
        return WrappedFun(function, None, self.debug_info)

    def __repr__(self) -> str:
        return f"WrappedFun({self.f!r})"
