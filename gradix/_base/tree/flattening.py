"""Takes pytrees apart and puts them together, and names the places of leaves."""

from collections.abc import Callable, Iterable
from typing import Any

from .native import KeyPath, PyTreeDef, flatten, flatten_with_path, key_string
from .recursion import LOAN, failure, leave

__all__ = [
    "keystr",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_structure",
    "tree_unflatten",
]

IsLeaf = Callable[[Any], bool]

# Called like this, they enter one more level of recursion, which a handler of a RecursionError needs.
_flatten = flatten.__call__
_flatten_with_path = flatten_with_path.__call__


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a pytree, in order, and its structure.

    Tuples, lists, dicts (by sorted key), namedtuples, OrderedDict, defaultdict and registered types
    are nodes, None is a node without leaves, and everything else is a leaf.

    Args:
        tree: any value.
        is_leaf: called on each node before it is entered; True makes the node a leaf.

    Returns:
        `(leaves, treedef)`.

    Raises:
        RecursionError: the tree contains itself, or is nested too deeply.
        ValueError: the keys of a dict cannot be sorted.

    Example:
        >>> tree_flatten({"b": [1, 2], "a": (3, None)})
        ([3, 1, 2], PyTreeDef({'a': (*, None), 'b': [*, *]}))
        >>> leaves, structure = tree_flatten({"w": 1.5, "b": (2, 3)})
        >>> structure.unflatten([-x for x in leaves])
        {'b': (-2, -3), 'w': -1.5}

    See also:
        `tree.unflatten`, `tree.leaves`, `tree.structure`, `tree.leaves_with_path`,
        `gradix.flatten_util.ravel_pytree`.
    """
    try:
        return _flatten(tree, is_leaf)
    except Exception as error:
        for _ in LOAN:
            leave()
        raise failure(error, flatten, tree, is_leaf, takes_path=False)  # noqa: B904


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree of structure `treedef` with these leaves; the inverse of `tree_flatten`.

    Raises:
        ValueError: too few or too many leaves.
        TypeError: `treedef` is not a structure.

    Example:
        >>> tree_unflatten(tree_structure((1, {"a": 2})), [10, 20])
        (10, {'a': 20})
    """
    try:
        return treedef.unflatten(leaves)
    except AttributeError:
        if hasattr(treedef, "unflatten"):
            raise
        raise TypeError(
            f"tree.unflatten takes a structure first, and then the leaves, got a {type(treedef).__name__} first."
        ) from None


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a pytree, in order; `is_leaf` is as in `tree_flatten`.

    Example:
        >>> tree_leaves([1, (2, None), {"x": 3}])
        [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """The structure of a pytree, which can be compared, hashed and printed.

    Args:
        tree: any value.
        is_leaf: as in `tree_flatten`.

    Example:
        >>> tree_structure({"a": [1, 2], "b": None})
        PyTreeDef({'a': [*, *], 'b': None})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The (key path, leaf) pairs of a pytree, and its structure.

    Args:
        tree: any value.
        is_leaf: as in `tree_flatten`; with `is_leaf_takes_path` it is called with (path, node).
        is_leaf_takes_path: see `is_leaf`.

    Raises:
        ValueError: the keys of a dict cannot be sorted.

    Example:
        >>> tree_flatten_with_path({"a": [1]})
        ([((DictKey(key='a'), SequenceKey(idx=0)), 1)], PyTreeDef({'a': [*]}))
    """
    predicate = is_leaf if is_leaf_takes_path else _with_path(is_leaf)
    try:
        return _flatten_with_path(tree, predicate)
    except Exception as error:
        for _ in LOAN:
            leave()
        raise failure(error, flatten_with_path, tree, predicate, takes_path=True)  # noqa: B904


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The (key path, leaf) pairs of a pytree.

    Args:
        tree: any value.
        is_leaf: as in `tree_flatten`; with `is_leaf_takes_path` it is called with (path, node).
        is_leaf_takes_path: see `is_leaf`.

    Example:
        >>> from gradix._base.tree import keystr
        >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def _with_path(is_leaf: IsLeaf | None) -> Any:
    """`is_leaf` as a function of a path and a node; what is no function stays, and is refused later."""
    return (lambda path, node: is_leaf(node)) if callable(is_leaf) else is_leaf


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    Args:
        keys: the key path.
        simple: write only the names and indices, without brackets and quotes.
        separator: the text between the keys.

    Example:
        >>> from gradix._base.tree import tree_leaves_with_path
        >>> path = tree_leaves_with_path({"a": [1, {"w": 2}]})[1][0]
        >>> keystr(path), keystr(path, simple=True, separator="/")
        ("['a'][1]['w']", 'a/1/w')
    """
    if not simple and not separator:
        return key_string(keys)
    return separator.join(map(_simple_key if simple else str, keys))


def _simple_key(key: Any) -> str:
    for attribute in ("key", "idx", "name"):
        value = getattr(key, attribute, None)
        if value is not None:
            return str(value)
    return str(key)
