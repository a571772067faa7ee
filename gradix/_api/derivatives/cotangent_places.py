"""Where `with_refs` puts cotangents, and what stands for what was not needed."""

from __future__ import annotations


class _Mark:
    """A value that says one thing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Mark):
    """In `with_refs`: return this cotangent."""

    __slots__ = ()


class DontWant(_Mark):
    """In `with_refs`: this cotangent is not wanted."""

    __slots__ = ()


class GradRef(_Mark):
    """What is returned in place of a cotangent that was added to a ref."""

    __slots__ = ()


class DidntWant(_Mark):
    """What is returned in place of a cotangent that was not wanted."""

    __slots__ = ()


class NotNeeded(_Mark):
    """In `args_res`: the function does not need this argument for its derivative."""

    __slots__ = ()
