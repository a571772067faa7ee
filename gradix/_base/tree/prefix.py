"""Pytrees that are prefixes of others: repeats their leaves, and says where two trees differ."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .flattening import tree_flatten
from .native import PyTreeDef, children_with_keys, key_string

__all__ = ["broadcast_prefix", "equality_errors", "flatten_axes", "prefix_errors"]


def _is_none(x) -> bool:
    return x is None


@lru_cache(maxsize=4096)
def _leaf_counts(prefix: PyTreeDef, full: PyTreeDef) -> tuple[int, ...] | None:
    """The number of leaves of `full` below each leaf of `prefix`; None if it is not a prefix."""
    data = prefix.node_data()
    if data is None:
        return (full.num_leaves,)
    prefix_children, children = prefix.children(), full.children()
    if data != full.node_data() or len(prefix_children) != len(children):
        return None
    counts: tuple[int, ...] = ()
    for below_prefix, below in zip(prefix_children, children):
        child_counts = _leaf_counts(below_prefix, below)
        if child_counts is None:
            return None
        counts += child_counts
    return counts


def _spread(leaves: list, counts: tuple[int, ...]) -> list:
    return [leaf for leaf, count in zip(leaves, counts) for _ in range(count)]


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves of `prefix_tree`, each repeated for every leaf of `full_tree` below it.

    Raises:
        ValueError: `prefix_tree` is not a prefix of `full_tree`; the message names the path of
            every difference.
    """
    leaves, prefix_def = tree_flatten(prefix_tree, is_leaf)
    spread = []
    for leaf, subtree in zip(leaves, _up_to(prefix_def, prefix_tree, full_tree, is_leaf, "prefix_tree", "full_tree")):
        spread.extend([leaf] * tree_flatten(subtree, is_leaf)[1].num_leaves)
    return spread


def _up_to(prefix_def, prefix_tree, full_tree, is_leaf, prefix_name, full_name) -> list:
    """The subtrees of `full_tree` at the leaves of `prefix_def`; an error names all differences."""
    try:
        return prefix_def.flatten_up_to(full_tree)
    except (ValueError, TypeError) as error:
        differences = prefix_errors(prefix_tree, full_tree, is_leaf, prefix_name, full_name)
        if not differences:
            raise
        raise _joined(differences, error) from None


def _joined(differences: list[ValueError], fallback: Exception) -> ValueError:
    """One error for several differences."""
    if len(differences) == 1:
        return differences[0]
    return ValueError(f"{len(differences)} differences in structure.\n" + "\n".join(map(str, differences)))


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, of_call: bool = False) -> list:
    """The entry of `axis_tree`, a prefix of `treedef`, for each leaf; None counts as an entry.

    Args:
        name: the name of the axes in errors, such as "vmap in_axes".
        treedef: the structure of the value that the axes describe.
        axis_tree: the axes.
        of_call: whether both are pairs, for positional and for named arguments, of which the user
            gave the axes of the first.

    Raises:
        ValueError: the axes are not a prefix of the value's structure.

    Example:
        >>> from gradix._base.tree import tree_structure
        >>> flatten_axes("vmap in_axes", tree_structure(((1, 2), 3)), (0, None))
        [0, 0, None]
    """
    if axis_tree is None or type(axis_tree) is int:
        return [axis_tree] * treedef.num_leaves
    axes, axes_def = tree_flatten(axis_tree, _is_none)
    counts = _leaf_counts(axes_def, treedef)
    if counts is not None:
        return _spread(axes, counts)
    places = treedef.unflatten([_PLACE] * treedef.num_leaves)
    if of_call:
        (axis_tree, _), (places, _), treedef = axis_tree, places, treedef.children()[0]
    details = "\n".join(map(str, prefix_errors(axis_tree, places, _is_none, name, "the value")))
    raise ValueError(
        f"{name} must be a tree prefix of the value it describes: one entry for the whole value, or a tree that "
        f"stops early.\n{details}\n  {name}: {axis_tree!r}\n  the value's structure: {treedef}"
    )


class _Place:
    """Stands for a leaf where only the structure is known."""

    __slots__ = ()

    def __repr__(self):
        return "*"


_PLACE = _Place()


def prefix_errors(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    prefix_name: str = "prefix_tree",
    full_name: str = "full_tree",
) -> list[ValueError]:
    """An error for each place where `prefix_tree` stops being a prefix of `full_tree`."""
    return [
        ValueError(_sentence(path, one, two, why, prefix_name, full_name))
        for path, one, two, why in _differences((), prefix_tree, full_tree, is_leaf, True)
    ]


def equality_errors(tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple]:
    """A tuple (path, one description, the other, what differs) for each difference."""
    return [
        (path, _describe(one), _describe(two), why)
        for path, one, two, why in _differences((), tree1, tree2, is_leaf, False)
    ]


def _differences(path: tuple, one: Any, two: Any, is_leaf, prefix: bool) -> list[tuple]:
    """Tuples (path, node, node, kind) of the outermost differences.

    With `prefix`, a leaf of `one` fits any subtree.
    """
    node_one = None if is_leaf is not None and is_leaf(one) else children_with_keys(one)
    if node_one is None and prefix:
        return []
    node_two = None if not prefix and is_leaf is not None and is_leaf(two) else children_with_keys(two)
    if node_one is None and node_two is None:
        return []
    if node_one is None or node_two is None or type(one) is not type(two):
        return [(path, one, two, "type")]
    (pairs_one, aux_one), (pairs_two, aux_two) = node_one, node_two
    if isinstance(one, dict) and set(one) != set(two):
        return [(path, one, two, "keys")]
    if len(pairs_one) != len(pairs_two):
        return [(path, one, two, "length")]
    if aux_one != aux_two:
        return [(path, one, two, "data")]
    found = []
    for (key, child_one), (_, child_two) in zip(pairs_one, pairs_two):
        found += _differences((*path, key), child_one, child_two, is_leaf, prefix)
    return found


def _sentence(path, one, two, why, name_one, name_two) -> str:
    """A sentence that says where two trees differ, and what each has there."""
    place = key_string(path)
    header = f"pytree structure error at {name_one}{place}: "
    if why == "type":
        return f"{header}different types: {_describe(one)} in {name_one}, {_describe(two)} in {name_two}."
    if why == "keys":
        return (
            f"{header}Dict key mismatch: {_keys(one, two, name_one, name_two)}"
            f"{_keys(two, one, name_two, name_one)}".rstrip("; ")
            + "."
        )
    name = type(one).__name__
    (pairs_one, aux_one), (pairs_two, aux_two) = (children_with_keys(node) or ([], None) for node in (one, two))
    if why == "length":
        return f"{header}different lengths of {name}: {len(pairs_one)} in {name_one}, {len(pairs_two)} in {name_two}."
    return f"{header}different pytree metadata of {name}: {aux_one!r} in {name_one}, {aux_two!r} in {name_two}."


def _keys(one, two, name: str, other: str) -> str:
    only = [key for key in one if key not in two]
    return f"only in {name}: {', '.join(map(repr, only))}, not in {other}; " if only else ""


def _describe(node: Any) -> str:
    """A node by its type and size, a leaf by its type."""
    if node is None:
        return "None"
    if isinstance(node, _Place):
        return "a leaf (*)"
    one_level = children_with_keys(node)
    if one_level is None:
        return f"a leaf of type {type(node).__name__}"
    return f"{type(node).__name__} with {len(one_level[0])} child{'ren' * (len(one_level[0]) != 1)}"
