"""Collectives on pytrees: psum, pmean, pmax, pmin, and the index and the size of a named axis."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from gradix._api.boundary import arrays
from gradix._base import config as _config
from gradix._base.tree import tree_flatten as flatten
from gradix._core.array import as_array
from gradix._core.aval import Reduced, Unreduced, reduced_axes, unreduced_axes
from gradix._core.divisions import tracked_axes
from gradix._core.operators import Array
from gradix._core.trace import bind, state
from gradix._ops.arithmetic import add, div, mul
from gradix._ops.collectives import (
    axis_index_p,
    names_of,
    pmax_p,
    pmin_p,
    psum_p,
    reduction_for,
    size_of,
    unreduced_psum_p,
    vary,
)
from gradix._ops.convert import convert_element_type
from gradix._ops.operands import scalar_like

_options = _config.state


def map_arrays(name: str, function, x, names=(), *, sums: bool = False):
    """The tree with a collective over named axes applied to each array.

    Raises:
        ValueError: an array is reduced over one of the axes, along which its parts are equal; or it is
            still to be summed over one, and the collective does not do that (`sums`).
    """
    leaves, tree = flatten(x)
    xs = arrays(name, leaves, tree, "x")
    for a in xs:
        held = [n for n in names if n in reduced_axes(a.aval.vma)]
        if held:
            raise ValueError(
                f"{name} cannot take an array that is reduced over the axes {held}, got "
                f"{a.aval.str_short()}: its parts along them are equal. Leave out {name}, or say "
                f"that they are parts of their own, with pcast(x, {held[0]!r}, to='varying')."
            )
        summed = [n for n in names if n in unreduced_axes(a.aval.vma)]
        if summed and not sums:
            raise ValueError(
                f"{name} cannot take an array that is still to be summed over the axes {summed}, got "
                f"{a.aval.str_short()}: {name} of its parts says nothing of their sum. Sum it first, with psum or "
                "psum_scatter without axis_index_groups."
            )
    return tree.unflatten([function(a) for a in xs])


def bind_checked(prim, x, params):
    """Bind after a check of the shape, which the batch rule would omit."""
    prim.abstract(x.aval, **params)
    return bind(prim, (x,), params)


def groups_of(groups, names, may_differ: bool = False):
    """The groups, of members numbered over all named axes; `may_differ` allows them different sizes."""
    if groups is None:
        return None
    if not names or len(names) > 1 and not state.manual.issuperset(names):
        raise ValueError(f"axis_index_groups needs one named axis, or axes of shard_map, got {names}.")
    groups = tuple([tuple(map(int, g)) for g in groups])
    if len({len(g) for g in groups}) > 1 and not may_differ:
        raise NotImplementedError(
            f"axis_index_groups of different sizes, {[len(g) for g in groups]}, are not "
            "supported: each group's result must have one type. Pad the groups."
        )
    if sorted(i for g in groups for i in g) != list(range(size_of(names))):
        raise ValueError(
            f"axis_index_groups must cover all indices of {' × '.join(map(repr, names))} exactly once: got "
            f"{groups} for size {size_of(names)}."
        )
    return groups


def _reduction(name: str, collective, x, axis_name, axis_index_groups):
    names, placed = (names_of(axis_name), tuple([n for n in names_of(axis_name) if isinstance(n, int)]))
    names = tuple([n for n in names if not isinstance(n, int)])
    size_of(names)
    groups = groups_of(axis_index_groups, names, may_differ=True)
    tracked = tuple([n for n in names if n in state.manual])

    def reduce(a):
        if placed:
            a = collective.combine(a, tuple([p % a.aval.ndim for p in placed]))
        summed = unreduced_axes(a.aval.vma)
        rest = tuple([n for n in tracked if n not in summed])
        for part in (tuple([n for n in names if n not in tracked]), rest):
            if part:
                params = {"axes": part, "axis_index_groups": groups}
                a = bind(reduction_for(collective, params), (a,), params)
        own = tuple([n for n in tracked if n in summed])
        return bind(unreduced_psum_p, (a,), {"axes": own, "axis_index_groups": None}) if own else a

    return map_arrays(name, reduce, x, names, sums=collective is psum_p and groups is None)


def psum(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The sum over a named axis; for a Python number, its product with the size of the axis.

    Args:
        x: arrays in a pytree.
        axis_name: a name bound by `vmap(..., axis_name=...)`, or a tuple of them.
        axis_index_groups: lists of members' indices that partition the axis; each group has its own
            sum. None is one group.

    Returns:
        Arrays of the shapes and dtypes of `x`; booleans are summed as int32.

    Raises:
        NameError: no axis of this name is in scope.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.psum(x, "i"), axis_name="i")(jnp.arange(3.0))
        Array([3., 3., 3.], dtype=float32)
    """
    if isinstance(x, (int, float)) and not isinstance(x, bool) and axis_index_groups is None:
        return x * size_of(axis_name)
    leaves, tree = flatten(x)
    leaves = [
        convert_element_type(a, np.dtype("int32")) if a.aval.dtype == bool else a
        for a in arrays("psum", leaves, tree, "x")
    ]
    return _reduction("psum", psum_p, tree.unflatten(leaves), axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The mean over a named axis.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        axis_index_groups: lists of members' indices that partition the axis; each group is on its
            own. None is one group.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
        Array([1., 1., 1.], dtype=float32)
    """
    n = size_of(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)

    def mean(a):
        a = as_array(a)
        if a.aval.dtype.kind in "iub":
            a = convert_element_type(a, np.dtype("float32"))
        return div(a, scalar_like(a, n))

    return map_arrays("pmean", mean, total)


def pmax(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The maximum over a named axis.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        axis_index_groups: lists of members' indices that partition the axis; each group is on its
            own. None is one group.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.pmax(x, "i"), axis_name="i")(jnp.arange(3.0))
        Array([2., 2., 2.], dtype=float32)
    """
    return _reduction("pmax", pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The minimum over a named axis.

    Args:
        x: an array, or a pytree of them, of any shape.
        axis_name: the name of the axis, as given to `vmap`, `pmap` or a mesh, or a tuple of names.
        axis_index_groups: lists of members' indices that partition the axis; each group is on its
            own. None is one group.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.pmin(x, "i"), axis_name="i")(jnp.arange(3.0))
        Array([0., 0., 0.], dtype=float32)
    """
    return _reduction("pmin", pmin_p, x, axis_name, axis_index_groups)


def axis_index(axis_name: Hashable) -> Array:
    """The index of this example along a named axis, an int32 scalar.

    Args:
        axis_name: the name of the axis, or a tuple of names, for which the index is row-major.

    Raises:
        NameError: no axis of this name is in scope.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.axis_index("i"), axis_name="i")(jnp.zeros(3))
        Array([0, 1, 2], dtype=int32)
    """
    total = None
    for name in names_of(axis_name):
        n = size_of(name)
        index = bind(axis_index_p, (), {"axes": (name,)})
        total = index if total is None else add(mul(total, scalar_like(total, n)), index)
    return as_array(np.int32(0)) if total is None else total


def axis_size(axis_name: Hashable) -> int:
    """The number of examples along a named axis, a Python int.

    Args:
        axis_name: the name of the axis, or a tuple of names, whose sizes are multiplied.

    Raises:
        NameError: no axis of this name is in scope.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: x * gradix.lax.axis_size("i"), axis_name="i")(jnp.ones(3))
        Array([3., 3., 3.], dtype=float32)
    """
    return size_of(axis_name)


def pcast(x: Any, axis_name: Hashable, *, to: str) -> Any:
    """`x` with another type inside of `shard_map`: one that says how it varies over mesh axes.

    Args:
        x: arrays in a pytree.
        axis_name: the mesh axis, or a tuple of them.
        to: "varying" for values that may differ along the axes; "unreduced" for summands, which
            `psum` or unreduced `out_specs` sum; "reduced" for values that are equal along the
            axes, of whose cotangent each device has a summand.

    Raises:
        ValueError: `x` varies over one of the axes already, or is reduced over one and shall be
            so again, or unreduced; it is unreduced over one; it shall become unreduced over one along which
            it is equal; `to` is another word; or no `shard_map` is around.
        TypeError: `axis_name` is neither a name nor a tuple of them.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.sharding import Mesh, PartitionSpec as P
        >>> ones = lambda x: x + gradix.lax.pcast(jnp.ones(()), "i", to="varying")
        >>> mesh = Mesh(gradix.devices()[:1], "i")
        >>> gradix.shard_map(ones, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(jnp.zeros(2))
        Array([1., 1.], dtype=float32)
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(
            f"pcast to={to!r} is not possible; write to='varying', 'unreduced' or 'reduced'. To make values "
            "equal along the axis, sum them with psum."
        )
    if not isinstance(axis_name, (str, tuple)):
        raise TypeError(f"pcast: axis_name must be a tuple or a str, got {axis_name!r}.")
    names = names_of(axis_name)
    try:
        size_of(names)
    except NameError as e:
        mesh = _options.gradix_mesh
        if mesh is not None and mesh.manual_axes:
            raise
        if mesh is not None and set(names) <= set(mesh.axis_names) and not tracked_axes(mesh, names):
            return x
        raise ValueError(f"pcast should be called inside of gradix.shard_map: {e}") from None

    def cast(a):
        wanted = frozenset(names) & state.manual
        held, summed = wanted & reduced_axes(a.aval.vma), wanted & unreduced_axes(a.aval.vma)
        if summed or to != "varying" and held or to == "reduced" and wanted & a.aval.vma:
            have = "unreduced" if summed else "reduced" if held else "varying"
            raise ValueError(
                f"Unsupported pcast from={have!r}, to={to!r}: {a.aval.str_short()} over "
                f"{sorted(map(str, summed or held or wanted))}. lax.pcast can only accept axis_name over which a value "
                "is equal for all; sum it first with lax.psum."
            )
        if to == "reduced":
            return vary(a, frozenset(map(Reduced, wanted)))
        if to == "unreduced":
            equal = wanted - a.aval.vma
            if equal:
                raise ValueError(
                    f"Unsupported pcast from='invarying', to='unreduced': {a.aval.str_short()} is equal along "
                    f"{sorted(map(str, equal))}, so that its sum would be a multiple of it. If each device shall add "
                    "it, apply pcast(x, ..., to='varying') first."
                )
            return vary(a, frozenset(map(Unreduced, wanted)))
        if a.aval.vma & wanted:
            raise ValueError(
                f"Unsupported pcast from='varying', to='varying': {a.aval.str_short()} varies over "
                f"{sorted(map(str, a.aval.vma & wanted))} already. Leave these axes out."
            )
        return vary(a, wanted) if wanted else a

    return map_arrays("pcast", cast, x)


def pvary(x: Any, axis_name: Hashable) -> Any:
    """`x` as a value that may vary over mesh axes; the former name of `pcast(..., to="varying")`.

    Args:
        x: arrays in a pytree.
        axis_name: the mesh axis, or a tuple of them.

    Raises:
        ValueError: `x` varies over one of the axes already.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(lambda x: gradix.lax.pvary(x, "i"), axis_name="i")(jnp.arange(2))
        Array([0, 1], dtype=int32)
    """
    return pcast(x, axis_name, to="varying")
