"""Registration of types of pytree nodes for files, with functions for their static data."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from gradix._base.lazy import lazy_module
from gradix._base.tree import is_tree_node

T = TypeVar("T", bound=type)
_counted = lazy_module("gradix.export.counted")
RAGGED = "gradix.Ragged"  # rows of different lengths, whose module few programs load


class Registered(NamedTuple):
    """The functions by which nodes of a type are written to files and read from them."""

    nodetype: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, tuple], Any] | None


_by_type: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}


def _register(entry: Registered) -> None:
    for known, key in ((_by_type.get(entry.nodetype), entry.nodetype), (_by_name.get(entry.name), entry.name)):
        if known is not None:
            raise ValueError(
                f"Duplicate serialization registration of {key!r}: type {known.nodetype} is registered "
                f"with the name {known.name!r} already. Register another type, or under another name."
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
        serialize_auxdata: a function that converts the node's static data to bytes.
        deserialize_auxdata: a function that converts the bytes to static data.
        from_children: a function that makes a node from static data and children; by default that
            of the pytree registration.

    Returns:
        `nodetype`.

    Raises:
        ValueError: the type is not a pytree node, it is a named tuple, or the type or name is
            registered already.

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
            f"type {nodetype} is not a pytree node. Register it by gradix.tree_util.register_pytree_node first."
        )
    if from_children is None and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields"):
        raise ValueError(
            f"{nodetype} is a named tuple: use register_namedtuple_serialization. If `from_children` is not "
            "present, you must call `gradix.tree_util.register_pytree_node` for the type first."
        )
    _register(Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: T, *, serialized_name: str) -> T:
    """Allow a type of named tuples in the trees of exported functions that are written to files.

    Args:
        nodetype: a type made by `collections.namedtuple` or `typing.NamedTuple`.
        serialized_name: the name of the type in files.

    Returns:
        `nodetype`.

    Raises:
        ValueError: the type is not a named tuple, or the type or name is registered already.

    Example:
        >>> import collections
        >>> from gradix import export
        >>> Point = collections.namedtuple("Point", "x y")
        >>> export.register_namedtuple_serialization(Point, serialized_name="example.Point") is Point
        True
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"Use register_pytree_node_serialization instead: {nodetype} is not a named tuple.")

    def read(aux: bytes):
        fields = tuple(json.loads(aux))
        if fields != nodetype._fields:
            raise ValueError(
                f"the file has a {serialized_name} with the fields {fields}, but {nodetype} has the fields "
                f"{nodetype._fields}. Register a type with the fields of the file."
            )

    _register(Registered(nodetype, serialized_name, lambda _: json.dumps(list(nodetype._fields)).encode(), read, None))
    return nodetype


def _fields_of_dict(aux: bytes) -> tuple:
    """The keys of a dict in its order, which must be strings."""
    keys = tuple(json.loads(bytes(aux)))
    if not all(isinstance(k, str) for k in keys):
        raise ValueError(f"the file has an OrderedDict with the keys {keys}, which must be strings.")
    return keys


def _keys_as_text(keys) -> bytes:
    wrong = [k for k in keys if not isinstance(k, str)]
    if wrong:
        raise ValueError(f"Cannot serialize an OrderedDict with the key {wrong[0]!r}: only strings are keys in files.")
    return json.dumps(list(keys)).encode()


_register(Registered(collections.OrderedDict, "collections.OrderedDict", _keys_as_text, _fields_of_dict, None))


def by_type(nodetype: type) -> Registered:
    """The registration of a type.

    Raises:
        ValueError: the type is not registered.
    """
    found = _by_type.get(nodetype)
    if found is None and nodetype.__module__ == "gradix._api.counted.ragged":
        return _counted.ragged
    if found is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{nodetype}`. Use "
            "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."
        )
    return found


def by_name(name: str) -> Registered:
    """The registration under a name.

    Raises:
        ValueError: no type is registered under the name.
    """
    found = _by_name.get(name)
    if found is None and name == RAGGED:
        return _counted.ragged
    if found is None:
        raise ValueError(
            f"Cannot deserialize a PyTreeDef with a node of the unknown type {name!r}. Register the type "
            "under that name with `export.register_pytree_node_serialization` before reading the file."
        )
    return found
