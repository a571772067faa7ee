"""Pytrees: taking apart, putting together, mapping, prefixes, key paths, and what their errors say."""

import collections
import dataclasses
import functools
import operator
import pickle
import sys
import threading
import time

import pytest
from hypothesis import given, strategies as st

import gradix
import gradix.numpy as jnp
from gradix import tree, tree_util
from gradix._base.recursion_room import LIMIT_LOCK, Room
from gradix._base.tree import broadcast_prefix, equality_errors, flatten_axes, prefix_errors, recursion

Point = collections.namedtuple("Point", "x y")


def trees():
    """Nested containers of every built-in node type."""
    keys = st.text("abcde", min_size=1, max_size=2)
    return st.recursive(
        st.integers() | st.none(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(keys, inner, max_size=3)
            | st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict)
            | st.dictionaries(keys, inner, max_size=3).map(lambda d: collections.defaultdict(list, d))
            | st.builds(Point, inner, inner)
        ),
        max_leaves=12,
    )


def reach(node, path):
    """What the key path leads to."""
    for key in path:
        node = getattr(node, key.name) if hasattr(key, "name") else node[getattr(key, "idx", getattr(key, "key", None))]
    return node


@given(trees())
def test_unflatten_undoes_flatten(value):
    leaves, treedef = tree.flatten(value)
    assert tree.unflatten(treedef, leaves) == value
    assert treedef.num_leaves == len(leaves) and tree.structure(value) == treedef
    assert tree.leaves(value) == leaves and hash(tree.structure(value)) == hash(treedef)
    assert pickle.loads(pickle.dumps(treedef)) == treedef


@given(trees())
def test_key_paths_lead_to_the_leaves(value):
    pairs, treedef = tree.flatten_with_path(value)
    assert treedef == tree.structure(value) and [leaf for _, leaf in pairs] == tree.leaves(value)
    for path, leaf in pairs:
        assert reach(value, path) is leaf
        assert eval("value" + tree_util.keystr(path), {"value": value}) is leaf


@given(trees())
def test_map_keeps_the_structure(value):
    doubled = tree.map(lambda x: 2 * x, value)
    assert tree.structure(doubled) == tree.structure(value)
    assert tree.leaves(doubled) == [2 * x for x in tree.leaves(value)]
    assert tree.map(operator.add, value, value) == doubled
    assert tree.map_with_path(lambda path, x: 2 * reach(value, path), value) == doubled


@given(trees(), trees())
def test_mapping_two_trees_works_where_one_is_a_prefix_of_the_other(one, two):
    errors = prefix_errors(one, two)
    if errors:
        with pytest.raises(ValueError, match="structure"):
            tree.map(lambda x, y: x, one, two)
        with pytest.raises(ValueError, match="structure"):
            tree.broadcast(one, two)
    else:
        tree.map(lambda x, y: x, one, two)
        assert tree.structure(tree.broadcast(one, two)) == tree.structure(two)
    assert bool(equality_errors(one, two)) == (tree.structure(one) != tree.structure(two))


@given(trees(), trees())
def test_every_tree_is_the_prefix_of_itself_with_trees_for_leaves(one, below):
    full = tree.map(lambda _: below, one)
    assert prefix_errors(one, full) == []
    size = tree.structure(below).num_leaves
    assert broadcast_prefix(one, full) == [leaf for leaf in tree.leaves(one) for _ in range(size)]


@given(trees(), trees())
def test_transpose_twice_is_the_identity(outer, inner):
    outer_def, inner_def = tree.structure(outer), tree.structure(inner)
    if not outer_def.num_leaves or not inner_def.num_leaves:
        return
    value = tree.unflatten(
        outer_def,
        [tree.unflatten(inner_def, list(range(k, k + inner_def.num_leaves))) for k in range(outer_def.num_leaves)],
    )
    turned = tree.transpose(outer_def, inner_def, value)
    assert tree.structure(turned) == inner_def.compose(outer_def)
    assert tree.transpose(inner_def, outer_def, turned) == value


def test_node_types():
    assert tree.leaves({"b": 1, "a": 2}) == [2, 1]
    assert tree.leaves(collections.OrderedDict(b=1, a=2)) == [1, 2]
    assert tree.leaves(collections.defaultdict(int, b=1, a=2)) == [2, 1]
    assert tree.leaves((None, [], ())) == []
    for leaf in (collections.deque([1]), {1, 2}, range(3), "text", collections.Counter("a"), type("D", (dict,), {})()):
        assert tree.leaves(leaf) == [leaf] and not tree_util.is_tree_node(type(leaf))
    restored = tree.unflatten(*reversed(tree.flatten(collections.defaultdict(list, a=1))))
    assert restored["new"] == []


def test_is_leaf():
    assert tree.leaves([(1, 2), None], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2)]
    assert tree.leaves([1, None], is_leaf=lambda x: x is None) == [1, None]
    assert tree.map(lambda a, b: (a, b), (1, (2, 3)), (4, 5), is_leaf=lambda x: x == (2, 3)) == ((1, 4), ((2, 3), 5))
    deep = tree.leaves_with_path({"a": (1, 2)}, is_leaf=lambda path, _: len(path) == 1, is_leaf_takes_path=True)
    assert [(tree_util.keystr(path), leaf) for path, leaf in deep] == [("['a']", (1, 2))]


def test_reductions():
    assert tree.all({}) and tree.all([1, (True,)]) and not tree.all([1, 0])
    assert tree.reduce(operator.add, [1, (2, 3)], 10) == 16
    assert tree.reduce(lambda a, b: (a, b), [1, None], None) == (None, 1)
    join = lambda a, b: f"({a}{b})"
    assert tree.reduce_associative(join, list("abcde")) == "((ab)(c(de)))"
    assert tree.reduce_associative(join, [], identity="") == ""
    with pytest.raises(TypeError, match="initializer"):
        tree.reduce(operator.add, [])
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(operator.add, [None])


def test_keystr_forms():
    path = (tree_util.DictKey("a"), tree_util.SequenceKey(1), tree_util.GetAttrKey("w"), tree_util.FlattenedIndexKey(3))
    assert tree_util.keystr(path) == "['a'][1].w[<flat index 3>]"
    assert tree_util.keystr(path, simple=True, separator="/") == "a/1/w/3"
    assert tree_util.keystr(path, separator="/") == "['a']/[1]/.w/[<flat index 3>]"
    assert tree_util.keystr(()) == ""


def test_one_level():
    assert tree_util.flatten_one_level([1, (2, 3)]) == ([1, (2, 3)], None)
    pairs, _ = tree_util.flatten_one_level_with_keys(Point(1, 2))
    assert [key.name for key, _ in pairs] == ["x", "y"]
    with pytest.raises(ValueError, match="leaf"):
        tree_util.flatten_one_level(3)


def test_treedefs():
    treedef = tree.structure((1, [2]))
    assert tree_util.treedef_tuple(tree_util.treedef_children(treedef)) == treedef
    assert [tree_util.treedef_is_leaf(tree.structure(x)) for x in (1, None, (), (1,))] == [True, True, True, False]
    assert tree_util.all_leaves([1, "a"]) and not tree_util.all_leaves([1, ()]) and not tree_util.all_leaves([None])


# ------------------------------------------------------------------------------------------------ errors
@pytest.mark.parametrize(
    "one, two, words",
    [
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, ["['a']", "lengths", "2", "3"]),
        ({"a": 1, "c": 2}, {"a": 1, "b": 2}, ["Dict key mismatch", "'c'", "'b'"]),
        ((1, [2]), (1, (2,)), ["[1]", "types", "list", "tuple"]),
        ((1, [2]), (1, 5), ["[1]", "types", "leaf of type int"]),
        ((1, None), (1, 5), ["[1]", "None", "int"]),
    ],
)
def test_a_mismatch_names_the_path_and_both_sides(one, two, words):
    with pytest.raises(ValueError) as caught:
        tree.map(lambda x, y: x, one, two)
    for word in words:
        assert word in str(caught.value)


def test_different_keys_are_said_in_the_words_that_libraries_look_for():
    with pytest.raises(ValueError, match=r"Dict key mismatch: only in .*: 'b'"):
        tree.map(lambda x, y: x, {"a": 1}, {"a": 1, "b": 2})


def test_all_mismatches_are_named():
    with pytest.raises(ValueError) as caught:
        tree.map(lambda x, y: x, {"a": [1], "b": [2]}, {"a": (1,), "b": (2,)})
    assert "['a']" in str(caught.value) and "['b']" in str(caught.value)


def test_transpose_of_a_tree_without_leaves():
    assert tree.transpose(tree.structure(()), tree.structure([1]), ()) == [()]
    with pytest.raises(TypeError, match="Pass inner_treedef"):
        tree.transpose(tree.structure(()), None, ())


def test_transpose_shows_both_structures():
    with pytest.raises(TypeError, match=r"tree: .*\n.*expected:"):
        tree.transpose(tree.structure((1, 2)), tree.structure([1]), ([1], [2, 3]))


def test_a_dict_with_keys_of_several_types_says_where():
    with pytest.raises(ValueError) as caught:
        tree.flatten({"params": [{1: 0, "a": 0}]})
    assert "tree['params'][0]" in caught.value.__notes__[0]


# ------------------------------------------------------------------------------------------------ stack
class Link:
    def __init__(self, target=None):
        self.target = target


tree_util.register_pytree_node(Link, lambda link: ((link.target,), None), lambda _, children: Link(*children))


class Refusing:
    pass


def _refuse(node):
    raise LookupError("refused")


tree_util.register_pytree_node(Refusing, _refuse, lambda _, children: Refusing())


def raises_and_keeps_the_stack(match: str, call) -> None:
    """The call raises RecursionError, and leaves the thread its stack: the frames of Python it can push, and the calls of C.

    On Python 3.12 and 3.13, where how many of the latter are in progress is not known, it may miss two for each frame. Threads that
    trace or compile raise the limit of all threads meanwhile, so what is not as before is measured again.
    """

    def down(n):
        try:
            return down(n + 1)
        except RecursionError:
            return n

    measured = []
    for _ in range(20):
        before = down(0), recursion._budget()
        with pytest.raises(RecursionError, match=match):
            call()
        after = down(0), recursion._budget()
        measured.append((before, after))
        if after[0] >= before[0] - 40 and -2 * recursion._depth() - 40 <= after[1] - before[1] <= 40:
            return
        time.sleep(0.1)
    pytest.fail(f"(frames, levels) before and after: {measured}")


def cyclic_list():
    value = [1]
    value.append({"k": (value,)})
    return value


def cyclic_dict(kind=dict):
    """Its keys are compared at each level, where the stack may end."""
    value = kind({"a": 1, "c": (2,)})
    value["b"] = [value]
    return value


def cyclic_link():
    value = Link()
    value.target = [value]
    return value


def deep(make, levels=20_000):
    value = 1
    for _ in range(levels):
        value = make(value)
    return value


@pytest.mark.parametrize(
    "call",
    [
        lambda: tree.flatten(cyclic_list()),
        lambda: tree.leaves(cyclic_link()),
        lambda: tree.leaves(cyclic_dict()),
        lambda: tree.leaves_with_path(cyclic_dict()),
        lambda: tree.flatten(cyclic_dict(collections.OrderedDict)),
        lambda: tree.structure(cyclic_dict(functools.partial(collections.defaultdict, int))),
        lambda: tree.structure(cyclic_link()),
        lambda: tree.flatten_with_path(cyclic_link()),
        lambda: tree.map(abs, cyclic_list()),
        lambda: tree.leaves(cyclic_list(), is_leaf=lambda x: False),
        lambda: tree.broadcast([1, 2], cyclic_list()),
    ],
    ids=["list", "node", "dict", "dict_path", "ordered", "default", "structure", "path", "map", "is_leaf", "broadcast"],
)
def test_a_tree_that_contains_itself(call):
    raises_and_keeps_the_stack("contains itself: tree", call)


@pytest.mark.parametrize(
    "make", [lambda x: [x], lambda x: {"k": x}, lambda x: {"k": x, "j": 1}, Link], ids=["list", "dict", "keys", "node"]
)
def test_a_tree_too_deep(make):
    value = deep(make)
    raises_and_keeps_the_stack("nested more than", lambda: tree.leaves(value))


def test_errors_in_callbacks_do_not_use_up_the_stack():
    def raising(x):
        if x == 1:
            raise LookupError("refused")
        return False

    calls = (
        lambda: tree.flatten([[[Refusing()]]]),
        lambda: tree.flatten([[[1]]], raising),
        lambda: tree.leaves_with_path([[[1]]], raising),
    )
    tree.leaves(1)
    before = recursion._budget()
    for call in calls:
        for _ in range(20):
            with pytest.raises(LookupError, match="refused"):
                call()
    assert recursion._budget() == before


def test_errors_in_arguments_do_not_use_up_the_stack():
    unsorted, node = {1: 2, "a": [3]}, Refusing()
    for call in (
        lambda: gradix.jit(lambda x: x)(unsorted),
        lambda: gradix.jit(lambda x: x)([[node]]),
        lambda: gradix.vmap(lambda x: x, in_axes=({1: 2, "a": 0},))(jnp.ones(3)),
        lambda: gradix.grad(lambda x: 1.0)([node]),
    ):
        before = recursion._budget()
        for _ in range(10):
            with pytest.raises((ValueError, LookupError)):
                call()
        assert recursion._budget() == before


@pytest.mark.filterwarnings("error")
def test_what_jaxlib_raises_at_a_leaf_does_not_use_up_the_stack():
    before = recursion._budget()
    for _ in range(20):
        for call in (tree.leaves, tree.leaves_with_path):
            with pytest.raises(DeprecationWarning, match="generator"):
                call([1, {"k": [(i for i in "ab")]}])
    assert recursion._budget() == before


def test_the_stack_while_other_threads_change_the_limit():
    stop, interval = threading.Event(), sys.getswitchinterval()

    def trace():
        while not stop.is_set():
            with Room(200):
                sum(range(300))

    threads = [threading.Thread(target=trace) for _ in range(2)]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for _ in range(40):
            with pytest.raises(RecursionError, match="contains itself"):
                tree.leaves(cyclic_list())
            with LIMIT_LOCK:
                assert recursion._entered() <= 3 * recursion._depth()
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()


def test_the_stack_of_another_thread():
    seen = []

    def work():
        for _ in range(5):
            try:
                tree.leaves(cyclic_link())
            except RecursionError as error:
                seen.append("contains itself" in str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True] * 5


# ------------------------------------------------------------------------------------------------ axes
def test_flatten_axes():
    treedef = tree.structure(((1, {"a": 2}), 3, None))
    assert flatten_axes("in_axes", treedef, None) == [None, None, None]
    assert flatten_axes("in_axes", treedef, 0) == [0, 0, 0]
    assert flatten_axes("in_axes", treedef, (0, None, None)) == [0, 0, None]
    assert flatten_axes("in_axes", treedef, ((1, {"a": None}), -1, 0)) == [1, None, -1]
    with pytest.raises(ValueError, match=r"(?s)must be a tree prefix.*\[0\]\[1\].*only in vmap in_axes: 'b'"):
        flatten_axes("vmap in_axes", treedef, ((1, {"b": None}), -1, 0))
    with pytest.raises(ValueError, match="lengths of tuple: 2 in out_axes, 3 in"):
        flatten_axes("out_axes", treedef, (0, 0))


def test_equality_errors_describe_both():
    ((path, one, two, kind),) = equality_errors({"a": [1, 2]}, {"a": [1]})
    assert (tree_util.keystr(path), one, two, kind) == ("['a']", "list with 2 children", "list with 1 child", "length")


@dataclasses.dataclass
class Net:
    weight: float
    bias: float = 0.0
    name: str = tree.static(default="net")


def test_dataclass_paths_in_errors():
    tree_util.register_dataclass(Net)
    with pytest.raises(ValueError, match=r"tree\.weight"):
        tree.map(lambda x, y: x, Net([1], 2), Net((1,), 2))
    with pytest.raises(ValueError, match=r"metadata of Net: \('a',\) in tree, \('b',\)"):
        tree.map(lambda x, y: x, Net(1, 2, "a"), Net(1, 2, "b"))


def test_transpose_counts_leaves_and_keeps_nodes_whose_data_hold_a_structure():
    @tree_util.register_pytree_node_class
    class Held:
        def __init__(self, value):
            self.leaves, self.structure = tree.flatten(value)

        def tree_flatten(self):
            return self.leaves, self.structure

        @classmethod
        def tree_unflatten(cls, structure, leaves):
            return cls(tree.unflatten(structure, list(leaves)))

    outer = tree.structure(Held({"a": 1, "b": 2}))
    turned = tree.transpose(outer, tree.structure([1, 2]), Held({"a": [3, 4], "b": [5, 6]}))
    assert [t.leaves for t in turned] == [[3, 5], [4, 6]]
