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
    """In `with_refs`, the request to return this cotangent.

    Example:
        >>> import gradix
        >>> _, pull = gradix.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pull.with_refs(gradix.ad.GradValue(), gradix.new_ref(0.0))(1.0)
        (Array(3., dtype=float32, weak_type=True), GradRef())
    """

    __slots__ = ()


class DontWant(_Mark):
    """In `with_refs`, says that this cotangent is not wanted.

    Example:
        >>> import gradix
        >>> _, pull = gradix.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pull.with_refs(gradix.ad.DontWant(), gradix.ad.GradValue())(1.0)
        (DidntWant(), Array(2., dtype=float32, weak_type=True))
    """

    __slots__ = ()


class GradRef(_Mark):
    """Stands, among results, for a cotangent that was added to a ref.

    Example:
        >>> import gradix
        >>> _, pull = gradix.vjp(lambda x: x * x, 2.0)
        >>> total = gradix.new_ref(10.0)
        >>> pull.with_refs(total)(1.0)
        (GradRef(),)
        >>> total
        Ref(14., dtype=float32)
    """

    __slots__ = ()


class DidntWant(_Mark):
    """Stands, among results, for a cotangent that was not wanted.

    Example:
        >>> import gradix
        >>> _, pull = gradix.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pull.with_refs(gradix.ad.DontWant(), gradix.ad.DontWant())(1.0)
        (DidntWant(), DidntWant())
    """

    __slots__ = ()


class NotNeeded(_Mark):
    """In `args_res`, says that the derivative does not need this argument."""

    __slots__ = ()


# They are nodes without leaves, so that jitted functions may return them.
register_pytree_node(GradRef, lambda mark: ((), None), lambda data, children: GradRef())
register_pytree_node(DidntWant, lambda mark: ((), None), lambda data, children: DidntWant())
