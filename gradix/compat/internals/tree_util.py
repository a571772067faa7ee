"""`jax._src.tree_util`: the public functions, and the registry of node types as a mapping."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gradix._base.tree import prefix_errors as _prefix_errors
from gradix.tree_util import *  # noqa: F403
from gradix.tree_util import default_registry, flatten_one_level as flatten_one_level, is_tree_node, tree_structure


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """A function for each place where a tree is not a prefix of another.

    The function takes what the prefix is called, and returns the error.
    """

    def error(index: int) -> Callable[[str], ValueError]:
        return lambda name: _prefix_errors(prefix_tree, full_tree, is_leaf, name)[index]

    return [error(i) for i in range(len(_prefix_errors(prefix_tree, full_tree, is_leaf)))]


class RegistryEntry(NamedTuple):
    """How nodes of a class are taken apart and put together.

    Attributes:
        to_iter: from a node to its children and what else it consists of.
        from_iter: from that and children to a node.
    """

    to_iter: Callable[[Any], tuple]
    from_iter: Callable[[Any, Iterable], Any]


def _entry(cls: type) -> RegistryEntry:
    leaf = tree_structure(0)

    def join(data, children):
        children = list(children)
        node = leaf.from_node_data_and_children(default_registry, (cls, data), [leaf] * len(children))
        return node.unflatten(children)

    return RegistryEntry(flatten_one_level, join)


class _Registered(Mapping):
    """A mapping from the classes of nodes to their entries; it cannot be iterated over."""

    def __contains__(self, cls) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)

    def __getitem__(self, cls):
        if cls not in self:
            raise KeyError(cls)
        return _entry(cls)

    def __iter__(self):
        raise TypeError("the registry of pytree nodes cannot be listed: ask for one class, as in `cls in _registry`.")

    def __len__(self) -> int:
        raise TypeError("the registry of pytree nodes cannot be listed: ask for one class, as in `cls in _registry`.")


_registry = _Registered()
