"""`jax._src.tree_util`: the registered kinds of nodes, as a mapping, beside the public functions."""

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
    """Where a tree is no prefix of another: functions from what the prefix is called to the errors."""

    def told(index: int) -> Callable[[str], ValueError]:
        return lambda name: _prefix_errors(prefix_tree, full_tree, is_leaf, name)[index]

    return [told(i) for i in range(len(_prefix_errors(prefix_tree, full_tree, is_leaf)))]


class _Registered(Mapping):
    """Tells of a class whether it is a kind of node."""

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
