"""Where in the user's program something happened, and the names of the scopes and transformations around it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gradix._base.name_stack import (
    EMPTY,
    NameStack as NameStack,
    current_names as current_name_stack,
    names_set,
    transforming,
)
from gradix._base.source import (
    SourcePlace as SourceInfo,
    current as current,
    exclude as register_exclusion,
)
from gradix._core.trace import state as _state

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The place as `file:line (function)`."""
    return str(source_info)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of no names, or of one scope.

    Example:
        >>> new_name_stack("model").extend("layer")
        NameStack(stack=(Scope(name='model'), Scope(name='layer')))
    """
    return EMPTY.extend(name) if name else EMPTY


def new_source_info() -> SourceInfo:
    """The place in the user's program that led here, without names."""
    return current().traceback


def set_name_stack(name_stack: NameStack) -> contextlib.AbstractContextManager:
    """Context manager: other names in place of all."""
    return names_set(name_stack)


def reset_name_stack() -> contextlib.AbstractContextManager:
    """Context manager: no names."""
    return names_set(EMPTY)


def extend_name_stack(name: str) -> contextlib.AbstractContextManager:
    """Context manager: a scope within the names that are there, as `named_scope`.

    Example:
        >>> with extend_name_stack("layer"):
        ...     print(current_name_stack())
        layer
    """
    return names_set(current_name_stack().extend(name))


def transform_name_stack(name: str) -> contextlib.AbstractContextManager:
    """Context manager: what happens inside is reached through a transformation of this name."""
    return transforming(name)


@contextlib.contextmanager
def user_context(
    traceback: SourceInfo | None, *, name_stack: NameStack | None = None
) -> Iterator[None]:
    """Context manager for interpreters of programs: what is recorded inside gets this place and these names.

    Example:
        >>> import gradix
        >>> eqn, = gradix.make_jaxpr(lambda x: x * 2)(1.0).eqns
        >>> def again(x):
        ...     with user_context(eqn.source_info.traceback, name_stack=new_name_stack("again")):
        ...         return eqn.primitive.bind(x, 2.0)
        >>> print(gradix.make_jaxpr(again)(1.0).eqns[0].source_info.name_stack)
        again
    """
    before = _state.place
    names = current_name_stack() if name_stack is None else name_stack
    _state.place = before if traceback is None else traceback.replace(name_stack=names)
    try:
        with names_set(names):
            yield
    finally:
        _state.place = before
