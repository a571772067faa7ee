"""Registers types of pytree nodes for files, by name, with functions for their static data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gradix._base.tree import is_tree_node

T = TypeVar("T", bound=type)


class Registered(NamedTuple):
    """How nodes of a type are written to files and made again."""

    nodetype: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, tuple], Any] | None


_by_type: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}


def _register(entry: Registered) -> None:
    for known, key in (
        (_by_type.get(entry.nodetype), entry.nodetype),
        (_by_name.get(entry.name), entry.name),
    ):
        if known is not None:
            raise ValueError(
                f"Duplicate serialization registration of {key!r}: type {known.nodetype} is registered "
                f"with the name {known.name!r} already."
            )
    _by_type[entry.nodetype] = _by_name[entry.name] = entry


def register_pytree_node_serialization(
    nodetype: T,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, tuple], Any] | None = None,
) -> T:
    """Allow nodes of a type in the trees of exported functions that are written to files.

    Args:
        nodetype: a type that is registered as a pytree node.
        serialized_name: the name of the type in files.
        serialize_auxdata: converts the node's static data to bytes.
        deserialize_auxdata: converts the bytes to static data.
        from_children: makes a node from static data and children; by default the function of the
            pytree registration does so.

    Returns:
        `nodetype`.

    Raises:
        ValueError: the type is no pytree node, or type or name are registered already.

    Example:
        >>> import gradix
        >>> from gradix import export
        >>> class Pair:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> gradix.tree_util.register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xs: Pair(*xs))
        >>> _ = export.register_pytree_node_serialization(
        ...     Pair, serialized_name="example.Pair",
        ...     serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None)
        >>> e = export.export(gradix.jit(lambda p: Pair(p.y, p.x)))(Pair(1.0, 2.0))
        >>> float(export.deserialize(e.serialize()).call(Pair(1.0, 2.0)).x)
        2.0
    """
    if not is_tree_node(nodetype):
        raise ValueError(
            f"type {nodetype} is no pytree node: register it first, with "
            "gradix.tree_util.register_pytree_node."
        )
    _register(
        Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    )
    return nodetype


def register_namedtuple_serialization(nodetype: T, *, serialized_name: str) -> T:
    """Allow a type of named tuples in the trees of exported functions that are written to files.

    Args:
        nodetype: a type made by `collections.namedtuple` or `typing.NamedTuple`.
        serialized_name: the name of the type in files.

    Returns:
        `nodetype`.

    Raises:
        ValueError: the type is no named tuple, or type or name are registered already.

    Example:
        >>> import collections
        >>> from gradix import export
        >>> Point = collections.namedtuple("Point", "x y")
        >>> export.register_namedtuple_serialization(Point, serialized_name="example.Point") is Point
        True
    """
    if not (
        isinstance(nodetype, type) and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")
    ):
        raise ValueError(f"Use register_pytree_node_serialization: {nodetype} is no named tuple.")

    def read(aux: bytes):
        fields = tuple(json.loads(aux))
        if fields != nodetype._fields:
            raise ValueError(
                f"the file has a {serialized_name} with the fields {fields}, where {nodetype} has "
                f"{nodetype._fields}."
            )

    _register(
        Registered(
            nodetype,
            serialized_name,
            lambda _: json.dumps(list(nodetype._fields)).encode(),
            read,
            None,
        )
    )
    return nodetype


def by_type(nodetype: type) -> Registered:
    """How nodes of a type are written.

    Raises:
        ValueError: the type is not registered.
    """
    found = _by_type.get(nodetype)
    if found is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{nodetype}`. Use "
            "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."
        )
    return found


def by_name(name: str) -> Registered:
    """How nodes that were written under a name are made.

    Raises:
        ValueError: no type is registered under the name.
    """
    found = _by_name.get(name)
    if found is None:
        raise ValueError(
            f"Cannot deserialize a PyTreeDef with a node of the unknown type {name!r}. Register the type "
            "under that name with `export.register_pytree_node_serialization` before reading the file."
        )
    return found
