"""The registry of pytree node types, on XLA's C++ pytree implementation.

The only module below `_runtime` that imports jaxlib.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # read once, when jaxlib is loaded

from collections import OrderedDict, defaultdict  # noqa: E402
from typing import Any, TypeVar  # noqa: E402

from jaxlib._jax import JaxRuntimeError, pytree  # noqa: E402

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "JaxRuntimeError", "KeyEntry", "KeyPath", "PyTreeDef",
    "PyTreeRegistry", "SequenceKey", "children_with_keys", "key_string",
    "leaf_definition", "make_node", "registry",
]  # fmt: skip

PyTreeDef = pytree.PyTreeDef
PyTreeRegistry = pytree.PyTreeRegistry
DictKey = pytree.DictKey
FlattenedIndexKey = pytree.FlattenedIndexKey
GetAttrKey = pytree.GetAttrKey
SequenceKey = pytree.SequenceKey

KeyEntry = TypeVar("KeyEntry")
KeyPath = tuple[KeyEntry, ...]

registry = PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
# A treedef is pickled with a reference to its registry, which pickle finds by this name.
registry.__module__ = __name__
registry.__name__ = registry.__qualname__ = "registry"

# For inner loops: they check nothing, and a tree that contains itself raises jaxlib's SystemError.
flatten = registry.flatten
flatten_with_path = registry.flatten_with_path


def _register_mapping(nodetype: type, order, aux_of, build) -> None:
    """Make `nodetype` a node whose children are its values, in the order `order(node)`."""

    def to_children(node):
        keys = tuple(order(node))
        return tuple([node[key] for key in keys]), aux_of(node, keys)

    def to_keyed_children(node):
        keys = tuple(order(node))
        return tuple([(DictKey(key), node[key]) for key in keys]), aux_of(node, keys)

    registry.register_node(nodetype, to_children, build, to_keyed_children)


_register_mapping(OrderedDict, tuple, lambda node, keys: keys, lambda keys, children: OrderedDict(zip(keys, children)))
_register_mapping(
    defaultdict,
    sorted,
    lambda node, keys: (node.default_factory, keys),
    lambda aux, children: defaultdict(aux[0], zip(aux[1], children)),
)


def key_string(path: tuple) -> str:
    """A key path as the expression of its place, such as `['a'][0].w`."""
    return "".join(map(str, path))


def children_with_keys(node: Any) -> tuple[list[tuple[Any, Any]], Any] | None:
    """The node's (key, child) pairs and its auxiliary data; None for a leaf."""
    one_level = registry.flatten_one_level_with_keys(node)
    if one_level is None:
        return None
    pairs, aux = list(one_level[0]), one_level[1]
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        # jaxlib gives every field of a namedtuple the name of the first.
        pairs = [(GetAttrKey(name), child) for name, child in zip(node._fields, node)]
    return pairs, aux


def make_node(nodetype: type, aux: Any, children: list) -> Any:
    """The tree definition of a node with these children; a NoneType without children is None."""
    return PyTreeDef.from_node_data_and_children(registry, (nodetype, aux), children)


def leaf_definition() -> Any:
    """The tree definition of a leaf."""
    return registry.flatten(0)[1]
