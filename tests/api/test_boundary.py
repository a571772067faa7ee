"""The boundary of transformations: kinds of leaves are rows of a table, and one class makes functions of lists."""

import ast
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from gradix._api import boundary
from gradix._api.arguments import Names
from gradix._base.tree import register_pytree_node, tree_flatten, tree_structure

ROOT = Path(gradix.__file__).parent


class Interval:
    """A kind of leaf that no transformation knows: its file registers a row, and nothing else."""

    def __init__(self, low, high):
        self.low, self.high = low, high


class Node:
    """An interval inside of transformations."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def width(self):
        return self.high - self.low


def joined(_, parts):
    return Interval(*parts) if all(type(x) is type(jnp.ones(())) for x in parts) else Node(*parts)


register_pytree_node(Node, lambda n: ((n.low, n.high), None), joined)


def share(x):
    return boundary.Share([x.low, x.high], lambda parts: Node(*parts), lambda cts: Interval(*cts))


@pytest.fixture
def interval():
    boundary.values[Interval] = boundary.Value(lambda x: Node(x.low, x.high), share)
    boundary.values[Node] = boundary.Value(lambda x: x, share)
    yield Interval(1.0, jnp.float32(4))
    del boundary.values[Interval], boundary.values[Node]


def test_a_new_kind_of_leaf_is_a_row(interval):
    def widened(i, by):
        return Node(i.low - by, i.high + by), i.width()

    for function in (gradix.jit(widened), gradix.checkpoint(widened), gradix.jit(gradix.jit(widened))):
        out, width = function(interval, 1.0)
        assert type(out) is Interval
        assert (float(out.low), float(out.high), float(width)) == (0.0, 5.0, 3.0)
    assert len(gradix.make_jaxpr(widened)(interval, 1.0).in_avals) == 3
    out, width = lax.cond(True, lambda i: widened(i, 2.0), lambda i: widened(i, 3.0), interval)
    assert (float(out.low), float(out.high), float(width)) == (-1.0, 6.0, 3.0)


@pytest.mark.x32
def test_derivatives_take_the_share_of_a_leaf(interval):
    def area(i, side):
        return i.width() * side

    value, gradient = gradix.value_and_grad(area)(interval, 2.0)
    assert type(gradient) is Interval
    assert (float(value), float(gradient.low), float(gradient.high)) == (6.0, -2.0, 2.0)
    with_aux = gradix.grad(lambda i: (area(i, 2.0), i.low), has_aux=True)(interval)
    assert float(with_aux[0].high) == 2.0 and float(with_aux[1]) == 1.0
    out, pull = gradix.vjp(area, interval, 2.0)
    of_interval, of_side = pull(1.0)
    assert (float(of_interval.low), float(of_side)) == (-2.0, 3.0)
    both = gradix.grad(area, argnums=(0, 1))(interval, 2.0)
    assert (float(both[0].high), float(both[1])) == (2.0, 3.0)
    for refused in (gradix.linearize, lambda f, *xs: gradix.jacrev(f)(*xs)):
        with pytest.raises(NotImplementedError, match="values above arrays; grad, value_and_grad and vjp do"):
            refused(area, interval, 2.0)


def test_a_ref_is_lent_to_one_argument():
    def swap(a, b):
        a[...], b[...] = b[...], a[...]

    first, second = gradix.new_ref(jnp.arange(3.0)), gradix.new_ref(jnp.zeros(3))
    gradix.vmap(swap)(first, second)
    np.testing.assert_array_equal(second[...], [0, 1, 2])
    np.testing.assert_array_equal(first[...], [0, 0, 0])
    with pytest.raises(ValueError, match=r"may be passed to a function, but swap got .* twice: leaf 0 .* leaf 1"):
        gradix.jvp(swap, (first, first), (gradix.new_ref(jnp.ones(3)), second))


def test_jvp_of_refs_with_auxiliary_data():
    def scaled(ref, x):
        ref[...] = ref[...] * x
        return ref[...].sum(), {"before": x, "name": "scaled"}

    ref, change = gradix.new_ref(jnp.arange(3.0)), gradix.new_ref(jnp.ones(3))
    value, tangent, aux = gradix.jvp(scaled, (ref, 2.0), (change, 0.5), has_aux=True)
    assert (float(value), float(tangent), float(aux["before"]), aux["name"]) == (6.0, 7.5, 2.0, "scaled")
    np.testing.assert_array_equal(ref[...], [0, 2, 4])
    np.testing.assert_array_equal(change[...], [2, 2.5, 3])


def test_names_leave_static_arguments_out():
    def f(n, /, first, *rest, scale):
        pass

    tree = tree_structure(((1.0, {"a": 2.0}), {"scale": 3.0}))
    assert Names(f, tree).arg_names == ("n", "first['a']", "scale")
    assert Names(f, tree, {0}).arg_names == ("first", "rest[0]['a']", "scale")
    with pytest.raises(TypeError, match=r"argument rest\[1\] of f"):
        gradix.jit(f, static_argnums=0)(1, 2.0, 3.0, "text", scale=1.0)


def test_operands_go_around_other_leaves():
    leaves, tree = tree_flatten(({"b": 1, "a": 2}, [3, 4]))
    fill = boundary.around({1: "kept", 2: None}, len(leaves), tree)
    assert fill(["first", "last"]) == ({"a": "first", "b": "kept"}, [None, "last"])
    assert boundary.around({}, len(leaves), tree)([1, 2, 3, 4]) == ({"a": 1, "b": 2}, [3, 4])


# What calls a function of trees and flattens its results at once, elsewhere than in `Flat`, and why.
OTHERS = {
    "_api/derivatives/gradient_checks.py:at": "evaluates the function, and stages nothing",
    "_api/inspect.py:converted": "puts together the results of a program",
    "_api/mapping/containers.py:flat": "its leaves are containers, which libraries define for vmap alone",
    "_api/mapping/parts_of_values.py:function": "its leaves are values above arrays, which have one spec each",
    "experimental/jax2tf.py:pulled": "the function is one of TensorFlow",
    "experimental/sparse/transform.py:flat": "its leaves are sparse arrays",
}


def functions_of_lists(tree: ast.AST):
    """The names of functions, inside of others, that put leaves together and take those of a result apart."""
    flattens = {"flatten", "tree_flatten", "opened", "_tree_flatten"}

    def own(node):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.FunctionDef, ast.Lambda)):
                yield child
                yield from own(child)

    def walk(node, is_inside):
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(child, ast.FunctionDef)
            if is_function and is_inside:
                calls = [c for c in own(child) if isinstance(c, ast.Call)]
                names = [getattr(c.func, "attr", getattr(c.func, "id", "")) for c in calls]
                takes = any(n in flattens and c.args and isinstance(c.args[0], ast.Call) for n, c in zip(names, calls))
                if takes and {"unflatten", "tree_unflatten"} & {*names}:
                    yield child.name
            yield from walk(child, is_inside or is_function)

    yield from walk(tree, False)


def test_one_class_makes_functions_of_lists():
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{name}"
        for path in ROOT.rglob("*.py")
        for name in functions_of_lists(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found <= set(OTHERS), f"use boundary.Flat: {sorted(found - set(OTHERS))}"
    assert found == set(OTHERS), f"no longer there: {sorted(set(OTHERS) - found)}"


class Checked:
    """A node that can be made of arrays alone, as classes are that look at the shapes of their fields."""

    def __init__(self, value):
        assert value.shape is not None
        self.value = value


gradix.tree_util.register_pytree_node(Checked, lambda c: ((c.value,), None), lambda _, values: Checked(*values))


def test_classes_that_refuse_placeholders_are_arguments_and_results():
    x = Checked(jnp.ones(3))
    double = gradix.jit(lambda x, y: (Checked(x.value * y), y))
    for _ in range(3):
        assert double(x, 2.0)[0].value.tolist() == [2.0] * 3
    placed = gradix.jit(lambda x: x, in_shardings=gradix.sharding.SingleDeviceSharding(gradix.devices()[0]))
    assert type(placed(x)) is Checked
    assert type(export.export(gradix.jit(lambda x: x))(x).call(x)) is Checked


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: gradix.vmap(lambda x: x, out_axes=None)(x), r"vmap out_axes\[0\], got axis spec None"),
        (lambda x: gradix.lax.scan(lambda c, x: (c, x), 0.0, (x, jnp.ones(4))), r"xs\[0\]\[0\] .*leading size 3"),
        (lambda x: gradix.jit(lambda x: x).lower(x).compile()(1.0), r"at args\[0\], seen .* with 1 child"),
        (lambda x: export.export(gradix.jit(lambda x: x))(x).call(1.0), r"args\[0\] is a leaf of type float"),
    ],
)
def test_errors_about_trees_name_paths_in_such_classes(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        wrong(Checked(jnp.ones(3)))
