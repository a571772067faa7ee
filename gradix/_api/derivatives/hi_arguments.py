"""Derivatives with respect to values above arrays, by the arrays that carry their tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradix._api.hi_boxes import is_mutable
from gradix._api.hi_values import (
    HiValue,
    is_above,
    is_value,
    kinds,
    no_tangents,
    opened,
    tangent_type,
)
from gradix._base.tree import tree_flatten
from gradix._core.array import ArrayImpl


def any_values(args: Any) -> bool:
    """Whether a tree holds values above arrays."""
    return bool(kinds) and any(map(is_value, tree_flatten(args, is_leaf=is_value)[0]))


def refuse_values(name: str, args: Any, mutable: bool = True) -> None:
    """Raise for values above arrays, for transformations that cannot differentiate in them.

    Args:
        mutable: whether to raise for values that change in place too.
    """
    if any_values(args) and (
        mutable
        or any(is_value(x) and not is_mutable(x) for x in tree_flatten(args, is_leaf=is_value)[0])
    ):
        raise NotImplementedError(
            f"{name} does not differentiate with respect to values above arrays; grad, "
            "value_and_grad and vjp do."
        )


class Carried:
    """Arguments, some of which are differentiated; in values above arrays, their carriers are."""

    def __init__(self, args: Sequence, numbers: Sequence[int]):
        self.numbers, self.args, self.forms = numbers, list(args), {}
        for n in numbers:
            leaves, tree = tree_flatten(args[n], is_leaf=is_value)
            nodes = [opened(x) if is_value(x) else None for x in leaves]
            self.forms[n] = nodes, tree
            self.args[n] = [x if v is None else list(v.carriers) for x, v in zip(leaves, nodes)]

    def function(self, fun: Callable) -> Callable:
        """`fun` as a function of these arguments."""

        def carried(*args, **kwargs):
            full = list(args)
            for n in self.numbers:
                nodes, tree = self.forms[n]
                full[n] = tree.unflatten(
                    [
                        x if v is None else HiValue(v.aval, v.arrays, x)
                        for x, v in zip(args[n], nodes)
                    ]
                )
            return fun(*full, **kwargs)

        return carried

    def spread(self, n: int, grads: list) -> Any:
        """The derivatives of an argument, in the argument's structure."""
        nodes, tree = self.forms[n]
        return tree.unflatten(
            [g if v is None else _raised(tangent_type(v.aval), g) for g, v in zip(grads, nodes)]
        )


def _raised(aval: Any, arrays: list) -> Any:
    """A cotangent of type `aval`, made of its arrays."""
    if not is_above(aval):
        return arrays[0]
    if all(type(x) is ArrayImpl for x in arrays):
        return aval.raise_val(*arrays)
    return HiValue(aval, arrays, no_tangents(aval))
