"""Names of JAX's internal modules `jax._src.X` that libraries import, mapped to public names.

The table `AREAS` says for each such module which libraries use it, what the public names are, and
where its names come from. Names with other behaviour are in a small module beside this file. An
internal name that is not mapped raises an error that says so.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

from gradix._base.lazy import lazy_module

_known_uses = lazy_module("gradix.compat.known_uses")


class Area(NamedTuple):
    """An internal module of JAX.

    Attributes:
        users: the libraries that import it.
        public: the module with the public names for the same.
        names: names that are called differently there, as name -> "module:name".
        also: further modules its names come from, after `public`.
        code: whether its names come from the module of this folder with the same name.
    """

    users: str
    public: str
    names: dict[str, str] = {}
    also: str = ""
    code: bool = False


AREAS = {
    "ad_checkpoint": Area("equinox", "gradix.ad_checkpoint"),
    "ad_util": Area(
        "lineax, equinox",
        "gradix.interpreters.ad",
        {"stop_gradient_p": "gradix.lax:stop_gradient_p"},
    ),
    "api": Area("equinox, e3nn-jax", "gradix"),
    "api_util": Area("e3nn-jax, numpyro", "gradix.api_util", code=True),
    "array": Area("orbax-checkpoint", "gradix", {"ArrayImpl": "gradix:Array"}),
    "checkify": Area(
        "flax",
        "gradix.experimental.checkify",
        {"JaxException": "gradix.experimental.checkify:ErrorCategory", "Out": "typing:Any"},
    ),
    "compiler": Area("chex", "gradix.jit", code=True),
    "config": Area("numpyro, orbax-checkpoint", "gradix", {"config": "gradix:config"}),
    "core": Area(
        "flax, jax-md, numpyro, equinox",
        "gradix.core",
        {
            "physical_aval": "gradix._core.library_values:physical_aval",
            "trace_state_clean": "gradix._core.checks:trace_state_clean",
        },
        also="gradix.extend.core gradix.errors",
    ),
    "custom_derivatives": Area("equinox, distrax", "gradix.custom_derivatives"),
    "dispatch": Area("equinox, chex", "gradix", {"wait_for_tokens": "gradix:effects_barrier"}),
    "distributed": Area("orbax-checkpoint", "gradix.distributed", code=True),
    "dtypes": Area("equinox, flax, optax", "gradix.dtypes", code=True),
    "flatten_util": Area("blackjax", "gradix.flatten_util"),
    "interpreters.ad": Area(
        "lineax",
        "gradix.interpreters.ad",
        {"CustomVJPException": "builtins:TypeError"},
    ),
    "interpreters.batching": Area("equinox", "gradix.interpreters.batching"),
    "interpreters.mlir": Area("equinox", "gradix.interpreters.mlir"),
    "interpreters.partial_eval": Area(
        "scico, flax",
        "gradix.interpreters.partial_eval",
        {"JaxprTracer": "gradix.interpreters.partial_eval:DynamicJaxprTracer"},
    ),
    "interpreters.pxla": Area("orbax-checkpoint", "gradix.interpreters.pxla"),
    "lax.lax": Area("equinox, numpyro", "gradix.lax"),
    "lib": Area("scico, examples of JAX", "gradix.extend.backend", code=True),
    "linear_util": Area("numpyro", "gradix.extend.linear_util"),
    "literals": Area("equinox, diffrax, quax", "gradix.core", code=True),
    "mesh": Area("flax, orbax-checkpoint", "gradix.sharding"),
    "named_sharding": Area("orbax-checkpoint", "gradix.sharding"),
    "numpy.lax_numpy": Area("equinox", "gradix.numpy"),
    "partition_spec": Area("orbax-checkpoint", "gradix.sharding"),
    "pjit": Area("quax", "gradix", {"jit_p": "gradix.extend.core.primitives:jit_p"}),
    "prng": Area("flax, numpyro", "gradix.extend.random"),
    "random": Area("blackjax, numpyro", "gradix.random"),
    "random.threefry2x32": Area("examples of quax", "gradix.extend.random", code=True),
    "sharding": Area("scico", "gradix.sharding"),
    "sharding_impls": Area("scico, orbax-checkpoint", "gradix.sharding"),
    "source_info_util": Area("flax", "gradix.extend.source_info_util"),
    "state.types": Area("flax", "gradix.experimental.hijax"),
    "test_util": Area("tests of jaxopt", "gradix.test_util", code=True),
    "traceback_util": Area("equinox, flax, haiku", "gradix.extend.source_info_util", code=True),
    "tree_util": Area("flax, orbax-checkpoint", "gradix.tree_util", code=True),
    "typing": Area("optax, blackjax", "gradix.typing"),
    "util": Area("numpyro, equinox", "gradix.api_util"),
    "xla_bridge": Area("chex, jax-md", "gradix.extend.backend", code=True),
}
_PARENTS = {area.rpartition(".")[0] for area in AREAS} - {""}


def is_mapped(area: str) -> bool:
    """Whether `jax._src.area` can be imported."""
    return area in AREAS or area in _PARENTS


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


def lookup(area: str, name: str):
    """The value of `jax._src.area.name`.

    Raises:
        LookupError: the name is not mapped; the message says where the public names are.
    """
    row = AREAS.get(area, Area("nobody", "jax, jax.extend, jax.interpreters"))
    if area in AREAS and row.code:
        there = importlib.import_module(f"{__name__}.{area}")
        if hasattr(there, name):
            return getattr(there, name)
    elif name in row.names:
        module, _, attribute = row.names[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    elif not name.startswith("_"):
        for module in f"{row.public} {row.also}".split() if area in AREAS else ():
            there = importlib.import_module(module)
            if hasattr(there, name):
                return getattr(there, name)
    raise LookupError(
        f"module 'jax._src.{area}' has no attribute {name!r}. {_known_uses.explanation(area)}"
    )
