"""Functions on pytrees, which map, reduce, broadcast and transpose them."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .flattening import IsLeaf, tree_flatten, tree_flatten_with_path, tree_leaves, tree_structure
from .native import PyTreeDef, children_with_keys, leaf_definition, make_node, pytree, registry
from .prefix import _up_to, broadcast_prefix

# fmt: off
__all__ = [
    "all_leaves", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "numbered", "tree_all",
    "tree_broadcast", "tree_map", "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_transpose",
    "treedef_children", "treedef_is_leaf", "treedef_tuple",
]
# fmt: on


class Unspecified:
    """The default of an argument for which None means something."""

    __slots__ = ()

    def __repr__(self):
        return "<unspecified>"


_UNSPECIFIED = Unspecified()


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The pytree of `f(leaf, *others)`, where `tree` is a prefix of each tree in `rest`.

    Args:
        f: a function of a leaf of `tree` and the subtrees in its place in each tree of `rest`.
        tree: the tree that gives the structure.
        rest: further trees.
        is_leaf: called on each node before it is entered; True makes the node a leaf.

    Raises:
        ValueError: a tree in `rest` has another structure; the message names the path.
        TypeError: `f` is not callable.

    Example:
        >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
        {'a': 11, 'b': (22,)}
        >>> tree_map(lambda x: 2 * x, [1, None])
        [2, None]

    See also:
        `tree.map_with_path`, `tree.reduce`, `tree.leaves`, `gradix.vmap`.
    """
    _check_function("map", f)
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten(map(f, leaves))
    others = [_up_to(treedef, tree, r, is_leaf, "tree", f"rest[{i}]") for i, r in enumerate(rest)]
    return treedef.unflatten(map(f, leaves, *others))


def _check_function(name: str, f) -> None:
    if not callable(f):
        raise TypeError(
            f"tree.{name} takes a function first, and then trees: tree.{name}(f, tree), got a {type(f).__name__}."
        )


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether every leaf is true; True for a tree without leaves.

    Example:
        >>> tree_all({"a": True, "b": (1, False)})
        False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _UNSPECIFIED, is_leaf: IsLeaf | None = None
) -> Any:
    """The leaves combined from the left, as by `functools.reduce`.

    Args:
        function: a function of the value so far and the next leaf.
        tree: any value.
        initializer: the first value; without it, the first leaf.
        is_leaf: called on each node before it is entered; True makes the node a leaf.

    Raises:
        TypeError: there are neither leaves nor an `initializer`.

    Example:
        >>> tree_reduce(lambda a, b: a + b, {"a": 1, "b": [2, 3]})
        6
    """
    _check_function("reduce", function)
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _UNSPECIFIED:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError(f"tree_reduce() of a tree without leaves, {tree!r}, needs the argument initializer.")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _UNSPECIFIED, is_leaf: IsLeaf | None = None
) -> Any:
    """The leaves combined in a balanced tree of calls, so that the program has logarithmic depth.

    Args:
        operation: an associative function of two values; leaves keep their order.
        tree: any value.
        identity: the value for a tree without leaves.
        is_leaf: called on each node before it is entered; True makes the node a leaf.

    Raises:
        TypeError: there are neither leaves nor an `identity`.

    Example:
        >>> tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
        '((ab)(cd))'
    """
    _check_function("reduce_associative", operation)
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _balanced(operation, leaves)
    if identity is _UNSPECIFIED:
        raise TypeError(f"tree_reduce_associative() of a tree without leaves, {tree!r}, needs the argument identity.")
    return identity


def _balanced(operation, values: list) -> Any:
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return operation(_balanced(operation, values[:half]), _balanced(operation, values[half:]))


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """A tree of the structure of `full_tree` whose leaves are those of `prefix_tree`, repeated.

    Args:
        prefix_tree: a tree whose leaves stand where `full_tree` has subtrees or leaves.
        full_tree: the tree that gives the structure.
        is_leaf: called on each node of `prefix_tree` before it is entered; True makes the node a
            leaf.

    Raises:
        ValueError: `prefix_tree` is not a prefix of `full_tree`.

    Example:
        >>> tree_broadcast((0, None), ({"a": 1, "b": 2}, None))
        ({'a': 0, 'b': 0}, None)
    """
    spread = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree, is_leaf).unflatten(spread)


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out: structure `outer` of `inner` becomes `inner` of `outer`.

    Args:
        outer_treedef: the structure of the outer levels.
        inner_treedef: the structure of the inner levels; None takes that of the first outer leaf.
        pytree_to_transpose: the tree.

    Raises:
        TypeError: the tree does not have as many leaves as the two structures together.

    Example:
        >>> tree_transpose(tree_structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
        {'a': [1, 3], 'b': [2, 4]}
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    _structure("tree_transpose", outer_treedef)
    if inner_treedef is None:
        if not outer_treedef.num_leaves:
            raise TypeError("tree_transpose: outer_treedef has no leaves. Pass inner_treedef, which cannot be found.")
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    inner_size, outer_size = _structure("tree_transpose", inner_treedef).num_leaves, outer_treedef.num_leaves
    if treedef.num_leaves != inner_size * outer_size:
        raise TypeError(
            f"tree_transpose: the tree's structure is not outer_treedef with inner_treedef at each leaf.\n"
            f"  tree:     {treedef}\n  expected: {outer_treedef.compose(inner_treedef)}"
        )
    columns = [outer_treedef.unflatten(leaves[i::inner_size]) for i in range(inner_size)]
    return inner_treedef.unflatten(columns)


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """`tree_map` with a function that takes the key path first.

    Args:
        f: a function of the key path of a leaf, the leaf, and the subtrees in its place in each
            tree of `rest`.
        tree, rest: as for `tree_map`.
        is_leaf, is_leaf_takes_path: as for `tree_flatten_with_path`.

    Example:
        >>> from gradix._base.tree import keystr
        >>> tree_map_with_path(lambda path, x: f"{keystr(path)} = {x}", {"w": 1, "b": (2,)})
        {'b': ("['b'][0] = 2",), 'w': "['w'] = 1"}
    """
    _check_function("map_with_path", f)
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    plain = None if is_leaf_takes_path else is_leaf
    others = [_up_to(treedef, tree, r, plain, "tree", f"rest[{i}]") for i, r in enumerate(rest)]
    return treedef.unflatten(map(f, paths, leaves, *others))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Whether every element is a leaf and none a container.

    Raises:
        TypeError: `iterable` is none.

    Example:
        >>> all_leaves([1, "two", 3.0]), all_leaves([1, (2,)])
        (True, False)
    """
    if not hasattr(iterable, "__iter__"):
        raise TypeError(f"all_leaves takes an iterable of objects, got {type(iterable).__name__}. Write [x] for one.")
    elements = list(iterable)
    if is_leaf is None:
        return pytree.all_leaves(registry, elements)
    leaves = tree_leaves(elements, is_leaf)
    return len(leaves) == len(elements) and all(a is b for a, b in zip(leaves, elements))


def is_tree_node(typ: type) -> bool:
    """Whether values of this type are nodes.

    Example:
        >>> is_tree_node(dict), is_tree_node(str)
        (True, False)
    """
    return registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The children of a node and its auxiliary data.

    Returns:
        `(children, auxiliary data)`; `tree` is any node.

    Raises:
        ValueError: the value is a leaf.

    Example:
        >>> flatten_one_level((1, [2, 3]))
        ((1, [2, 3]), None)
    """
    return _one_level(registry.flatten_one_level, tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """The (key, child) pairs of a node and its auxiliary data.

    Raises:
        ValueError: the value is a leaf.

    Example:
        >>> flatten_one_level_with_keys({"a": [1]})
        ([(DictKey(key='a'), [1])], ('a',))
    """
    return _one_level(children_with_keys, tree)


def _one_level(split, tree):
    found = split(tree)
    if found is None:
        raise ValueError(
            f"{tree!r} of type {type(tree).__name__} is a leaf: it has no children to flatten. "
            "Make the type a node with register_pytree_node."
        )
    return found


def _structure(name: str, given) -> PyTreeDef:
    """A structure, for a function of one."""
    if not isinstance(given, PyTreeDef):
        raise TypeError(
            f"{name} takes the structure of a tree, a PyTreeDef, got {type(given).__name__}. Write "
            "gradix.tree.structure(tree)."
        )
    return given


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of a node's children.

    Example:
        >>> treedef_children(tree_structure((1, [2])))
        [PyTreeDef(*), PyTreeDef([*])]
    """
    return _structure("treedef_children", treedef).children()


def numbered(treedef: PyTreeDef) -> Any:
    """A tree of this structure whose leaves are their numbers, to tell their paths or to compare it.

    A node of a class that refuses to be made of numbers, as it looks at the shapes of arrays, is the list
    of its children.
    """
    try:
        return treedef.unflatten(range(treedef.num_leaves))
    except Exception:  # what a user's class raises
        return _numbered(treedef, iter(range(treedef.num_leaves)))


def _numbered(treedef: PyTreeDef, numbers) -> Any:
    data = treedef.node_data()
    if data is None:
        return next(numbers)
    parts = [_numbered(child, numbers) for child in treedef.children()]
    try:
        return make_node(data[0], data[1], [leaf_definition()] * len(parts)).unflatten(parts)
    except Exception:  # as above
        return parts


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is that of a leaf, or of a node without children.

    Example:
        >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure((1,)))
        (True, False)
    """
    return _structure("treedef_is_leaf", treedef).num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of the given structures.

    Raises:
        TypeError: `treedefs` is no sequence of structures.

    Example:
        >>> treedef_tuple([tree_structure(1), tree_structure([2])])
        PyTreeDef((*, [*]))
    """
    if not hasattr(treedefs, "__iter__"):
        raise TypeError(f"treedef_tuple takes a sequence of structures, got {type(treedefs).__name__}.")
    return pytree.treedef_tuple(registry, [_structure("treedef_tuple", t) for t in treedefs])
