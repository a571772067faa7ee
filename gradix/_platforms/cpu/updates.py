"""Blocks of arrays that are replaced, where XLA would read what it has just replaced."""

from __future__ import annotations

import math

from gradix._ops.indexing.dynamic_slicing import dynamic_update_slice_p
from gradix._ops.indexing.scatter import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from gradix._platforms.cpu.kernel_loops import apart
from gradix._platforms.records import CORRECTNESS, Rewrite

_SAME_MEMORY = {"reshape", "squeeze", "expand_dims", "broadcast_in_dim", "copy", "copy_p", "optimization_barrier"}
_SCATTERS = (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)


def _is_read_in_another_shape(site) -> bool:
    """Whether the array is another one in another shape, and that one is read as well."""
    if site.eqn is None or site.users is None:
        return False
    v, size = site.eqn.invars[0], site.values[0].aval.size
    while (maker := site.users.maker(v)) is not None and maker.primitive.name in _SAME_MEMORY:
        if len(maker.invars) > 1:
            return False
        v = maker.invars[0]
        if not hasattr(v, "aval") or v.aval.size != size:
            return False
        if len(site.users.of(v)) > 1:
            return True
    return False


def _is_one_block(site) -> bool:
    """Whether a scatter is to one place, of which XLA makes a block that is replaced."""
    return math.prod(site.values[1].aval.shape[:-1]) == 1 and _is_read_in_another_shape(site)


def _by_itself(em, site, *values):
    """Replace the block apart: fused with what makes it, later elements of it would read earlier ones."""
    return apart(em, "replaced_block", site.out, lambda *values: site.plain(em, *values), *values)


REWRITES = tuple(
    [
        Rewrite(name, primitives, _by_itself, applies, CORRECTNESS, ("0.10.2", "0.12.0"), alone=True)
        for name, primitives, applies in (
            ("blocks_replaced_apart", (dynamic_update_slice_p,), _is_read_in_another_shape),
            ("scattered_blocks_apart", _SCATTERS, _is_one_block),
        )
    ]
)
