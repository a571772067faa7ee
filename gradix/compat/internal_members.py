"""Members of arrays and dimensions that JAX keeps internal, and that programs for it read.

`install_as_jax` adds them, and `uninstall` takes them away; nothing else in gradix has them.
"""

from __future__ import annotations

from typing import Any

from gradix._core.array import ArrayImpl
from gradix._core.dimensions.expression import SymbolicDim


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


MEMBERS: dict[type, dict[str, Any]] = {
    ArrayImpl: {
        "_value": property(lambda x: x.host),
        "_npy_value": property(_known_on_host),
        "_arrays": property(_parts),
        "_check_if_deleted": _check_if_deleted,
        "_fully_replicated_shard": lambda x: x.addressable_data(0),
    },
    SymbolicDim: {
        "_get_vars": SymbolicDim.variables,
        "_evaluate": SymbolicDim.evaluate,
    },
}


def add() -> None:
    """Add the members to their classes."""
    for owner, members in MEMBERS.items():
        for name, member in members.items():
            setattr(owner, name, member)


def remove() -> None:
    """Take the members away again."""
    for owner, members in MEMBERS.items():
        for name in members:
            if name in owner.__dict__:
                delattr(owner, name)
