"""Wrong programs with meshes, kernels, policies, devices and trees: the errors tell what to write, and name no internals."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl, sparse
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P

X = jnp.arange(8.0)
VECTOR = gradix.ShapeDtypeStruct((8,), "float32")
MESH = Mesh(np.array(gradix.devices()[:1]).reshape(1, 1), ("x", "y"))


def kernel(body, **options):
    return lambda: pl.pallas_call(body, out_shape=VECTOR, interpret=True, **options)(X)


def adds_a_reference(x, out):
    out[...] = (x + 1)[...]


def takes_a_reference(x, out):
    out[...] = jnp.sin(x)


def copies(x, out):
    out[...] = x[...]


def computed_with(ref):
    return lambda: ref * 2


def given_policy(policy):
    return lambda: gradix.checkpoint(jnp.sin, policy=policy)(1.0)


def on(device):
    with gradix.default_device(device):
        return jnp.ones(3)


BLOCKS = {"grid": (2,), "out_specs": pl.BlockSpec((4,), lambda i: (i,))}

WRONG = {
    "a transpose of what is not linear": (
        lambda: gradix.linear_transpose(jnp.sin, 1.0)(1.0),
        NotImplementedError,
        r"'sin' is not linear .* gradix\.vjp\(f, x\)",
    ),
    "no derivative of a primitive": (
        lambda: gradix.jvp(lambda x: gradix.pure_callback(np.sin, x, x), (X,), (X,)),
        ValueError,
        "Wrap the call in custom_jvp or custom_vjp",
    ),
    "an update without an index": (lambda: X.at.set(1), AttributeError, r"Write x\.at\[index\]\.set\("),
    "an attribute that no update has": (lambda: X.at.put, AttributeError, r"x\.at has no attribute 'put'"),
    "a policy's name misspelt": (
        lambda: gradix.checkpoint_policies.dots_savable,
        AttributeError,
        "gradix.checkpoint_policies has no .* Did you mean 'dots_saveable'",
    ),
    "names of a policy in a list": (
        lambda: gradix.checkpoint_policies.save_only_these_names(["a", "b"]),
        TypeError,
        r"save_only_these_names\('first', 'second'\)",
    ),
    "a name kept and moved": (
        lambda: gradix.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        ),
        ValueError,
        r"\['a'\] are in names_which_can_be_saved and",
    ),
    "a branch of checkpoint": (
        lambda: gradix.checkpoint(lambda x, n: x if n else -x)(1.0, 2),
        gradix.errors.TracerBoolConversionError,
        "static_argnums of jit or checkpoint",
    ),
    "an axis that no mesh has": (
        lambda: gradix.shard_map(lambda x: lax.psum(x, "z"), mesh=MESH, in_specs=P("x"), out_specs=P("x"))(X),
        NameError,
        "or name an axis of the mesh",
    ),
    "names of axes one by one": (lambda: Mesh(gradix.devices(), "x", "y"), TypeError, r"one tuple, \('x', 'y'\)"),
    "number of a device": (lambda: gradix.device_put(X, 0), ValueError, r"Write gradix\.devices\(\)\[0\]"),
    "an axis twice": (
        lambda: NamedSharding(MESH, P("x", "x")),
        gradix.errors.DuplicateSpecError,
        "duplicate entries for `x`",
    ),
    "parts by name": (
        lambda: gradix.shard_map(jnp.sin, mesh=MESH, in_specs=P("x"), out_specs=P("x"))(v=X),
        TypeError,
        "shard_map of sin takes its arguments by position.* got v by name. Pass it by position",
    ),
    "kernel without a result": (kernel(lambda x: None), TypeError, "a reference to an argument, one to a result"),
    "index map of another grid": (
        kernel(copies, in_specs=[pl.BlockSpec((4,), lambda i, j: (i,))], **BLOCKS),
        TypeError,
        r"the BlockSpec of args\[0\] calls .* with \(the index along axis 0 of the grid\)",
    ),
    "reference as a number": (kernel(adds_a_reference), TypeError, r"compute \+ with its value, ref\[\.\.\.\]"),
    "function of a reference": (kernel(takes_a_reference), TypeError, r"Read its value with ref\[\.\.\.\]"),
    "mutable array as a number": (computed_with(gradix.new_ref(X)), TypeError, r"compute \* with its value"),
    "array plus a mutable array": (lambda: X + gradix.new_ref(X), TypeError, r"value.* ref\[\.\.\.\]"),
    "groups": (
        lambda: lax.ragged_dot(jnp.ones((4, 3)), jnp.ones((2, 3, 5)), jnp.array([1, 2, 1])),
        TypeError,
        r"3, the number of group_sizes.*got 2, axis 0 of rhs, of shape \(2, 3, 5\)",
    ),
    "policy that is not made": (
        given_policy(gradix.checkpoint_policies.save_only_these_names),
        TypeError,
        r'Call it, as in policy=gradix\.checkpoint_policies\.save_only_these_names\("name"\)',
    ),
    "default device": (functools.partial(on, "tpuu"), RuntimeError, "Unknown backend: 'tpuu'.*present are: cpu"),
    "keys of two types": (
        lambda: gradix.tree.leaves({1: 2, "a": 3}),
        ValueError,
        "keys of one type, or an OrderedDict",
    ),
    "set": (lambda: jnp.asarray({1, 2}), TypeError, r"array\(sorted\(x\)\)"),
    "text times an array": (lambda: "0.1" * X, TypeError, r"text, convert that first, .*float\(text\)"),
    "array in place of a structure": (
        lambda: gradix.tree_util.treedef_children(X),
        TypeError,
        r"takes the structure of a tree, a PyTreeDef, got Array.*gradix\.tree\.structure\(tree\)",
    ),
    "array in place of structures": (lambda: gradix.tree_util.treedef_tuple(X), TypeError, "a PyTreeDef, got Array"),
    "array in place of the outer structure": (
        lambda: gradix.tree.transpose(X, None, [1]),
        TypeError,
        "a PyTreeDef, got Array",
    ),
    "array in place of a class": (
        lambda: gradix.tree_util.register_pytree_node_class(X),
        TypeError,
        "only a class can be registered",
    ),
    "array in place of a function": (lambda: jnp.frompyfunc(X, 1, 1), TypeError, "func must be a function"),
    "array in place of a sparse one": (
        lambda: sparse.bcsr_todense(X),
        AttributeError,
        r"'to_bcoo': sparse arrays have it: gradix\.experimental\.sparse\.BCOO\.fromdense\(x\)",
    ),
    "no rows": (
        lambda: jnp.concatenate(jnp.zeros((0, 3))),
        ValueError,
        r"got an array of shape \(0, 3\), which has no rows",
    ),
    "device that holds no part": (lambda: X.addressable_data(5), IndexError, "on 1 devices.*; got 5"),
    "function in place of a type": (lambda: gradix.empty_ref(len), TypeError, "a type with a shape and a dtype"),
    "ragged product of numbers": (
        lambda: lax.ragged_dot_general(jnp.ones((4, 3)), jnp.ones((2, 3, 5)), jnp.array([2, 2]), 3),
        TypeError,
        r"must be lax\.RaggedDotDimensionNumbers\(\.\.\.\), got 3",
    ),
    "array in place of a sharding": (
        lambda: gradix.make_array_from_process_local_data(np.zeros(3), np.zeros(3)),
        ValueError,
        "only accepts None, a Device, a Sharding",
    ),
    "object as a result": (
        lambda: gradix.jit(lambda x: object())(X),
        TypeError,
        r"must return arrays.*Return arrays and numbers only, in trees; .*register_dataclass",
    ),
    "class that is registered already": (
        lambda: gradix.tree_util.register_pytree_node(list, lambda x: (x, None), lambda _, x: list(x)),
        ValueError,
        "Duplicate.*A class is registered once",
    ),
    "draws of another shape": (
        lambda: gradix.random.bernoulli(gradix.random.key(0), jnp.ones(3), (2,)),
        ValueError,
        r"bernoulli: incompatible shapes for broadcasting: \(2,\), \(3,\)",
    ),
    "callback of another shape": (
        lambda: gradix.pure_callback(lambda v: v[:2], VECTOR, X),
        gradix.errors.CallbackResultError,
        r"shape \(2,\).*say \(8,\)",
    ),
}


@pytest.mark.x32
@pytest.mark.parametrize("name", WRONG)
def test_what_to_write_is_told(name):
    call, kind, words = WRONG[name]
    with pytest.raises(kind, match=f"(?s){words}") as caught:
        call()
    assert not [part for part in type(caught.value).__module__.split(".") if part.startswith("_")]


def test_a_default_device_may_be_the_name_of_its_platform():
    assert on("cpu").devices() == {gradix.devices("cpu")[0]}
