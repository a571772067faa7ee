"""Names of JAX's internal modules `jax._src.X` that libraries import, mapped to public names.

The table `AREAS` says for each such module what it is for, which libraries use it, what JAX's public
names are, and where its names come from. Names with other behaviour are in a small module beside
this file. An internal name that is not mapped raises an error that says so.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple


class Area(NamedTuple):
    """An internal module of JAX: what is said of it in errors, and the names that it has here.

    Attributes:
        purpose: what it is used for; that of its parent by default.
        instead: JAX's public names for the same; those of its parent by default.
        users: the libraries known to import it.
        names_from: the modules whose public names it has, as words; none if it cannot be imported.
        names: names that are called differently there, as name -> "module:name".
        code: whether its names come from the module of this folder with the same name.
    """

    purpose: str = ""
    instead: str = ""
    users: str = ""
    names_from: str = ""
    names: dict[str, str] = {}
    code: bool = False


AREAS = {
    "abstract_arrays": Area("types of arrays", "jax.core.ShapedArray, jax.typeof"),
    "ad_checkpoint": Area(
        "computing values again in the backward pass",
        "jax.checkpoint, jax.ad_checkpoint",
        users="equinox",
        names_from="gradix.ad_checkpoint",
    ),
    "ad_util": Area(
        "zero tangents and additions of cotangents",
        "jax.interpreters.ad, jax.custom_derivatives.SymbolicZero",
        users="lineax, equinox",
        names_from="gradix.interpreters.ad",
        names={"stop_gradient_p": "gradix.lax:stop_gradient_p"},
    ),
    "api": Area("the transformations", "jax", users="equinox, e3nn-jax", names_from="gradix"),
    "api_util": Area(
        "flattening arguments and numbering them",
        "jax.api_util, jax.tree_util",
        users="e3nn-jax, numpyro",
        names_from="gradix.api_util",
        code=True,
    ),
    "array": Area(
        "the class of arrays",
        "jax.Array, jax.make_array_from_single_device_arrays",
        users="orbax-checkpoint",
        names_from="gradix",
        names={"ArrayImpl": "gradix:Array"},
    ),
    "cache_key": Area("keys of compiled programs on disk", "jax.experimental.compilation_cache"),
    "callback": Area(
        "calls from compiled programs to Python", "jax.pure_callback, jax.experimental.io_callback, jax.debug.callback"
    ),
    "checkify": Area(
        "checks in compiled programs",
        "jax.experimental.checkify, jax.jit(f, check=...)",
        users="flax",
        names_from="gradix.experimental.checkify",
        names={"JaxException": "gradix.experimental.checkify:ErrorCategory", "Out": "typing:Any"},
    ),
    "compilation_cache": Area("compiled programs on disk", "jax.experimental.compilation_cache"),
    "compiler": Area(
        "compiling a module", "jax.jit(f).lower(...).compile()", users="chex", names_from="gradix.jit", code=True
    ),
    "config": Area(
        "options",
        "jax.config, and context managers such as jax.enable_x64",
        users="numpyro, orbax-checkpoint",
        names_from="gradix",
        names={"config": "gradix:config"},
    ),
    "core": Area(
        "jaxprs, primitives and tracing",
        "jax.core, jax.extend.core",
        users="flax, jax-md, numpyro, equinox",
        names_from="gradix.core gradix.extend.core gradix.errors",
        names={
            "physical_aval": "gradix._core.library_values:physical_aval",
            "trace_state_clean": "gradix._core.checks:trace_state_clean",
        },
    ),
    "cudnn": Area("attention by cuDNN on NVIDIA's GPUs", "jax.nn.dot_product_attention", users="keras"),
    "custom_batching": Area("rules for vmap", "jax.custom_batching"),
    "custom_derivatives": Area(
        "rules for derivatives",
        "jax.custom_jvp, jax.custom_vjp, jax.custom_derivatives",
        users="equinox, distrax",
        names_from="gradix.custom_derivatives",
    ),
    "custom_transpose": Area("rules for transposes", "jax.extend.core.Primitive, jax.interpreters.ad"),
    "debugging": Area("printing from compiled programs", "jax.debug.print, jax.debug.callback"),
    "deprecations": Area("names that go away", "module-level __getattr__ and warnings"),
    "dispatch": Area(
        "running operations, and waiting for them",
        "jax.block_until_ready, jax.effects_barrier, jax.device_put",
        users="equinox, chex",
        names_from="gradix",
        names={"wait_for_tokens": "gradix:effects_barrier"},
    ),
    "distributed": Area(
        "programs of several processes",
        "jax.distributed, jax.process_index",
        users="orbax-checkpoint",
        names_from="gradix.distributed",
        code=True,
    ),
    "dtypes": Area(
        "element types and their promotion",
        "jax.dtypes, jax.numpy.result_type",
        users="equinox, flax, optax",
        names_from="gradix.dtypes",
        code=True,
    ),
    "earray": Area("arrays of extended element types, as random keys", "jax.random.key, jax.dtypes.extended"),
    "effects": Area("side effects of equations", "jax.extend.core.Effect, eqn.effects"),
    "environment_info": Area("describing the machine", "jax.print_environment_info"),
    "export": Area("writing programs to files", "jax.export"),
    "flatten_util": Area(
        "trees as one vector", "jax.flatten_util.ravel_pytree", users="blackjax", names_from="gradix.flatten_util"
    ),
    "image": Area("resizing images", "jax.image"),
    "interpreters": Area("rules of primitives", "jax.interpreters, jax.extend.core"),
    "interpreters.ad": Area(
        users="lineax", names_from="gradix.interpreters.ad", names={"CustomVJPException": "builtins:TypeError"}
    ),
    "interpreters.batching": Area(
        users="equinox",
        names_from="gradix.interpreters.batching",
        names={"is_vmappable": "gradix._api.mapping.containers:is_container"},
    ),
    "interpreters.mlir": Area(users="equinox", names_from="gradix.interpreters.mlir"),
    "interpreters.partial_eval": Area(
        users="scico, flax",
        names_from="gradix.interpreters.partial_eval",
        names={"JaxprTracer": "gradix.interpreters.partial_eval:DynamicJaxprTracer"},
    ),
    "interpreters.pxla": Area(
        "results over several devices",
        "jax.make_array_from_single_device_arrays, jax.sharding",
        users="orbax-checkpoint",
        names_from="gradix.interpreters.pxla",
    ),
    "lax": Area("array operations and control flow", "jax.lax"),
    "lax.lax": Area(users="equinox, numpyro", names_from="gradix.lax"),
    "lib": Area(
        "XLA's client and MLIR, as jaxlib has them",
        "jax.Device, jax.sharding, jax.extend.mlir, or jaxlib itself",
        users="scico, examples of JAX",
        names_from="gradix.extend.backend",
        code=True,
    ),
    "lib.mlir": Area(users="examples of JAX", names_from="gradix.extend.mlir"),
    "lib.mlir.dialects": Area(
        users="examples of JAX",
        names_from="gradix.extend.mlir.dialects",
        names={"hlo": "gradix.extend.mlir.dialects:stablehlo"},
    ),
    "linear_util": Area(
        "functions under transformations",
        "jax.extend.linear_util",
        users="numpyro",
        names_from="gradix.extend.linear_util",
    ),
    "literals": Area(
        "numbers written in a program",
        "jax.typing.ArrayLike, jax.extend.core.Literal",
        users="equinox, diffrax, quax",
        names_from="gradix.core",
        code=True,
    ),
    "mesh": Area(
        "meshes of devices",
        "jax.sharding.Mesh, jax.make_mesh",
        users="flax, orbax-checkpoint",
        names_from="gradix.sharding",
    ),
    "monitoring": Area("events and durations", "jax.monitoring"),
    "named_sharding": Area(
        "how arrays are divided", "jax.sharding.NamedSharding", users="orbax-checkpoint", names_from="gradix.sharding"
    ),
    "nn": Area("layers of networks", "jax.nn"),
    "nn.initializers": Area(
        users="netket",
        names_from="gradix.nn.initializers",
        names={
            "_complex_truncated_normal": "gradix.nn.initializers:_cut_normal",
            "_complex_uniform": "gradix.nn.initializers:_disk",
        },
    ),
    "numpy": Area("NumPy's functions", "jax.numpy"),
    "numpy.lax_numpy": Area(users="equinox", names_from="gradix.numpy"),
    "numpy.ufuncs": Area(users="esquilax", names_from="gradix.numpy"),
    "numpy.util": Area(users="netket", names_from="gradix.numpy", code=True),
    "ops": Area("sums over segments", "jax.ops"),
    "pallas": Area("kernels of GPUs and TPUs", "jax.experimental.pallas"),
    "partition_spec": Area(
        "how arrays are divided", "jax.sharding.PartitionSpec", users="orbax-checkpoint", names_from="gradix.sharding"
    ),
    "pjit": Area(
        "jit over several devices",
        "jax.jit, jax.lax.with_sharding_constraint",
        users="quax",
        names_from="gradix",
        names={
            "jit_p": "gradix.extend.core.primitives:jit_p",
            "auto_axes": "gradix.sharding:auto_axes",
            "explicit_axes": "gradix.sharding:explicit_axes",
        },
    ),
    "prng": Area(
        "random keys",
        "jax.random.key, jax.random.key_data, jax.extend.random",
        users="flax, numpyro",
        names_from="gradix.extend.random",
    ),
    "profiler": Area("profiles", "jax.profiler"),
    "public_test_util": Area(
        "comparing derivatives with differences",
        "jax.test_util.check_grads",
        users="tests of libraries",
        names_from="gradix.test_util",
        names={"check_close": "gradix.compat.internals.test_util:check_close"},
    ),
    "random": Area("random numbers", "jax.random", users="blackjax, numpyro", names_from="gradix.random"),
    "random.threefry2x32": Area(users="examples of quax", names_from="gradix.extend.random", code=True),
    "scipy": Area("SciPy's functions", "jax.scipy"),
    "scipy.special": Area(users="jaxquantum", names_from="gradix.scipy.special"),
    "shard_map": Area("programs of one device's part", "jax.shard_map"),
    "sharding": Area("how arrays are divided", "jax.sharding", users="scico", names_from="gradix.sharding"),
    "sharding_impls": Area(
        "how arrays are divided", "jax.sharding", users="scico, orbax-checkpoint", names_from="gradix.sharding"
    ),
    "source_info_util": Area(
        "where in the program an operation was written",
        "jax.extend.source_info_util",
        users="flax",
        names_from="gradix.extend.source_info_util",
    ),
    "stages": Area("traced, lowered and compiled functions", "jax.stages"),
    "state": Area("mutable arrays", "jax.new_ref, jax.ref"),
    "state.types": Area(users="flax", names_from="gradix.experimental.hijax"),
    "test_util": Area(
        "JAX's own test suite",
        "jax.test_util.check_grads, numpy.testing",
        users="tests of jaxopt",
        names_from="gradix.test_util",
        code=True,
    ),
    "third_party": Area("parts of SciPy", "jax.scipy"),
    "traceback_util": Area(
        "leaving frames out of tracebacks",
        "jax.extend.source_info_util.register_exclusion",
        users="equinox, flax, haiku",
        names_from="gradix.extend.source_info_util",
        code=True,
    ),
    "tree_util": Area(
        "trees of arrays",
        "jax.tree_util, jax.tree",
        users="flax, orbax-checkpoint",
        names_from="gradix.tree_util",
        code=True,
    ),
    "typing": Area(
        "annotations",
        "jax.typing, jax.Array",
        users="optax, blackjax, netket, cuthbert",
        names_from="gradix.typing",
        names={
            "SupportsDType": "gradix.compat.internals.dtypes:SupportsDType",
            "Array": "gradix:Array",
            "DType": "numpy:dtype",
            "DimSize": "typing:Any",
            "Shape": "collections.abc:Sequence",
        },
    ),
    "util": Area(
        "small functions",
        "functools, itertools and zip(..., strict=True); jax.api_util",
        users="numpyro, equinox",
        names_from="gradix.api_util",
    ),
    "xla_bridge": Area(
        "platforms and their clients",
        "jax.devices, jax.default_backend, jax.extend.backend",
        users="chex, jax-md",
        names_from="gradix.extend.backend",
        code=True,
    ),
    "xla_metadata": Area("attributes on operations", "jax.experimental.xla_metadata"),
}
_MAPPED = {area for area, row in AREAS.items() if row.names_from}
_PARENTS = {area.rpartition(".")[0] for area in _MAPPED} - {""}


def is_mapped(area: str) -> bool:
    """Whether `jax._src.area` can be imported."""
    return area in _MAPPED or area in _PARENTS


class InternalModule(ModuleType):
    """An internal module of JAX, whose names are looked up as its row of the table says."""

    def __init__(self, name: str, area: str):
        super().__init__(name, f"`{name}`, as libraries use it.")
        self.__dict__.update(_area=area, __path__=[])

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        below = f"{self._area}.{name}".lstrip(".")
        if is_mapped(below):
            return importlib.import_module(f"jax._src.{below}")
        try:
            value = self.__dict__[name] = lookup(self._area, name)
        except LookupError as e:
            raise AttributeError(e.args[0]) from None
        return value


def use_of(area: str) -> Area | None:
    """What is known of the module `jax._src.area`, or of the nearest one that contains it; or None."""
    own, at = AREAS.get(area, Area()), area
    while at and not AREAS.get(at, own).purpose:
        at = at.rpartition(".")[0]
    if not at:
        return None
    above = AREAS[at]
    return own._replace(purpose=above.purpose, instead=above.instead, users=own.users or above.users)


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
        f"internal names that libraries are known to use. Use the public names: {use.instead}."
    )


def lookup(area: str, name: str):
    """The value of `jax._src.area.name`.

    Raises:
        LookupError: the name is not mapped; the message says where the public names are.
    """
    row = AREAS.get(area, Area())
    if row.code:
        there = importlib.import_module(f"{__name__}.{area}")
        if hasattr(there, name):
            return getattr(there, name)
    elif name in row.names:
        module, _, attribute = row.names[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    elif not name.startswith("_"):
        for module in row.names_from.split():
            there = importlib.import_module(module)
            if hasattr(there, name):
                return getattr(there, name)
    raise LookupError(f"module 'jax._src.{area}' has no attribute {name!r}. {explanation(area)}")
