"""Arguments of derivatives that hold more than floats: what is differentiated of each leaf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradix._api.boundary import Share, has_holders, values
from gradix._base.tree import tree_flatten
from gradix._core.array import as_array
from gradix._core.refs import Ref, empty_ref
from gradix._ops.basis import is_differentiable


def check_nondiff(nondiff: str) -> bool:
    """Whether to skip leaves without a derivative.

    Raises:
        ValueError: `nondiff` is neither "error" nor "skip".
    """
    if nondiff not in ("error", "skip"):
        raise ValueError(
            f"nondiff must be 'error' or 'skip', got {nondiff!r}. With 'skip', leaves that are not floats "
            "are left out, and the gradient has None in their places."
        )
    return nondiff == "skip"


class Parted:
    """Arguments of which a derivative is taken in parts only.

    Args:
        args: all arguments.
        numbers: those that are differentiated in.
        share: `share(leaf)` is the part of a leaf that is; None for the whole leaf.

    Attributes:
        args: the arguments, with lists of these parts for those that are differentiated in.
    """

    __slots__ = ("args", "trees", "shares")

    def __init__(self, args: tuple, numbers: Sequence[int], share: Callable[[Any], Share | None]):
        given, self.trees, self.shares = list(args), {}, {}
        for p in {n % len(args) for n in numbers if -len(args) <= n < len(args)}:
            leaves, self.trees[p] = tree_flatten(args[p], is_leaf=_is_value)
            shares = self.shares[p] = [share(x) for x in leaves]
            given[p] = [x if s is None else s.operands for x, s in zip(leaves, shares)]
        self.args = tuple(given)

    def function(self, fun: Callable) -> Callable:
        """`fun` as a function of the lists."""

        def of_parts(*args, **kwargs):
            given = list(args)
            for p, tree in self.trees.items():
                given[p] = tree.unflatten([x if s is None else s.inside(x) for x, s in zip(args[p], self.shares[p])])
            return fun(*given, **kwargs)

        return of_parts

    def spread(self, number: int, gradients: list) -> Any:
        """The gradient in the tree of argument `number`."""
        p = number % len(self.args)
        return self.trees[p].unflatten([g if s is None else s.gradient(g) for g, s in zip(gradients, self.shares[p])])


def share_of_value(x: Any) -> Share | None:
    """The part of a value that is made of further leaves, as its kind says; None for other leaves."""
    return values[type(x)].share(x) if _is_value(x) else None


def share_but_of_refs(x: Any) -> Share | None:
    """As `share_of_value`, and nothing of a mutable array, whose cotangent is a ref of zeros."""
    if isinstance(x, Ref):
        return Share(None, lambda _: x, lambda _: empty_ref(x.aval))
    return share_of_value(x)


def share_of_floats(x: Any) -> Share | None:
    """Nothing of a leaf without a derivative, in the place of which the gradient has None."""
    if _is_value(x) and values[type(x)].is_tree:
        return values[type(x)].share(x)
    try:
        if is_differentiable(as_array(x).aval):
            return None
    except (TypeError, OverflowError):
        pass
    return Share(None, lambda _: x, lambda _: None)


def _is_value(x: Any) -> bool:
    return type(x) in values


def any_trees(args: Any) -> bool:
    """Whether a tree holds values that are pytrees of which derivatives are taken in a part."""
    return any(_is_value(x) and values[type(x)].is_tree for x in tree_flatten(args, is_leaf=_is_value)[0])


def completed(primals: Any, tangents: Any) -> Any:
    """Tangents, in which values whose leaves have tangents in a part only have the others from the primals."""
    leaves, tree = tree_flatten(primals, is_leaf=_is_value)
    if not any(_is_value(x) and values[type(x)].is_tree for x in leaves):
        return tangents
    given = tree_flatten(tangents, is_leaf=_is_value)[0]
    return tree.unflatten([_completed(x, t) for x, t in zip(leaves, given)])


def _completed(x: Any, tangent: Any) -> Any:
    if type(x) is not type(tangent) or not _is_value(x) or not values[type(x)].is_tree:
        return tangent
    share = values[type(x)].share
    return share(x).gradient(share(tangent).operands)


def any_values(args: Any) -> bool:
    """Whether a tree holds values that are made of further leaves, such as values above arrays."""
    return bool(values) and any(map(_is_value, tree_flatten(args, is_leaf=_is_value)[0]))


def refuse_values(name: str, args: Any, but_holders: bool = False) -> None:
    """Raise for values above arrays, for transformations that cannot differentiate in them.

    Args:
        but_holders: whether values that change in place, whose leaves are holders, are fine.
    """
    leaves = tree_flatten(args, is_leaf=_is_value)[0]
    found = [x for x in leaves if _is_value(x) and not values[type(x)].is_tree]
    if but_holders:
        found = [x for x in found if not has_holders(tree_flatten(values[type(x)].node(x))[0])]
    if found:
        raise NotImplementedError(
            f"{name} does not differentiate with respect to values above arrays; grad, value_and_grad and vjp do."
        )
