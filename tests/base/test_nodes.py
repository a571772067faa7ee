"""Registering node types, and the node types of the package."""

import dataclasses
import functools
import inspect
import operator
import pickle

import pytest

from gradix import tree, tree_util
from gradix.tree_util import GetAttrKey, Partial, keystr


def paths(value):
    return [keystr(path) for path, _ in tree.leaves_with_path(value)]


def round_trip(value):
    leaves, treedef = tree.flatten(value)
    return tree.unflatten(treedef, leaves)


def test_register_function():
    class Box:
        def __init__(self, *content):
            self.content = content

    tree_util.register_pytree_node(Box, lambda b: (b.content, "aux"), lambda aux, content: Box(*content))
    assert tree.leaves(Box(1, [2])) == [1, 2] and round_trip(Box(1, [2])).content == (1, [2])
    assert paths(Box(1, [2])) == ["[<flat index 0>]", "[<flat index 1>][0]"]
    assert str(tree.structure(Box(1))) == "PyTreeDef(CustomNode(Box[aux], [*]))"
    with pytest.raises(ValueError, match="Duplicate"):
        tree_util.register_pytree_node(Box, lambda b: ((), None), lambda aux, content: Box())


def test_register_with_keys():
    class Box:
        def __init__(self, content):
            self.content = content

    tree_util.register_pytree_with_keys(
        Box, lambda b: (((GetAttrKey("content"), b.content),), None), lambda aux, children: Box(*children)
    )
    assert paths([Box({"a": 1})]) == ["[0].content['a']"] and tree.leaves(Box(5)) == [5]
    assert round_trip(Box(3)).content == 3


def test_class_decorators():
    @tree_util.register_pytree_node_class
    class Plain:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return (self.x,), "meta"

        @classmethod
        def tree_unflatten(cls, aux_data, children):
            return cls(*children)

    @tree_util.register_pytree_with_keys_class
    class Keyed:
        def __init__(self, x):
            self.x = x

        def tree_flatten_with_keys(self):
            return ((GetAttrKey("x"), self.x),), None

        @classmethod
        def tree_unflatten(cls, aux_data, children):
            return cls(*children)

    assert tree.map(lambda v: v + 1, Plain(1)).x == 2 and paths(Plain(1)) == ["[<flat index 0>]"]
    assert tree.map(lambda v: v + 1, Keyed(1)).x == 2 and paths(Keyed(1)) == [".x"]
    with pytest.raises(AttributeError, match="tree_flatten"):
        tree_util.register_pytree_node_class(type("Bare", (), {}))


def test_dataclass_forms():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Marked:
        x: float
        name: str = tree.static(default="m")
        cache: int = dataclasses.field(default=7, init=False)

    @functools.partial(tree_util.register_dataclass, data_fields=["x"], meta_fields=["n"], drop_fields=["debug"])
    @dataclasses.dataclass
    class Listed:
        x: float
        n: int
        debug: str = "no"

    class Loose:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tree_util.register_dataclass(Loose, ["a"], ["b"])
    assert paths(Marked([1, 2])) == [".x[0]", ".x[1]"] and round_trip(Marked(1, "other")) == Marked(1, "other")
    assert tree.structure(Marked(1, "a")) != tree.structure(Marked(1, "b"))
    assert round_trip(Listed(1, 2, "yes")) == Listed(1, 2, "no")
    assert vars(round_trip(Loose(1, "b"))) == {"a": 1, "b": "b"}


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(data_fields=["x"]), TypeError, "neither"),
        (dict(data_fields=["x"], meta_fields=[]), ValueError, r"\['y'\] are in neither"),
        (dict(data_fields=["x", "y", "z"], meta_fields=[]), ValueError, r"\['z'\] are not fields"),
        (dict(data_fields=["x", "y"], meta_fields=["y"]), ValueError, r"both data and meta fields: \['y'\]"),
    ],
)
def test_dataclass_errors(arguments, error, words):
    @dataclasses.dataclass
    class Pair:
        x: int
        y: int

    with pytest.raises(error, match=words):
        tree_util.register_dataclass(Pair, **arguments)


def test_a_class_that_is_no_dataclass_needs_its_fields():
    with pytest.raises(TypeError, match="not a dataclass"):
        tree_util.register_dataclass(type("Bare", (), {}))


def test_static_nodes():
    @tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert tree.leaves((1, Mode("a"))) == [1] and round_trip((1, Mode("a"))) == (1, Mode("a"))
    assert tree.structure(Mode("a")) != tree.structure(Mode("b"))
    assert tree.structure(Mode("a")) == tree.structure(Mode("a"))


def test_static_keeps_other_metadata():
    field = tree.static(default=3, metadata={"unit": "m"})
    assert field.default == 3 and dict(field.metadata) == {"unit": "m", "static": True}


def test_partial():
    add = Partial(operator.add, 3)
    assert tree.leaves(add) == [3] and tree.map(lambda x: 10 * x, add)(1) == 31
    assert tree.structure(add) == tree.structure(Partial(operator.add, 4)) != tree.structure(Partial(operator.sub, 3))
    assert tree.leaves(Partial(print, 1, end=2)) == [1, 2]
    assert list(inspect.signature(Partial).parameters) == ["func", "args", "kw"]
    assert pickle.loads(pickle.dumps(add))(1) == 4


def test_partial_of_partial_keeps_the_inner_arguments_out():
    inner = functools.partial(max, 1)
    outer = Partial(inner, 2)
    assert tree.leaves(outer) == [2] and outer(0) == 2
    assert Partial(Partial(lambda x, y, z: (x, y, z), y=1), z=2)(0) == (0, 1, 2)
    assert tree.structure(outer) == tree.structure(Partial(functools.partial(max, 1), 5))
    assert tree.structure(outer) != tree.structure(Partial(functools.partial(max, 7), 5))
    assert hash(tree.structure(outer)) == hash(tree.structure(Partial(inner, 3)))
