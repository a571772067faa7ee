"""Sums over rows that are divided over mesh axes, left to be finished over these axes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from gradix._api.constraints import divided
from gradix._api.mapping.vmap import vmap
from gradix._core.divisions import entries
from gradix._core.named_sharding import NamedSharding, axes_of
from gradix._core.sharding import PartitionSpec
from gradix._ops.reductions import reduce_sum
from gradix._ops.shape import reshape
from gradix._ops.sharding import reshard


def summed_by_rows(function: Callable, sharding: NamedSharding, *rows):
    """`function(*rows)`, a sum of what each row gives, unreduced over mesh axes as `sharding` says.

    Each device sums over the rows that it holds. If the rows are not divided over these axes, all of
    them are summed first.

    Args:
        function: a function of arrays with equally many rows, that adds up what they give.
        sharding: the sharding of the result.
        rows: the arrays.
    """
    names = tuple([a for a in sharding.mesh.axis_names if a in sharding.spec.unreduced])
    if any(set(axes_of(entries(x.aval)[0])) != set(names) for x in rows):
        return function(*[reshard(x, None) for x in rows])
    n = prod([sharding.mesh.shape[a] for a in names])
    blocks = [reshape(x, (n, x.aval.shape[0] // n, *x.aval.shape[1:])) for x in rows]
    order = entries(blocks[0].aval)[0]
    parts = divided(vmap(function), NamedSharding(sharding.mesh, PartitionSpec(order)), *blocks)
    return reduce_sum(parts, (0,), out_sharding=sharding)
