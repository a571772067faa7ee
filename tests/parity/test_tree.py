"""Trees against the reference implementation: leaves, structures, key paths, and which calls fail."""

import collections
import functools
import random

import pytest

from gradix import tree, tree_util
from gradix._base.tree import recursion

pytestmark = pytest.mark.parity
Pair = collections.namedtuple("Pair", "left right")


@pytest.fixture(autouse=True, scope="module")
def _stack_of_its_thread():
    """The levels of recursion that the reference implementation's failing calls lose are given back."""
    before = recursion._entered()
    yield
    recursion._settle(recursion._entered() - before)


def grow(rng, depth=0):
    """A random tree of built-in nodes, now and then with a dict that cannot be sorted."""
    kind = rng.randrange(12 if depth < 4 else 3)
    below = lambda: [grow(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = lambda n: rng.sample("abcdefg", n)
    if kind < 2:
        return rng.randrange(100)
    if kind == 2:
        return rng.choice([None, "text", 1.5, (), [], {}, collections.deque([1])])
    if kind < 5:
        return below()
    if kind < 7:
        return tuple(below())
    children = below()
    if kind < 10:
        make = rng.choice([dict, collections.OrderedDict, functools.partial(collections.defaultdict, int)])
        return make(zip(keys(len(children)), children))
    if kind == 10 and rng.random() < 0.2:
        return {1: 2, "a": 3}
    return Pair(grow(rng, depth + 1), grow(rng, depth + 1))


def outcome(function, *args, **kwargs):
    """The value, or the type of the error (a RecursionError for jaxlib's SystemError)."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error)


def cases(count):
    rng = random.Random(7)
    return [(grow(rng), grow(rng)) for _ in range(count)]


def mutate(rng, value):
    """The tree with one leaf in three replaced by a small tree."""
    return tree.map(lambda x: grow(rng, 3) if rng.random() < 0.3 else x, value)


def test_flatten_structure_and_paths(peer):
    for value, _ in cases(300):
        assert outcome(tree.leaves, value) == outcome(peer.tree.leaves, value)
        assert str(outcome(tree.structure, value)) == str(outcome(peer.tree.structure, value))
        for kwargs in ({}, {"simple": True, "separator": "/"}):
            ours = outcome(tree.map_with_path, lambda p, _, k=kwargs: tree_util.keystr(p, **k), value)
            theirs = outcome(peer.tree.map_with_path, lambda p, _, k=kwargs: peer.tree_util.keystr(p, **k), value)
            assert ours == theirs
        is_none = lambda x: x is None
        assert outcome(tree.leaves, value, is_none) == outcome(peer.tree.leaves, value, is_none)
        ours, theirs = (outcome(lib.flatten_one_level, value) for lib in (tree_util, peer.tree_util))
        if ours is not ValueError:
            ours, theirs = (list(ours[0]), ours[1]), (list(theirs[0]), theirs[1])
        assert ours == theirs


def test_map_and_broadcast_of_two(peer):
    rng = random.Random(8)
    pick = lambda *xs: xs
    for one, other in cases(200):
        if outcome(tree.leaves, one) is ValueError:
            continue
        for two in (other, mutate(rng, one)):
            assert outcome(tree.map, pick, one, two) == outcome(peer.tree.map, pick, one, two)
            assert outcome(tree.broadcast, one, two) == outcome(peer.tree.broadcast, one, two)


def test_transpose(peer):
    for outer, inner in cases(200):
        leaves = outcome(tree.leaves, outer), outcome(tree.leaves, inner)
        if ValueError in leaves or [] in leaves:
            continue  # a tree without leaves turns inside out too, which the reference refuses
        value = tree.map(lambda _, below=inner: below, outer)
        for hint in (inner, None):
            results = []
            for library in (tree, peer.tree):
                inner_def = None if hint is None else library.structure(hint)
                results.append(outcome(library.transpose, library.structure(outer), inner_def, value))
            assert results[0] == results[1]


def test_reductions(peer):
    join = lambda a, b: f"({a}{b})"
    for size in range(20):
        letters = [chr(97 + i) for i in range(size)]
        for kwargs in ({}, {"identity": "_"}):
            ours = outcome(tree.reduce_associative, join, letters, **kwargs)
            assert ours == outcome(peer.tree.reduce_associative, join, letters, **kwargs)
        assert outcome(tree.reduce, join, letters) == outcome(peer.tree.reduce, join, letters)
        assert tree.reduce(join, letters, "_") == peer.tree.reduce(join, letters, "_")


def test_names_and_signatures(peer):
    for ours, theirs in ((tree, peer.tree), (tree_util, peer.tree_util)):
        assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))
