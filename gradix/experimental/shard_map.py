"""`shard_map` with its former parameters `check_rep` and `auto`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._api.mapping.shard_map import shard_map as _shard_map
from gradix._base.listing import own_names as _own_names
from gradix._core.mesh import AbstractMesh, Mesh

__all__ = ["shard_map"]


def shard_map(
    f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True, auto: frozenset = frozenset()
) -> Callable:
    """`gradix.shard_map` with its former parameters.

    Args:
        f: the function that each device applies to its parts.
        mesh: the mesh of devices.
        in_specs, out_specs: PartitionSpecs of arguments and results, as tree prefixes.
        check_rep: what is now called `check_vma`.
        auto: the axes of the mesh that are left to the compiler.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import Mesh, PartitionSpec as P
        >>> shard_map(lambda x: x + 1, Mesh(gradix.devices()[:1], "i"), P("i"), P("i"))(jnp.zeros(2))
        Array([1., 1.], dtype=float32)
    """
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(f"shard_map requires a Mesh or an AbstractMesh as its second argument, got {mesh!r}.")
    return _shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        check_vma=check_rep,
        axis_names=frozenset(mesh.axis_names) - frozenset(auto),
    )


__dir__ = _own_names(__name__)
