"""Inputs that no array can hold: the error has the right type, and says what was met and what to write instead."""

import dataclasses
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn
from gradix.example_libraries import stax
from gradix.experimental import (
    array_serialization,
    colocated_python,
    mesh_utils,
    multihost_utils,
    shard_map,
    topologies,
)
from gradix.scipy import linalg, special
from gradix.scipy.interpolate import RegularGridInterpolator

HELD = {
    "objects": (np.array([object()]), "x.tolist"),
    "texts": (np.array(["a", "b"]), "return_inverse"),
    "bytes": (np.array([b"a"]), "return_inverse"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    "durations": (np.array([1], "m8[s]"), "timedelta64"),
    "records": (np.zeros(2, [("a", "i4")]), "names"),
}
TAKERS = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "device_put": gradix.device_put,
    "jit": gradix.jit(lambda x: x),
    "result of jit": lambda x: gradix.jit(lambda: x)(),
    "grad": gradix.grad(lambda x: x),
    "jvp": lambda x: gradix.jvp(lambda x: x, (x,), (x,)),
    "vmap": gradix.vmap(lambda x: x),
    "eval_shape": lambda x: gradix.eval_shape(lambda x: x, x),
    "make_jaxpr": gradix.make_jaxpr(lambda x: x),
    "scan": lambda x: lax.scan(lambda c, y: (c, y), x, jnp.ones(3)),
    "while_loop": lambda x: lax.while_loop(lambda c: True, lambda c: c, x),
    "cond": lambda x: lax.cond(True, lambda x: x, lambda x: x, x),
    "operator": lambda x: jnp.ones(1) + x,
    "operator on the right": lambda x: x + jnp.ones(1),
    "at": lambda x: jnp.ones(3).at[0].set(x),
    "zeros_like": jnp.zeros_like,
    "full": lambda x: jnp.full(3, x),
    "lax.full": lambda x: lax.full((3,), x[0]),
    "a dtype": lambda x: jnp.zeros(3, x.dtype),
    "astype": lambda x: jnp.ones(1).astype(x.dtype),
    "a shape": lambda x: gradix.jit(lambda x: x).lower(gradix.ShapeDtypeStruct((1,), x.dtype)),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("kind", HELD)
def test_arrays_of_other_things_are_type_errors(kind, taker):
    value, advice = HELD[kind]
    with pytest.raises(TypeError) as e:
        TAKERS[taker](value)
    if taker in ("asarray", "jit", "grad", "operator", "device_put"):
        assert "hold numbers and booleans" in str(e.value) and advice in str(e.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["objects", *[pytest.param(k, marks=pytest.mark.slow) for k in HELD if k != "objects"]]
)
def test_no_function_of_numpy_or_lax_looks_such_a_dtype_up(kind):
    """None raises a KeyError, which is what looking the dtype up in a table gives."""
    value, _ = HELD[kind]
    for module in (jnp, jnp.linalg, jnp.fft, lax, gradix.nn, gradix.scipy.special):
        for name in dir(module):
            function = getattr(module, name)
            if name.startswith("_") or not callable(function) or isinstance(function, type):
                continue
            for args in ((value,), (value, value), (value, value, value)):
                try:
                    function(*args)
                except KeyError as e:
                    pytest.fail(f"{module.__name__}.{name}: KeyError {e}")
                except Exception:
                    pass


@pytest.mark.parametrize(
    "name", ["stack", "concatenate", "vstack", "hstack", "dstack", "column_stack", "concat", "block"]
)
def test_joining_nothing_is_a_value_error(name):
    for nothing in [[]] if name == "block" else [[], ()]:
        with pytest.raises(ValueError, match="at least one array"):
            getattr(jnp, name)(nothing)
        with pytest.raises(ValueError, match="at least one array"):
            gradix.jit(lambda nothing=nothing: getattr(jnp, name)(nothing))()


AXES = {
    "ones": lambda x: jnp.ones((1,) * 65),
    "broadcast_to": lambda x: jnp.broadcast_to(x, (1,) * 65),
    "reshape": lambda x: jnp.reshape(x, (1,) * 65),
    "expand_dims": lambda x: jnp.expand_dims(jnp.reshape(x, (1,) * 64), 0),
    "x[None]": lambda x: jnp.reshape(x, (1,) * 64)[None],
    "vmap": lambda x: gradix.vmap(lambda y: jnp.reshape(y, (1,) * 64))(x[None]),
    "lax": lambda x: lax.full((1,) * 65, x),
}


@pytest.mark.parametrize("name", AXES)
def test_more_axes_than_numpy_has_are_a_value_error(name):
    x = jnp.float32(3)
    for way in (AXES[name], gradix.jit(AXES[name]), lambda x: gradix.eval_shape(AXES[name], x)):
        with pytest.raises(ValueError, match="at most 64 axes.*65"):
            way(x)
    most = gradix.jit(lambda x: jnp.reshape(x, (1,) * 64))(x)
    assert most.ndim == 64 and np.asarray(most).item() == 3


@pytest.mark.parametrize(
    "number, dtype, said",
    [
        (-1, "uint8", "-1 too small to convert to uint8, which holds 0 to 255 .or take a signed dtype"),
        (300, "uint8", "300 too large to convert to uint8, which holds 0 to 255"),
        (-300, "int8", "-300 too small to convert to int8, which holds -128 to 127"),
        (2**70, "int64", "too large to convert to int"),
        (-(2**70), "int64", "too small to convert to int"),
    ],
)
def test_numbers_out_of_range(number, dtype, said):
    with gradix.enable_x64(), pytest.raises(OverflowError, match=said):
        jnp.asarray(number, dtype)


@gradix.tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    x: object
    y: object


@pytest.mark.parametrize(
    "in_axes, args, path",
    [
        ((Pair(0, (0, 0)),), (Pair(1, 2),), r"in_axes\[0\]\.y"),
        ([(Pair(0, (0, 0)),), 0], ((Pair(1, 2),), 3), r"in_axes\[0\]\[0\]\.y"),
        (({"k": Pair(0, (0, 0))},), ({"k": Pair(1, 2)},), r"in_axes\[0\]\['k'\]\.y"),
        ((0, [0, Pair({"a": 0}, 0)]), (1, [2, Pair(3, 4)]), r"in_axes\[1\]\[1\]\.x"),
    ],
)
def test_a_wrong_prefix_is_named_by_its_path_in_what_was_given(in_axes, args, path):
    args = gradix.tree.map(lambda n: jnp.ones(n), args)
    with pytest.raises(ValueError, match=f"error at vmap {path}: "):
        gradix.vmap(lambda *args: args, in_axes=tuple(in_axes))(*args)


RECURSION = """
import gradix
@gradix.jit
def first(x):
    return second(x)
def second(x):
    return third(lambda: first(x))
def third(turn):
    return turn()
first(1.0)
"""


@pytest.mark.parametrize("filtering", ["auto", pytest.param("remove_frames", marks=pytest.mark.slow)])
def test_the_traceback_of_an_endless_recursion_shows_a_few_turns(filtering):
    run = subprocess.run(
        [sys.executable, "-c", RECURSION],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_TRACEBACK_FILTERING": filtering},
    )
    shown = (
        run.stderr.split("RecursionError")[0]
        if filtering == "auto"
        else run.stderr.rpartition("--------------------")[2]
    )
    assert "RecursionError" in run.stderr and "in second" in shown
    assert len(shown.splitlines()) < 80


ENDS_IN_AN_OPERATION = """
import gradix
def endless(x):
    return endless(x + 1)
gradix.jit(endless)(1.0)
"""


def test_a_recursion_that_ends_inside_of_an_operation_shows_no_internal_frame(tmp_path):
    program = tmp_path / "endless.py"
    program.write_text(ENDS_IN_AN_OPERATION)
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    places = [line for line in run.stderr.splitlines() if line.strip().startswith("File")]
    assert places and all("endless.py" in place for place in places), run.stderr
    assert "RecursionError" in run.stderr and len(run.stderr.splitlines()) < 30


TRANSFORMS = ("jit", "vmap", "grad", "value_and_grad", "jacfwd", "jacrev", "pmap")


@pytest.mark.parametrize("name", TRANSFORMS)
def test_staticmethod_belongs_above_a_transformation(name):
    with pytest.raises(TypeError, match=f"staticmethod arguments are not supported by {name}.*@staticmethod above"):
        getattr(gradix, name)(staticmethod(lambda x: x))

    class Model:
        @staticmethod
        @gradix.jit
        def double(x):
            return 2 * x

    assert Model.double(2) == Model().double(2) == 4


CYCLE = []
CYCLE.append(CYCLE)
MISUSED = {
    "a list that contains itself": (lambda: jnp.asarray(CYCLE), (ValueError, RecursionError), "contains itself"),
    "a list that contains itself, replayed": (
        lambda: jnp.block(CYCLE),
        (ValueError, RecursionError, TypeError),
        "contains itself|nested",
    ),
    "a dtype of NumPy alone": (lambda: jnp.spacing(np.ones(2, np.longdouble)), TypeError, "x.astype"),
    "an option that is a list": (
        lambda: gradix.numpy_rank_promotion([1]),
        ValueError,
        r"must be one of .* of type list",
    ),
    "no function for leaves": (lambda: gradix.tree.leaves([1], is_leaf=3), TypeError, "is_leaf must be a function"),
    "no function for leaves with paths": (
        lambda: gradix.tree.leaves_with_path([1], is_leaf=3),
        TypeError,
        "is_leaf must be a function",
    ),
    "trees before the function": (lambda: gradix.tree.reduce([1, 2], max), TypeError, "takes a function first"),
    "trees before the function of paths": (
        lambda: gradix.tree.map_with_path([1, 2], max),
        TypeError,
        "takes a function first",
    ),
    "a value for a class": (
        lambda: gradix.tree_util.register_pytree_node((1,), len, len),
        TypeError,
        r"by its class, got \(1,\)",
    ),
    "no function to flatten": (
        lambda: gradix.tree_util.register_pytree_node(type("Pair", (), {}), 3, len),
        TypeError,
        "flatten_func must be a function",
    ),
    "a window of too few sizes": (lambda: stax.MaxPool((2,), spec="NHWC"), ValueError, "has 2 spatial axes"),
}


@pytest.mark.parametrize("case", MISUSED)
def test_misused_functions_tell_what_they_take(case):
    call, kind, text = MISUSED[case]
    with pytest.raises(kind, match=text) as raised:
        call()
    assert "gradix._" not in str(raised.value)


def test_texts_name_our_classes_as_users_know_them():
    for call in (
        lambda: gradix.set_mesh(jnp.ones(2)),
        lambda: gradix.make_jaxpr(jnp.ones(2)),
        lambda: jnp.sin(gradix.ShapeDtypeStruct((2,), "float32")),
        lambda: gradix.random.split(gradix.sharding.PartitionSpec("x")),
        lambda: gradix.jit(lambda x: gradix.set_mesh(x))(1.0),
    ):
        with pytest.raises((TypeError, ValueError)) as raised:
            call()
        assert re.search(
            r"<class '(gradix\.Array|(gradix\.sharding\.)?PartitionSpec|(gradix\.)?ShapeDtypeStruct)'>",
            str(raised.value),
        )
        assert "gradix._" not in str(raised.value)


def _made_by_rule(fwd, bwd, n=()):
    f = gradix.custom_vjp(lambda x, y: x * y, nondiff_argnums=n)
    f.defvjp(fwd, bwd)
    return gradix.grad(f)(1.0, 2.0)


def _wrong_tree():
    exported = gradix.export.export(gradix.jit(lambda d: d["a"]))({"a": jnp.ones(3)})
    exported.call({"b": jnp.ones(3)})


KEY, X = gradix.random.key(0), jnp.ones(3)
NAMED = {
    "an axis": (lambda: nn.glu(jnp.ones(4), "a"), "axis must be an integer, got 'a'"),
    "an array for an axis": (lambda: jnp.max(X, X), "axis must be an integer.*jnp.maximum"),
    "classes": (lambda: nn.one_hot(jnp.arange(3), "a"), "num_classes of one_hot must be an integer"),
    "rows": (lambda: gradix.random.orthogonal(KEY, {}), "n of orthogonal must be an integer"),
    "axes of a ball": (lambda: gradix.random.ball(KEY, 2.5), "d of ball must be an integer, got 2.5"),
    "an order": (lambda: special.lpmn(1.5, 2, X), "order m must be an integer, got 1.5"),
    "no factors": (
        lambda: linalg.lu_solve(None, X),
        "lu_and_piv must be the pair that lu_factor returns, got NoneType",
    ),
    "three factors": (lambda: linalg.cho_solve((X, 1, 2), X), "c_and_lower must be the pair.*got tuple of 3"),
    "points": (lambda: RegularGridInterpolator(2, X), "points must be a sequence"),
    "leaves": (lambda: gradix.tree_util.all_leaves(3), "all_leaves takes an iterable.*got int"),
    "structures": (lambda: gradix.tree_util.treedef_tuple(3), "treedef_tuple takes a sequence of structures"),
    "names of a mesh": (lambda: gradix.sharding.AbstractMesh((1,), 3), "axis_names must be a tuple"),
    "a shape of a mesh": (lambda: mesh_utils.create_device_mesh(3), "mesh_shape must be a sequence"),
    "a mesh": (lambda: shard_map.shard_map(lambda x: x, 3, None, None), "requires a Mesh"),
    "a global mesh": (
        lambda: multihost_utils.global_array_to_host_local_array(X, X, gradix.P()),
        "global_mesh must be a Mesh",
    ),
    "a topology": (lambda: topologies.make_mesh({}, (1,), ("x",)), "takes a TopologyDescription"),
    "devices": (lambda: colocated_python.colocated_cpu_devices(3), "a Mesh or a sequence of devices"),
    "a class": (lambda: colocated_python.colocated_python_class("a"), "takes a class, got 'a'"),
    "a folder": (lambda: array_serialization.save([X], X), "save: directory must be the path of a folder"),
    "a folder to read": (lambda: array_serialization.load(3), "load: directory must be the path of a folder"),
    "a forward rule": (
        lambda: _made_by_rule(lambda x: (x, None), lambda r, g: (g, g)),
        r"custom_vjp of <lambda> calls .* with \(argument 0, argument 1\), but its arguments are \(x\)",
    ),
    "a backward rule": (
        lambda: _made_by_rule(lambda x, y: (x * y, y), lambda r, g: (g,), (1,)),
        r"with \(nondiff argument, residuals, cotangent\).*Write it with 3",
    ),
    "a cotangent": (
        lambda: _made_by_rule(lambda x, y: (x * y, y), lambda r, g: ("a", g)),
        "bwd rule <lambda> for function <lambda> must produce arrays.*leaf 0 of the arguments",
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_arguments_of_another_kind_are_named(case):
    call, words = NAMED[case]
    with pytest.raises(TypeError, match=words):
        call()


def test_what_differs_between_trees_of_calls_is_said():
    with pytest.raises(ValueError, match="when exported, so their keys differ"):
        _wrong_tree()


def test_a_traced_value_is_pickled_outside():
    with pytest.raises(TypeError, match="return the array, and pickle it outside"):
        gradix.jit(lambda x: pickle.dumps(x))(1.0)


def test_pmap_says_which_function_it_maps():
    """The function that divides the arguments is none of the user's."""

    def scaled(x, n):
        return x * n

    with pytest.raises(TypeError, match="while tracing the function scaled"):
        gradix.pmap(scaled, static_broadcasted_argnums=1)(jnp.ones((1, 2)), [1])
