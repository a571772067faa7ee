"""What JAX's modules `jax._src.X` are used for, and the public names, for error messages."""

from __future__ import annotations

from typing import NamedTuple

from gradix.compat.internals import AREAS


class Use(NamedTuple):
    """What an internal module of JAX is used for.

    Attributes:
        purpose: what it is used for.
        public: the public names for the same.
        users: the libraries known to import it.
    """

    purpose: str
    public: str
    users: str = ""


_USES = {
    "abstract_arrays": Use("types of arrays", "jax.core.ShapedArray, jax.typeof"),
    "ad_checkpoint": Use(
        "computing values again in the backward pass", "jax.checkpoint, jax.ad_checkpoint"
    ),
    "ad_util": Use(
        "zero tangents and additions of cotangents",
        "jax.interpreters.ad, jax.custom_derivatives.SymbolicZero",
    ),
    "api": Use("the transformations", "jax"),
    "api_util": Use("flattening arguments and numbering them", "jax.api_util, jax.tree_util"),
    "array": Use("the class of arrays", "jax.Array, jax.make_array_from_single_device_arrays"),
    "cache_key": Use("keys of compiled programs on disk", "jax.experimental.compilation_cache"),
    "callback": Use(
        "calls from compiled programs to Python",
        "jax.pure_callback, jax.experimental.io_callback, jax.debug.callback",
    ),
    "checkify": Use(
        "checks in compiled programs", "jax.experimental.checkify, jax.jit(f, check=...)"
    ),
    "compilation_cache": Use("compiled programs on disk", "jax.experimental.compilation_cache"),
    "compiler": Use("compiling a module", "jax.jit(f).lower(...).compile()"),
    "config": Use("options", "jax.config, and context managers such as jax.enable_x64"),
    "core": Use("jaxprs, primitives and tracing", "jax.core, jax.extend.core"),
    "cudnn": Use("attention by cuDNN on NVIDIA's GPUs", "jax.nn.dot_product_attention", "keras"),
    "custom_batching": Use("rules for vmap", "jax.custom_batching"),
    "custom_derivatives": Use(
        "rules for derivatives", "jax.custom_jvp, jax.custom_vjp, jax.custom_derivatives"
    ),
    "custom_transpose": Use(
        "rules for transposes", "jax.extend.core.Primitive, jax.interpreters.ad"
    ),
    "debugging": Use("printing from compiled programs", "jax.debug.print, jax.debug.callback"),
    "deprecations": Use("names that go away", "module-level __getattr__ and warnings"),
    "dispatch": Use(
        "running operations, and waiting for them",
        "jax.block_until_ready, jax.effects_barrier, jax.device_put",
    ),
    "distributed": Use("programs of several processes", "jax.distributed, jax.process_index"),
    "dtypes": Use("element types and their promotion", "jax.dtypes, jax.numpy.result_type"),
    "earray": Use(
        "arrays of extended element types, as random keys", "jax.random.key, jax.dtypes.extended"
    ),
    "effects": Use("side effects of equations", "jax.extend.core.Effect, eqn.effects"),
    "environment_info": Use("describing the machine", "jax.print_environment_info"),
    "export": Use("writing programs to files", "jax.export"),
    "flatten_util": Use("trees as one vector", "jax.flatten_util.ravel_pytree"),
    "image": Use("resizing images", "jax.image"),
    "interpreters": Use("rules of primitives", "jax.interpreters, jax.extend.core"),
    "interpreters.pxla": Use(
        "results over several devices", "jax.make_array_from_single_device_arrays, jax.sharding"
    ),
    "lax": Use("array operations and control flow", "jax.lax"),
    "lib": Use(
        "XLA's client and MLIR, as jaxlib has them",
        "jax.Device, jax.sharding, jax.extend.mlir, or jaxlib itself",
        "scico",
    ),
    "linear_util": Use("functions under transformations", "jax.extend.linear_util"),
    "literals": Use(
        "numbers written in a program", "jax.typing.ArrayLike, jax.extend.core.Literal", "equinox"
    ),
    "mesh": Use("meshes of devices", "jax.sharding.Mesh, jax.make_mesh"),
    "monitoring": Use("events and durations", "jax.monitoring"),
    "named_sharding": Use("how arrays are divided", "jax.sharding.NamedSharding"),
    "nn": Use("layers of networks", "jax.nn"),
    "numpy": Use("NumPy's functions", "jax.numpy"),
    "ops": Use("sums over segments", "jax.ops"),
    "pallas": Use("kernels of GPUs and TPUs", "jax.experimental.pallas"),
    "partition_spec": Use("how arrays are divided", "jax.sharding.PartitionSpec"),
    "pjit": Use("jit over several devices", "jax.jit, jax.lax.with_sharding_constraint"),
    "prng": Use("random keys", "jax.random.key, jax.random.key_data, jax.extend.random"),
    "profiler": Use("profiles", "jax.profiler"),
    "public_test_util": Use("comparing derivatives with differences", "jax.test_util.check_grads"),
    "random": Use("random numbers", "jax.random"),
    "scipy": Use("SciPy's functions", "jax.scipy"),
    "shard_map": Use("programs of one device's part", "jax.shard_map"),
    "sharding": Use("how arrays are divided", "jax.sharding"),
    "sharding_impls": Use("how arrays are divided", "jax.sharding"),
    "source_info_util": Use(
        "where in the program an operation was written", "jax.extend.source_info_util"
    ),
    "stages": Use("traced, lowered and compiled functions", "jax.stages"),
    "state": Use("mutable arrays", "jax.new_ref, jax.ref"),
    "test_util": Use(
        "JAX's own test suite", "jax.test_util.check_grads, numpy.testing", "tests of jaxopt"
    ),
    "third_party": Use("parts of SciPy", "jax.scipy"),
    "traceback_util": Use(
        "leaving frames out of tracebacks", "jax.extend.source_info_util.register_exclusion"
    ),
    "tree_util": Use("trees of arrays", "jax.tree_util, jax.tree"),
    "typing": Use("annotations", "jax.typing, jax.Array"),
    "util": Use("small functions", "functools, itertools and zip(..., strict=True); jax.api_util"),
    "xla_bridge": Use(
        "platforms and their clients", "jax.devices, jax.default_backend, jax.extend.backend"
    ),
    "xla_metadata": Use("attributes on operations", "jax.experimental.xla_metadata"),
}


def use_of(area: str) -> Use | None:
    """What the module `jax._src.area` is used for; None if that is not known.

    For a mapped module, the table `AREAS` names its users.
    """
    at = area
    while at and at not in _USES:
        at = at.rpartition(".")[0]
    found = _USES.get(at)
    if area in AREAS:
        row = AREAS[area]
        return (
            Use(found.purpose, found.public, row.users)
            if found
            else Use("internal work", row.public.replace("gradix", "jax"), row.users)
        )
    return found


def explanation(area: str) -> str:
    """Sentences for errors about an internal module of JAX or a name in one."""
    use = use_of(area)
    if use is None:
        return (
            "It is internal to JAX, and gradix, which replaces it here, does not have it. Public names are in "
            "jax, jax.extend and jax.interpreters."
        )
    users = f" by {use.users}" if use.users else ""
    return (
        f"It is internal to JAX and used{users} for {use.purpose}. gradix, which replaces JAX here, has only the "
        f"internal names that libraries are known to use. Use the public names: {use.public}."
    )
