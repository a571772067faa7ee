"""Members of arrays, dimensions, shardings and stages that JAX keeps internal, and that programs for it read.

`install_as_jax` adds them, and `uninstall` takes them away; nothing else in gradix has them.
"""

from __future__ import annotations

from typing import Any

from gradix._api.jit.stages import Compiled, Lowered
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dtypes import is_extended
from gradix._core.sharding import Sharding
from gradix._core.trace import Tracer
from gradix.dtypes import extended, prng_key

random = lazy_module("gradix.random")
extend = lazy_module("gradix.extend.random")
partitioning = lazy_module("gradix._runtime.xla_partitioning")


def _known_on_host(x: ArrayImpl):
    """The values, if they are in main memory already."""
    return None if x._host is None else x.host


def _check_if_deleted(x: ArrayImpl) -> None:
    if x.is_deleted():
        raise RuntimeError(
            f"Array has been deleted. It was of type {x.aval.str_short()}; keep a copy of what is donated, "
            "with gradix.numpy.copy(x)."
        )


def _parts(x: ArrayImpl) -> list | None:
    """The part of the array on each device."""
    return None if x.is_deleted() else [s.data for s in x.addressable_shards]


def _of_keys(name: str, member: Any) -> property:
    """A member that only arrays of random keys have."""

    def get(x: ArrayImpl):
        if not is_extended(x.aval.dtype):
            raise AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}")
        return member(x)

    return property(get)


def _generator(keys: ArrayImpl):
    """The generator of the keys, as `extend.random` has it."""
    built_in = (extend.threefry_prng_impl, extend.rbg_prng_impl, extend.unsafe_rbg_prng_impl)
    own = {impl.key_dtype: impl for impl in built_in}
    return own.get(keys.aval.dtype) or random.key_impl(keys)


def _takes_positions_only(stage: Lowered | Compiled) -> bool:
    """Whether the program takes no keyword arguments; each takes them here."""
    return False


MEMBERS: dict[type, dict[str, Any]] = {
    ArrayImpl: {
        "_value": property(lambda x: x.host),
        "_npy_value": property(_known_on_host),
        "_arrays": property(_parts),
        "_check_if_deleted": _check_if_deleted,
        "_fully_replicated_shard": lambda x: x.addressable_data(0),
        "_base_array": _of_keys("_base_array", lambda keys: keys if keys.is_deleted() else random.key_data(keys)),
        "_impl": _of_keys("_impl", _generator),
    },
    Sharding: {"_to_xla_hlo_sharding": lambda s, ndim: partitioning.hlo_sharding_of(s, ndim)},
    Lowered: {"_no_kwargs": property(_takes_positions_only)},
    Compiled: {"_no_kwargs": property(_takes_positions_only)},
    SymbolicDim: {"_get_vars": SymbolicDim.variables, "_evaluate": SymbolicDim.evaluate},
}


_HOMES: dict[type, str] = {}  # where classes are, while they say that they are jax's


def _known_by_module() -> dict[type, str]:
    """The classes that libraries recognise or print by their module: those of values, and of dtypes."""
    found: list[type] = [ArrayImpl, Tracer]
    for owner in found:
        found += owner.__subclasses__()
    return dict.fromkeys(found, "jax") | dict.fromkeys((extended, prng_key), "jax.dtypes")


def add() -> None:
    """Add the members to their classes, which say from now on that they are of modules of jax."""
    for owner, members in MEMBERS.items():
        for name, member in members.items():
            setattr(owner, name, member)
    for owner, module in _known_by_module().items():
        _HOMES[owner] = owner.__module__
        owner.__module__ = module


def remove() -> None:
    """Take the members away again."""
    for owner, members in MEMBERS.items():
        for name in members:
            if name in owner.__dict__:
                delattr(owner, name)
    while _HOMES:
        owner, home = _HOMES.popitem()
        owner.__module__ = home
