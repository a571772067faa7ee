"""`nondiff="skip"`: derivatives of arguments that hold more than floats."""

from __future__ import annotations

from collections.abc import Callable

from gradix._base.tree import tree_flatten
from gradix._core.array import as_array
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


class Mixed:
    """Arguments whose float leaves alone are differentiated; `args` holds lists of these leaves."""

    __slots__ = ("args", "trees", "leaves", "active")

    def __init__(self, args: tuple, numbers: tuple[int, ...]):
        given, self.trees, self.leaves, self.active = list(args), {}, {}, {}
        for p in {n % len(args) for n in numbers if -len(args) <= n < len(args)}:
            leaves, self.trees[p] = tree_flatten(args[p])
            self.leaves[p], self.active[p] = leaves, [_has_derivative(x) for x in leaves]
            given[p] = [x for x, a in zip(leaves, self.active[p]) if a]
        self.args = tuple(given)

    def function(self, fun: Callable) -> Callable:
        """`fun` as a function of the lists, whose values are put back among the other leaves."""

        def of_floats(*args, **kwargs):
            given = list(args)
            for p, tree in self.trees.items():
                floats = iter(args[p])
                given[p] = tree.unflatten(
                    [next(floats) if a else x for x, a in zip(self.leaves[p], self.active[p])]
                )
            return fun(*given, **kwargs)

        return of_floats

    def spread(self, number: int, gradients: list):
        """The gradient in the tree of argument `number`, with None for leaves without one."""
        p, floats = number % len(self.args), iter(gradients)
        return self.trees[p].unflatten([next(floats) if a else None for a in self.active[p]])


def _has_derivative(x) -> bool:
    try:
        return is_differentiable(as_array(x).aval)
    except (TypeError, OverflowError):
        return False
