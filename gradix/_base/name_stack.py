"""The names of the scopes and transformations around an operation in the user's program."""

from __future__ import annotations

import threading
from typing import NamedTuple


class Scope(NamedTuple):
    """A name that the user, or a library, gave to a part of a program."""

    name: str

    def put_before(self, parts: list[str]) -> None:
        parts.insert(0, self.name)


class Transform(NamedTuple):
    """A transformation; the name after it is written in its parentheses."""

    name: str

    def put_before(self, parts: list[str]) -> None:
        parts[:1] = [f"{self.name}({parts[0] if parts else ''})"]


class Tag(NamedTuple):
    """Attributes for the compiler, of the operations inside; None removes one."""

    attributes: tuple[tuple[str, str | None], ...]

    def put_before(self, parts: list[str]) -> None:
        pass


class NameStack:
    """Names from the outermost to the innermost; immutable.

    Example:
        >>> print(EMPTY.extend("model").transform("jvp").extend("layer"))
        model/jvp(layer)
    """

    __slots__ = ("stack", "_text", "_transposed", "_tags")

    def __init__(self, stack: tuple = ()):
        self.stack = tuple(stack)
        self._text: str | None = None
        self._transposed: NameStack | None = None
        self._tags: dict[str, str] | None = None

    @property
    def tags(self) -> dict[str, str]:
        """The attributes for the compiler."""
        if self._tags is None:
            found = {k: v for tag in self.stack if type(tag) is Tag for k, v in tag.attributes}
            self._tags = {k: v for k, v in found.items() if v is not None}
        return self._tags

    def tagged(self, **attributes: str | None) -> NameStack:
        """The names with attributes for the compiler added."""
        return NameStack((*self.stack, Tag(tuple(attributes.items()))))

    def extend(self, name) -> NameStack:
        """The names with one or several scopes added as the innermost."""
        names = (name,) if isinstance(name, str) else tuple(name)
        return NameStack((*self.stack, *[n if isinstance(n, Scope) else Scope(n) for n in names]))

    def transform(self, name: str) -> NameStack:
        """The names with a transformation added as the innermost."""
        return NameStack((*self.stack, Transform(name)))

    @property
    def transposed(self) -> NameStack:
        """The names with the innermost derivative transposed."""
        found = self._transposed
        if found is None:
            at = max((i for i, s in enumerate(self.stack) if s == Transform("jvp")), default=len(self.stack))
            found = self._transposed = NameStack((*self.stack[:at], Transform("transpose"), *self.stack[at:]))
        return found

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack((*self.stack, *other.stack)) if self.stack and other.stack else other if other.stack else self

    def __radd__(self, other):
        return self if other == "" else NotImplemented

    def __bool__(self) -> bool:
        return bool(self.stack)

    def __eq__(self, other) -> bool:
        return isinstance(other, NameStack) and self.stack == other.stack

    def __hash__(self) -> int:
        return hash(self.stack)

    def __str__(self) -> str:
        text = self._text
        if text is None:
            parts: list[str] = []
            for entry in reversed(self.stack):
                entry.put_before(parts)
            text = self._text = "/".join(parts)
        return text

    def __repr__(self) -> str:
        return f"NameStack(stack={self.stack!r})"


EMPTY = NameStack()


class _Names(threading.local):
    stack = EMPTY
    base = EMPTY  # the start for programs that are recorded: it has tags, but no names


_names = _Names()
# not empty once the process has used a name; until then names need not be looked up
used: list[bool] = []


def current_names() -> NameStack:
    """The names around the current operation of this thread.

    Example:
        >>> import gradix
        >>> from gradix.extend import source_info_util as source
        >>> with gradix.named_scope("block"):
        ...     print(source.current_name_stack())
        block
    """
    return _names.stack


def set_names(stack: NameStack) -> NameStack:
    """Replace the current names; returns the previous ones."""
    before, _names.stack = _names.stack, stack
    if stack.stack and not used:
        used.append(True)
    return before


def begin_program() -> NameStack:
    """Start the names of a program, which are relative to it; returns the old names."""
    return set_names(_names.base)


class tagging:
    """Context manager that gives the operations recorded inside attributes for the compiler."""

    __slots__ = ("attributes", "before")

    def __init__(self, attributes: dict[str, str | None]):
        self.attributes = attributes

    def __enter__(self) -> dict[str, str]:
        self.before = set_names(_names.stack.tagged(**self.attributes)), _names.base
        _names.base = _names.base.tagged(**self.attributes)
        return _names.base.tags

    def __exit__(self, *exc) -> None:
        stack, _names.base = self.before
        set_names(stack)


class names_set:
    """Context manager that replaces the current names."""

    __slots__ = ("stack", "before")

    def __init__(self, stack: NameStack):
        self.stack = stack

    def __enter__(self) -> NameStack:
        self.before = set_names(self.stack)
        return self.stack

    def __exit__(self, *exc) -> None:
        set_names(self.before)


class transforming(names_set):
    """Context manager that adds a transformation to the current names."""

    __slots__ = ()

    def __init__(self, name: str):
        super().__init__(_names.stack.transform(name))
