"""Pytrees moved along named axes: all_gather, psum_scatter, all_to_all, ppermute, pbroadcast, …."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradix._api.mapping.collectives import axis_index, bind_checked, groups_of, map_arrays, psum
from gradix._core.array import as_array
from gradix._core.aval import unreduced_axes
from gradix._core.trace import bind, state
from gradix._ops.basis import broadcast_in_dim, move_axis
from gradix._ops.canonicalization import canonical_axis
from gradix._ops.collective_moves import (
    all_gather_invariant_p,
    all_gather_p,
    all_gather_reduced_p,
    all_to_all_p,
    ppermute_p,
    reduce_scatter_p,
    unreduced_reduce_scatter_p,
)
from gradix._ops.collectives import names_of, size_of
from gradix._ops.comparison import eq
from gradix._ops.creation import zeros_like_array
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim
from gradix._ops.select import select_n
from gradix._ops.shape import reshape


def all_gather(
    x: Any,
    axis_name: Hashable,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The values of all members, stacked along a new axis, or joined along an old one.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis_index_groups: lists of members' indices that partition the axis; each group gathers its
            own values. None is one group.
        axis: the position of the new axis; with `tiled`, the axis along which values are joined.
        tiled: join the values along an existing axis.
        to: the type of the results inside of `shard_map`: "varying", or "invarying" or "reduced",
            which say that they are equal for all members. Of "reduced" results each member has a
            summand of the cotangent, so that the transpose is `psum_scatter`.

    Returns:
        Arrays of the dtypes of `x`, with one more axis, whose size is the number of members.

    Raises:
        ValueError: `to` is another word.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.all_gather(x, "i").sum(), axis_name="i")(jnp.arange(3.0))
        Array([3., 3., 3.], dtype=float32)
    """
    names = names_of(axis_name)
    groups = groups_of(axis_index_groups, names)
    n = len(groups[0]) if groups else size_of(names)
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(f"all_gather: to is 'varying', 'invarying' or 'reduced', got {to!r}.")
    alike = to != "varying" and groups is None and state.manual.issuperset(names)
    equal_p = all_gather_invariant_p if to == "invarying" else all_gather_reduced_p
    prim = equal_p if alike else all_gather_p

    def gather_all(a):
        """Gather along each name, the last first, so that the order is that of the joint index."""
        place = canonical_axis(axis, a.aval.ndim + (not tiled), "all_gather axis")
        for name in reversed(names):
            a = bind(
                prim,
                (a,),
                {
                    "axes": (name,),
                    "all_gather_dimension": place,
                    "axis_size": size_of(name),
                    "tiled": False,
                    "axis_index_groups": None,
                },
            )
        shape, k = a.aval.shape, len(names) + tiled
        return reshape(a, (*shape[:place], prod(shape[place : place + k]), *shape[place + k :]))

    def gather(a):
        if len(names) > 1 and groups is None:
            return gather_all(a)
        place = canonical_axis(axis, a.aval.ndim + (not tiled), "all_gather axis")
        return bind(
            prim,
            (a,),
            {"axes": names, "all_gather_dimension": place, "axis_size": n, "tiled": tiled, "axis_index_groups": groups},
        )

    return map_arrays("all_gather", gather, x, names)


def psum_scatter(
    x: Any,
    axis_name: Hashable,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """The sum over a named axis, of which each member keeps its part along `scatter_dimension`.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        scatter_dimension: the axis of `x` along which the sum is divided; its size is that of the
            named axis (with `tiled`, a multiple of it).
        axis_index_groups: lists of members' indices that partition the axis; each group is on its
            own. None is one group.
        tiled: keep the axis, with as many elements as each member's part has.

    Raises:
        ValueError: an operand has no axis.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.psum_scatter(x, "i"), axis_name="i")(jnp.ones((2, 2)))
        Array([2., 2.], dtype=float32)
    """
    names = names_of(axis_name)
    groups = groups_of(axis_index_groups, names)
    params = {
        "axes": names,
        "tiled": tiled,
        "axis_index_groups": groups,
        "axis_size": len(groups[0]) if groups else size_of(names),
    }

    def scatter_of(a, name):
        return unreduced_reduce_scatter_p if name in unreduced_axes(a.aval.vma) else reduce_scatter_p

    def scatter_all(a, place):
        shape, sizes = a.aval.shape, [size_of(name) for name in names]
        rest = (shape[place] // prod(sizes),) if tiled else ()
        a = reshape(a, (*shape[:place], *sizes, *rest, *shape[place + 1 :]))
        for name, size in zip(names, sizes):
            a = bind(
                scatter_of(a, name),
                (a,),
                {**params, "axes": (name,), "axis_size": size, "tiled": False, "scatter_dimension": place},
            )
        return a

    def scatter(a):
        if not a.aval.ndim:
            raise ValueError("psum_scatter needs an operand with an axis to scatter, got a scalar.")
        place = canonical_axis(scatter_dimension, a.aval.ndim, "psum_scatter scatter_dimension")
        if len(names) > 1 and groups is None:
            reduce_scatter_p.abstract(a.aval, **params, scatter_dimension=place)
            return scatter_all(a, place)
        return bind_checked(scatter_of(a, *names[:1]), a, {**params, "scatter_dimension": place})

    return map_arrays("psum_scatter", scatter, x, names, sums=groups is None)


def all_to_all(
    x: Any,
    axis_name: Hashable,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """Send each member its part along `split_axis`, and stack the received parts at `concat_axis`.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        split_axis: the axis of `x` that is divided among the members; its size is that of the named
            axis (with `tiled`, a multiple of it).
        concat_axis: the position of the new axis of received parts (with `tiled`, the axis along
            which they are joined).
        axis_index_groups: lists of members' indices that partition the axis; each group is on its
            own. None is one group.
        tiled: split and join existing axes, instead of removing one and adding one.

    Raises:
        ValueError: an operand has no axis, or the split axis does not divide into equal parts.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> f = lambda x: gradix.lax.all_to_all(x, "i", 0, 0)
        >>> gradix.vmap(f, axis_name="i")(jnp.array([[0, 1], [2, 3]]))
        Array([[0, 2],
               [1, 3]], dtype=int32)
    """
    names = names_of(axis_name)
    groups = groups_of(axis_index_groups, names)
    n = len(groups[0]) if groups else size_of(names)
    params = {"axes": names, "axis_size": n, "axis_index_groups": groups}

    def deal(a, split, concat):
        if len(names) == 1:
            return bind_checked(all_to_all_p, a, {**params, "split_axis": split, "concat_axis": concat})
        all_to_all_p.abstract(a.aval, **params, split_axis=split, concat_axis=concat)
        shape, sizes = a.aval.shape, [size_of(name) for name in names]
        a = reshape(a, (*shape[:split], *sizes, *shape[split + 1 :]))
        for k, (name, size) in enumerate(zip(names, sizes), split):
            a = bind(
                all_to_all_p, (a,), {**params, "axes": (name,), "axis_size": size, "split_axis": k, "concat_axis": k}
            )
        return move_axis(reshape(a, shape), split, concat)

    def exchange(a):
        if not a.aval.ndim:
            raise ValueError("all_to_all needs an operand with an axis to split, got a scalar.")
        split = canonical_axis(split_axis, a.aval.ndim, "all_to_all split_axis")
        concat = canonical_axis(concat_axis, a.aval.ndim, "all_to_all concat_axis")
        if not tiled:
            return deal(a, split, concat)
        shape = a.aval.shape
        if shape[split] % n:
            raise ValueError(f"all_to_all: axis {split} of size {shape[split]} does not divide into {n} equal parts.")
        dealt = reshape(a, (*shape[:split], n, shape[split] // n, *shape[split + 1 :]))
        got = deal(dealt, split, concat)
        full = got.aval.shape
        return reshape(got, (*full[:concat], full[concat] * full[concat + 1], *full[concat + 2 :]))

    return map_arrays("all_to_all", exchange, x, names)


def ppermute(x: Any, axis_name: Hashable, perm: Sequence[Sequence[int]]) -> Any:
    """Send values along pairs (source, target) of indices; members without a source get zeros.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the name of the mapped axis.
        perm: pairs (source, target) of indices along it.

    Raises:
        ValueError: two pairs share a source or a target.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> shift = [(0, 1), (1, 2), (2, 0)]
        >>> gradix.vmap(lambda x: gradix.lax.ppermute(x, "i", shift), axis_name="i")(jnp.arange(3))
        Array([2, 0, 1], dtype=int32)
    """
    names, n = names_of(axis_name), size_of(axis_name)
    perm = tuple((int(s), int(t)) for s, t in perm)
    sources, targets = [s for s, _ in perm], [t for _, t in perm]
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError(f"ppermute sources and destinations must be unique, got {perm}.")
    if any(not 0 <= i < n for i in (*sources, *targets)):
        raise ValueError(f"ppermute indices must be within [0, {n}), the size of axis {axis_name!r}; got {perm}.")
    if len(names) > 1:
        return _permuted(x, names, n, perm)
    params = {"axes": names, "perm": perm}
    return map_arrays("ppermute", lambda a: bind(ppermute_p, (a,), params), x, names)


def _permuted(x, names, n: int, perm):
    """`ppermute` by joint indices: each member picks its sender's value from all values."""
    source, has = np.zeros(n, np.int32), np.zeros(n, bool)
    for s, t in perm:
        source[t], has[t] = s, True
    here = axis_index(names)
    mine, receives = (dynamic_index_in_dim(as_array(table), here, keepdims=False) for table in (source, has))

    def pick(a):
        got = dynamic_index_in_dim(a, mine, keepdims=False)
        mask = broadcast_in_dim(receives, got.aval.shape, ()) if got.aval.shape else receives
        return select_n(mask, zeros_like_array(got), got)

    return map_arrays("ppermute", pick, all_gather(x, names))


def pshuffle(x: Any, axis_name: Hashable, perm: Sequence[int]) -> Any:
    """Member `i` receives the value of member `perm[i]`.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        perm: for each member the index of the one whose value it receives.

    Raises:
        ValueError: `perm` is not a permutation of the indices of the axis.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3))
        Array([2, 0, 1], dtype=int32)
    """
    if sorted(perm) != list(range(size_of(axis_name))):
        raise ValueError(f"pshuffle needs a permutation of range({size_of(axis_name)}), got {perm}.")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def pbroadcast(x: Any, axis_name: Hashable, source: int) -> Any:
    """The value of member `source`, for every member.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        source: the index of the member whose value all receive.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3))
        Array([1, 1, 1], dtype=int32)
    """
    here = eq(axis_index(axis_name), as_array(np.int32(source)))

    def one(a):
        mask = broadcast_in_dim(here, a.aval.shape, ()) if a.aval.shape else here
        return psum(select_n(mask, zeros_like_array(a), a), axis_name)

    return map_arrays("pbroadcast", one, x)


def pswapaxes(
    x: Any, axis_name: Hashable, axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any:
    """Swap a named axis with positional axis `axis`, of the same size.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        axis: the positional axis.
        axis_index_groups: lists of members' indices that partition the axis; each group is on its
            own. None is one group.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[0, 1], [2, 3]]))
        Array([[0, 2],
               [1, 3]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)
