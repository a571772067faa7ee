"""`jax._src.tree_util`: the public functions, and the registry of node types as a mapping."""

from collections.abc import Callable, Mapping
from typing import Any

from gradix._base.tree import prefix_errors as _prefix_errors
from gradix.tree_util import *  # noqa: F403
from gradix.tree_util import (
    flatten_one_level as flatten_one_level,
    is_tree_node,
)


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """A function for each place where a tree is not a prefix of another.

    The function takes what the prefix is called, and returns the error.
    """

    def error(index: int) -> Callable[[str], ValueError]:
        return lambda name: _prefix_errors(prefix_tree, full_tree, is_leaf, name)[index]

    return [error(i) for i in range(len(_prefix_errors(prefix_tree, full_tree, is_leaf)))]


class _Registered(Mapping):
    """A mapping whose keys are the classes of nodes; it cannot be iterated over."""

    def __contains__(self, cls) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)

    def __getitem__(self, cls):
        if cls not in self:
            raise KeyError(cls)
        return cls

    def __iter__(self):
        raise TypeError(
            "the registry of pytree nodes cannot be listed: ask for one class, as in `cls in _registry`."
        )

    def __len__(self) -> int:
        raise TypeError(
            "the registry of pytree nodes cannot be listed: ask for one class, as in `cls in _registry`."
        )


_registry = _Registered()
