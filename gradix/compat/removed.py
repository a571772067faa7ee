"""Names that JAX has removed, which programs for older releases use, and what replaces them."""

from __future__ import annotations

# Each name, or the module that contains it, without its `jax.` -> what to write instead.
_INSTEAD = {
    "abstract_arrays": "jax.core.ShapedArray",
    "api": "the functions of jax itself",
    "config.config": "jax.config",
    "core.cur_sublevel": "jax.extend.core.take_current_trace",
    "core.get_aval": "jax.typeof",
    "core.raise_to_shaped": "jax.typeof",
    "core.thread_local_state": "jax.extend.core.take_current_trace",
    "custom_transforms": "jax.custom_vjp",
    "device_put_replicated": "jax.device_put with a sharding",
    "device_put_sharded": "jax.device_put with a sharding",
    "experimental.PartitionSpec": "jax.sharding.PartitionSpec",
    "experimental.callback": "jax.pure_callback, jax.experimental.io_callback",
    "experimental.export": "jax.export",
    "experimental.global_device_array": "jax.Array, jax.make_array_from_callback",
    "experimental.host_callback": "jax.pure_callback, jax.experimental.io_callback",
    "experimental.layout.DeviceLocalLayout": "jax.experimental.layout.Layout",
    "experimental.loops": "jax.lax.fori_loop, jax.lax.while_loop",
    "experimental.maps": "jax.shard_map, jax.sharding.Mesh",
    "experimental.MutableArray": "jax.Ref, jax.new_ref",
    "experimental.optimizers": "jax.example_libraries.optimizers",
    "experimental.pjit.PartitionSpec": "jax.sharding.PartitionSpec",
    "experimental.pjit.with_sharding_constraint": "jax.lax.with_sharding_constraint",
    "experimental.stax": "jax.example_libraries.stax",
    "interpreters.pxla.ShardedDeviceArray": "jax.Array",
    "interpreters.xla.DeviceArray": "jax.Array",
    "interpreters.xla.xla_call_p": "jax.extend.core.primitives.jit_p",
    "lib.xla_bridge": "jax.devices, jax.extend.backend",
    "lib.xla_client": "jax.extend, jax.export",
    "lib.xla_extension": "jax.errors.JaxRuntimeError, jax.Device",
    "linear_util": "jax.extend.linear_util",
    "ArrayRef": "jax.Ref",
    "errors.JAXRuntimeError": "jax.errors.JaxRuntimeError",
    "numpy.DeviceArray": "jax.Array",
    "numpy.in1d": "jax.numpy.isin",
    "numpy.row_stack": "jax.numpy.vstack",
    "numpy.trapz": "jax.numpy.trapezoid",
    "numpy.product": "jax.numpy.prod",
    "numpy.cumproduct": "jax.numpy.cumprod",
    "numpy.alltrue": "jax.numpy.all",
    "numpy.sometrue": "jax.numpy.any",
    "numpy.msort": "jax.numpy.sort",
    "numpy.round_": "jax.numpy.round",
    "ops.index": "x.at[...]",
    "ops.index_add": "x.at[...].add(y)",
    "ops.index_mul": "x.at[...].multiply(y)",
    "ops.index_update": "x.at[...].set(y)",
    "partial": "functools.partial",
    "pxla": "jax.interpreters.pxla",
    "random.KeyArray": "jax.Array",
    "random.PRNGKeyArray": "jax.Array",
    "random.shuffle": "jax.random.permutation",
    "sharding.PositionalSharding": "jax.sharding.NamedSharding",
    "tree_all": "jax.tree.all",
    "tree_flatten": "jax.tree.flatten",
    "tree_leaves": "jax.tree.leaves",
    "tree_map": "jax.tree.map",
    "tree_multimap": "jax.tree.map",
    "tree_structure": "jax.tree.structure",
    "tree_transpose": "jax.tree.transpose",
    "tree_unflatten": "jax.tree.unflatten",
    "tree_util.tree_multimap": "jax.tree_util.tree_map",
    "xmap": "jax.shard_map",
}


def instead_of(name: str) -> str | None:
    """What to write instead of a name that JAX has removed; None if it has not removed the name.

    The name is given without its `jax.`.

    Example:
        >>> instead_of("tree_map")
        'jax.tree.map'
    """
    return _INSTEAD.get(name)


def why_removed(name: str) -> str | None:
    """The end of an error text about a name that JAX has removed, or None as in `instead_of`."""
    instead = instead_of(name)
    return None if instead is None else f"JAX has removed it too; write {instead}"
