"""Places in the user's program, and the names of the scopes and transformations around them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gradix._base.listing import own_names as _own_names
from gradix._base.name_stack import (
    EMPTY,
    NameStack as NameStack,
    current_names as current_name_stack,
    names_set,
    transforming,
)
from gradix._base.source import SourcePlace as SourceInfo, current as current, exclude as register_exclusion
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
    """The place as a string `file:line (function)`; `num_frames` is not used.

    Example:
        >>> from gradix.extend import source_info_util as source
        >>> isinstance(source.summarize(source.new_source_info()), str)
        True
    """
    return str(source_info)


def new_name_stack(name: str = "") -> NameStack:
    """A name stack without names, or with one scope.

    Example:
        >>> new_name_stack("model").extend("layer")
        NameStack(stack=(Scope(name='model'), Scope(name='layer')))
    """
    return EMPTY.extend(name) if name else EMPTY


def new_source_info() -> SourceInfo:
    """The current place in the user's program, without names.

    Example:
        >>> from gradix.extend import source_info_util as source
        >>> source.new_source_info() is not None
        True
    """
    return current().traceback


def set_name_stack(name_stack: NameStack) -> contextlib.AbstractContextManager:
    """A context manager that replaces the current names by those of `name_stack`.

    Example:
        >>> import gradix
        >>> from gradix.extend import source_info_util as source
        >>> empty = source.current_name_stack()
        >>> with gradix.named_scope("block"), source.set_name_stack(empty):
        ...     print(source.current_name_stack() == empty)
        True
    """
    return names_set(name_stack)


def reset_name_stack() -> contextlib.AbstractContextManager:
    """A context manager that removes all current names.

    Example:
        >>> import gradix
        >>> from gradix.extend import source_info_util as source
        >>> with gradix.named_scope("block"), source.reset_name_stack():
        ...     print(repr(str(source.current_name_stack())))
        ''
    """
    return names_set(EMPTY)


def extend_name_stack(name: str) -> contextlib.AbstractContextManager:
    """A context manager that adds a scope to the current names, as `named_scope` does.

    Example:
        >>> with extend_name_stack("layer"):
        ...     print(current_name_stack())
        layer
    """
    return names_set(current_name_stack().extend(name))


def transform_name_stack(name: str) -> contextlib.AbstractContextManager:
    """A context manager that adds the name of a transformation to the current names.

    Example:
        >>> from gradix.extend import source_info_util as source
        >>> with source.transform_name_stack("mine"):
        ...     print(source.current_name_stack())
        mine()
    """
    return transforming(name)


@contextlib.contextmanager
def user_context(traceback: SourceInfo | None, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """A context manager for interpreters, which gives a place and names to operations inside.

    Args:
        traceback: the place; None keeps the current one.
        name_stack: the names; None keeps the current ones.

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


__dir__ = _own_names(__name__)
