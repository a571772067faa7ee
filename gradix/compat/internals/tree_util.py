"""`jax._src.tree_util`: the registered kinds of nodes, as a mapping, beside the public functions."""

from collections.abc import Mapping

from gradix._base.tree import prefix_errors as prefix_errors
from gradix.tree_util import *  # noqa: F403
from gradix.tree_util import (
    flatten_one_level as flatten_one_level,
    is_tree_node,
)


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
