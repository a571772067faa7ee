"""Functions to be transformed, in a wrapper libraries pass around."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._core.jaxpr import DebugInfo


class WrappedFun:
    """A function, the keyword arguments it is called with, and what it is called in messages."""

    __slots__ = ("f", "params", "debug_info")

    def __init__(self, f: Callable, params: dict | None = None, debug_info: DebugInfo | None = None):
        self.f, self.params, self.debug_info = f, dict(params or {}), debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def call_wrapped(self, *args, **kwargs) -> Any:
        """Call the function."""
        return self.f(*args, **{**self.params, **kwargs})

    def wrap(self, function: Callable) -> WrappedFun:
        """Another function in this one's place."""
        return WrappedFun(function, None, self.debug_info)

    def __repr__(self) -> str:
        return f"WrappedFun({self.f!r})"


def wrap_init(f: Callable, params: dict | None = None, *, debug_info: DebugInfo | None = None) -> WrappedFun:
    """Wrap a function."""
    return WrappedFun(f, params, debug_info)


def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args) -> WrappedFun:
    """`fun` transformed: calls become `gen(f, *gen_static_args, *args)`."""
    return fun.wrap(lambda *args, **kwargs: gen(fun.call_wrapped, *gen_static_args, *args, **kwargs))
