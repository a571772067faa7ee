"""`fused`: how the functions of `nn` run, and how they read their operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from gradix._api.jit.jit import jit
from gradix._api.jit.replay import replayed
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix.numpy.promotion import as_operand

_EAGER_LIMIT = 1 << 16  # Arrays of up to so many elements are computed by eager operations.
F = TypeVar("F", bound=Callable)


@overload
def fused(function: F, *, host: Callable | None = None) -> F: ...


@overload
def fused(*, host: Callable | None = None) -> Callable[[F], F]: ...


def fused(function: Callable | None = None, *, host: Callable | None = None) -> Any:
    """A function that is run as eager operations for small arrays, and as one program otherwise.

    It is one program for large arrays and in traced functions. `host` is the function's own host
    rule, if it has one, as `gradix._api.jit.replay.replayed` takes it.
    """
    if function is None:
        return functools.partial(fused, host=host)
    compiled, composed = (jit(function, static_argnames=static_names(function)), replayed(function, host=host))
    name = function.__name__

    @functools.wraps(function)
    def call(x, *args, **kwargs):
        if not isinstance(x, Array):
            x = as_operand(name, x)
        if state.stage is None and x.aval.size <= _EAGER_LIMIT:
            return composed(x, *args, **kwargs)
        return compiled(x, *args, **kwargs)

    return call


def static_names(function: Callable) -> list[str]:
    """The parameters on which the program depends, and which are not its operands."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    return [n for n in names if n in ("axis", "approximate", "keepdims", "algorithm")]
