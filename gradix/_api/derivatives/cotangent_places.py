"""The marks with which `with_refs` says where cotangents go, and marks for values not needed."""

from __future__ import annotations

from gradix._base.tree import register_pytree_node


class _Mark:
    """The base class of marks; all instances of a class mean the same."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Mark):
    """In `with_refs`, the request to return this cotangent."""

    __slots__ = ()


class DontWant(_Mark):
    """In `with_refs`, says that this cotangent is not wanted."""

    __slots__ = ()


class GradRef(_Mark):
    """Stands, among results, for a cotangent that was added to a ref."""

    __slots__ = ()


class DidntWant(_Mark):
    """Stands, among results, for a cotangent that was not wanted."""

    __slots__ = ()


class NotNeeded(_Mark):
    """In `args_res`, says that the derivative does not need this argument."""

    __slots__ = ()


# They are nodes without leaves, so that jitted functions may return them.
register_pytree_node(GradRef, lambda mark: ((), None), lambda data, children: GradRef())
register_pytree_node(DidntWant, lambda mark: ((), None), lambda data, children: DidntWant())
