"""Communication over named axes: sums, extremes, gathers, permutations, and the index along the axis."""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.effects import NamedAxisEffect
from gradix._core.primitive import MeshTraits, Primitive
from gradix._core.trace import axis_size_of, bind, install_vary, state
from gradix._ops.arithmetic import div, mul
from gradix._ops.basis import broadcast_in_dim, free_axes, move_axis, reduce_sum, to_axis
from gradix._ops.comparison import eq
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import iota, zeros_like_array
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from gradix._ops.indexing.gather import index_take
from gradix._ops.operands import scalar_like
from gradix._ops.reductions import reduce_max, reduce_min
from gradix._ops.select import select_n
from gradix._ops.shape import reshape

_I32 = np.dtype("int32")


class Collective(Primitive):
    """Communicates over the axes named in parameter `axes` (strings bound by vmap; ints are positional)."""

    effectful = True
    named = True

    def needs_varying(self, params):
        return frozenset(self.names(params))

    def names(self, params):
        return tuple([a for a in params["axes"] if not isinstance(a, int)])

    def effects(self, params):
        return frozenset(map(NamedAxisEffect, self.names(params)))

    def lower(self, em, out, *args, axes, **params):
        names = tuple([a for a in axes if not isinstance(a, int)])
        if em.manual is None or not em.manual.axes.issuperset(names):
            raise NameError(
                f"unbound axis name: {names[0]}. {self.name} runs inside vmap(..., "
                f"axis_name={names[0]!r}), or shard_map "
                "over a mesh with that axis."
            )
        return self.communicate(em, out, *args, axes=axes, names=names, **params)

    def communicate(self, em, out, *args, axes, names, **params):
        """The operation among the devices along mesh axes."""
        raise NotImplementedError

    def show(self, params):
        return {**{k: v for k, v in params.items() if k != "axes"}, "axis_name": params["axes"]}

    def batch(self, axis, args, in_axes, *, axes, **params):
        if axis.name is None or axis.name not in axes:
            return self.batch_other(axis, args, in_axes, axes=axes, **params)
        if len(axes) > 1 and not self.joins:
            raise NotImplementedError(
                f"{self.name} over several named axes {axes} at once. Apply it over one after "
                "another."
            )
        rest = tuple([a for a in axes if a != axis.name])
        return self.batch_own(axis, args, in_axes, rest, **params)

    joins = False

    def batch_other(self, axis, args, in_axes, **params):
        """Another axis is being mapped: keep it in front."""
        (x,), (a,) = args, in_axes
        return bind(self, (move_axis(x, a, 0),), self.shifted(params)), 0

    def shifted(self, params) -> dict:
        """The parameters when the operand gains a leading axis."""
        return params

    def batch_own(self, axis, args, in_axes, rest, **params):
        raise NotImplementedError


class Reduction(Collective):
    """psum, pmax, pmin: `combine(x, axes)` reduces over positional axes."""

    joins = True

    def __init__(self, name, combine, repeated, hlo):
        super().__init__(name)
        self.combine, self.repeated, self.hlo = combine, repeated, hlo

    def varying(self, vma, params, tracked):
        return (
            vma if params["axis_index_groups"] is not None else vma - frozenset(self.names(params))
        )

    def communicate(self, em, out, x, *, axes, names, axis_index_groups=None):
        places = [a for a in axes if isinstance(a, int)]
        if places:
            x = em.expand(lambda v: self.combine(v, tuple(places)), x)[0]
        if not names or not x.aval.size:
            return x
        return em.all_reduce(x, names, axis_index_groups, self.hlo)

    def abstract(self, x, *, axes, axis_index_groups=None):
        kept = [n for i, n in enumerate(x.shape) if i not in axes]
        return make_aval(tuple(kept), x.dtype, x.weak_type)

    def jvp(self, primals, tangents, **params):
        if self is psum_p:
            return bind(self, primals, params), bind(self, tuple(tangents), params)
        (x,) = primals
        y = bind(self, primals, params)
        return y, self.winners(x, tangents[0], y, params)

    def winners(self, x, t, y, params):
        """The mean tangent of the examples that attain the extreme."""
        from_equal = convert_element_type(eq(x, y), t.aval.dtype)
        add_up = reduction_for(psum_p, params)
        total = bind(add_up, (mul(t, from_equal),), params)
        return div(total, bind(add_up, (from_equal,), params))

    def transpose(self, ct, x, **params):
        return [bind(psum_p, (ct,), params)]

    def batch_own(self, axis, args, in_axes, rest, axis_index_groups=None):
        (x,), (a,) = args, in_axes
        if axis_index_groups is not None:
            return self._in_groups(axis, x, a, rest, axis_index_groups)
        if a is None:
            out = self.repeated(x, axis.size)
        else:
            out = self.combine(x, (a,))
        return bind(self, (out,), {"axes": rest, "axis_index_groups": None}) if rest else out, None

    def _in_groups(self, axis, x, a, rest, groups):
        groups_first = _by_group(to_axis(axis.size, x, a, 0), groups)
        total = self.combine(groups_first, (1,))
        spread = broadcast_in_dim(
            total, groups_first.aval.shape, free_axes(groups_first.aval.ndim, (1,))
        )
        out = _from_groups(spread, groups)
        return bind(self, (out,), {"axes": rest, "axis_index_groups": None}) if rest else out, 0

    def show(self, params):
        return {"axes": params["axes"], "axis_index_groups": params["axis_index_groups"]}


class InvariantSum(Reduction):
    """The sum of a value that varies over mesh axes, as one that no longer does."""

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), bind(self, tuple(tangents), params)

    def transpose(self, ct, x, **params):
        return [bind(pvary_p, (ct,), {"axes": params["axes"]})]

    def show(self, params):
        return {"axes": params["axes"]}


class Vary(Collective):
    """The operand, as a value that may vary over more mesh axes: each device's part of its cotangent is one summand."""

    mesh = MeshTraits(mixes=True)
    effectful = named = False  # nothing is communicated
    joins = True

    def abstract(self, x, *, axes):
        return x

    def varying(self, vma, params, tracked):
        return vma | frozenset(params["axes"]) & tracked

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), bind(self, tuple(tangents), params)

    def transpose(self, ct, x, *, axes):
        return [bind(psum_invariant_p, (ct,), {"axes": axes, "axis_index_groups": None})]

    def batch(self, axis, args, in_axes, *, axes):
        return bind(self, args, {"axes": axes}), in_axes[0]

    def lower(self, em, out, x, *, axes):
        return x

    def show(self, params):
        return params


class Move(Collective):
    """Linear collectives of one operand; the adjoint is another of them."""

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), bind(self, tuple(tangents), params)


class AllGather(Move):
    def communicate(
        self,
        em,
        out,
        x,
        *,
        axes,
        names,
        all_gather_dimension,
        axis_size,
        tiled,
        axis_index_groups=None,
    ):
        at = all_gather_dimension
        if not tiled:
            x = em.reshape(x, (*x.aval.shape[:at], 1, *x.aval.shape[at:]))
        return em.all_gather(out, x, at, names, axis_index_groups)

    def abstract(self, x, *, axes, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
        shape = list(x.shape)
        if tiled:
            shape[all_gather_dimension] *= axis_size
        else:
            shape.insert(all_gather_dimension, axis_size)
        return make_aval(tuple(shape), x.dtype, x.weak_type)

    def transpose(
        self, ct, x, *, axes, all_gather_dimension, axis_size, tiled, axis_index_groups=None
    ):
        return [
            bind(
                reduce_scatter_p,
                (ct,),
                {
                    "axes": axes,
                    "scatter_dimension": all_gather_dimension,
                    "axis_size": axis_size,
                    "tiled": tiled,
                    "axis_index_groups": axis_index_groups,
                },
            )
        ]

    def shifted(self, params):
        return {**params, "all_gather_dimension": params["all_gather_dimension"] + 1}

    def batch_own(
        self,
        axis,
        args,
        in_axes,
        rest,
        *,
        all_gather_dimension,
        axis_size,
        tiled,
        axis_index_groups,
    ):
        (x,), (a,) = args, in_axes
        groups, out_axis = axis_index_groups, None
        if groups is not None:
            x, out_axis = _grouped(axis, x, a, groups), 0
            place = all_gather_dimension + 1
            out = move_axis(x, 1, place)
        else:
            place = all_gather_dimension
            out = to_axis(axis.size, x, a, place)
        if tiled:
            shape = out.aval.shape
            out = reshape(out, (*shape[:place], axis_size * shape[place + 1], *shape[place + 2 :]))
        return out, out_axis


class AllGatherInvariant(AllGather):
    """The members' values, which are then the same for all."""

    def varying(self, vma, params, tracked):
        return vma - frozenset(self.names(params))

    def transpose(
        self, ct, x, *, axes, all_gather_dimension, axis_size, tiled, axis_index_groups=None
    ):
        here = convert_element_type(bind(axis_index_p, (), {"axes": axes}), _I32)
        if not tiled:
            return [dynamic_index_in_dim(ct, here, all_gather_dimension, keepdims=False)]
        size = ct.aval.shape[all_gather_dimension] // axis_size
        return [
            dynamic_slice_in_dim(ct, mul(here, scalar_like(here, size)), size, all_gather_dimension)
        ]


def _grouped(axis, x, a, groups):
    """For each example, the values of its group: shape (size, group size, ...)."""
    x = to_axis(axis.size, x, a, 0)
    members = {i: list(g) for g in groups for i in g}
    table = np.array([members[i] for i in range(axis.size)])
    return reshape(take(x, table.reshape(-1)), (*table.shape, *x.aval.shape[1:]))


class ReduceScatter(Move):
    def communicate(
        self,
        em,
        out,
        x,
        *,
        axes,
        names,
        scatter_dimension,
        axis_size,
        tiled,
        axis_index_groups=None,
    ):
        at, shape = scatter_dimension, list(x.aval.shape)
        shape[at] //= axis_size
        part = em.reduce_scatter(
            make_aval(tuple(shape), out.dtype), x, at, names, axis_index_groups
        )
        return part if tiled else em.reshape(part, out.shape)

    def abstract(self, x, *, axes, scatter_dimension, axis_size, tiled, axis_index_groups=None):
        shape, n = list(x.shape), x.shape[scatter_dimension]
        if tiled:
            if n % axis_size:
                raise ValueError(
                    f"psum_scatter: dimension {scatter_dimension} of size {n} does not divide into "
                    f"{axis_size} equal parts. Pad it."
                )
            shape[scatter_dimension] = n // axis_size
        else:
            if n != axis_size:
                raise ValueError(
                    f"psum_scatter: dimension {scatter_dimension} must have the axis' size {axis_size}, "
                    f"got {n}. Use tiled=True to split it in equal parts."
                )
            del shape[scatter_dimension]
        return make_aval(tuple(shape), x.dtype, x.weak_type)

    def transpose(
        self, ct, x, *, axes, scatter_dimension, axis_size, tiled, axis_index_groups=None
    ):
        return [
            bind(
                all_gather_p,
                (ct,),
                {
                    "axes": axes,
                    "all_gather_dimension": scatter_dimension,
                    "axis_size": axis_size,
                    "tiled": tiled,
                    "axis_index_groups": axis_index_groups,
                },
            )
        ]

    def shifted(self, params):
        return {**params, "scatter_dimension": params["scatter_dimension"] + 1}

    def batch_own(
        self, axis, args, in_axes, rest, *, scatter_dimension, axis_size, tiled, axis_index_groups
    ):
        (x,), (a,) = args, in_axes
        if axis_index_groups is not None:
            return self._in_groups(
                to_axis(axis.size, x, a, 0), axis_index_groups, scatter_dimension + 1, tiled
            ), 0
        total = reduce_sum(to_axis(axis.size, x, a, 0), (0,))
        if tiled:
            shape = total.aval.shape
            total = reshape(
                total,
                (
                    *shape[:scatter_dimension],
                    axis_size,
                    shape[scatter_dimension] // axis_size,
                    *shape[scatter_dimension + 1 :],
                ),
            )
        return total, scatter_dimension

    def _in_groups(self, x, groups, place: int, tiled: bool):
        """Each group's sum, of which member j keeps part j."""
        total = reduce_sum(_by_group(x, groups), (1,))  # (groups, ...)
        size, shape = len(groups[0]), total.aval.shape
        if tiled:
            total = reshape(
                total, (*shape[:place], size, shape[place] // size, *shape[place + 1 :])
            )
        return _from_groups(move_axis(total, place, 1), groups)


def _by_group(x, groups):
    """The rows of `x` as (groups, members of each, ...)."""
    order = np.array(groups)
    return reshape(take(x, order.reshape(-1)), (*order.shape, *x.aval.shape[1:]))


def _from_groups(x, groups):
    """Back from (groups, members of each, ...) to rows."""
    rows = reshape(x, (x.aval.shape[0] * x.aval.shape[1], *x.aval.shape[2:]))
    return take(rows, np.argsort(np.array(groups).reshape(-1)))


class AllToAll(Move):
    """The operand's `split_axis` is dealt out to the members; what they send is stacked at `concat_axis`."""

    def communicate(
        self, em, out, x, *, axes, names, split_axis, concat_axis, axis_size, axis_index_groups=None
    ):
        # Exchanged in place of the axis that is dealt out, which then moves: XLA's own
        # concatenation keeps no axis of its own.
        got = em.all_to_all(x, split_axis, axis_size, names, axis_index_groups)
        return em.expand(lambda v: move_axis(v, split_axis, concat_axis), got)[0]

    def abstract(self, x, *, axes, split_axis, concat_axis, axis_size, axis_index_groups=None):
        shape = list(x.shape)
        if shape[split_axis] != axis_size:
            raise ValueError(
                f"all_to_all: axis {split_axis} must have the size {axis_size} of the named axis, got "
                f"{shape[split_axis]}. Use tiled=True to split it in equal parts."
            )
        del shape[split_axis]
        shape.insert(concat_axis, axis_size)
        return make_aval(tuple(shape), x.dtype, x.weak_type)

    def transpose(self, ct, x, *, axes, split_axis, concat_axis, axis_size, axis_index_groups=None):
        return [
            bind(
                self,
                (ct,),
                {
                    "axes": axes,
                    "split_axis": concat_axis,
                    "concat_axis": split_axis,
                    "axis_size": axis_size,
                    "axis_index_groups": axis_index_groups,
                },
            )
        ]

    def shifted(self, params):
        return {
            **params,
            "split_axis": params["split_axis"] + 1,
            "concat_axis": params["concat_axis"] + 1,
        }

    def batch_own(
        self, axis, args, in_axes, rest, *, split_axis, concat_axis, axis_size, axis_index_groups
    ):
        (x,), (a,) = args, in_axes
        # sender first, receivers at split_axis + 1
        x = to_axis(axis.size, x, a, 0)
        if axis_index_groups is not None:
            # (group, receiver, sender, ...)
            dealt = move_axis(_by_group(x, axis_index_groups), split_axis + 2, 1)
            return move_axis(_from_groups(dealt, axis_index_groups), 1, concat_axis + 1), 0
        receivers_first = move_axis(x, split_axis + 1, 0)  # (receiver, sender, ...)
        return move_axis(receivers_first, 1, concat_axis + 1), 0


class Permute(Move):
    """Each pair (source, target) of `perm` sends; who receives nothing gets zeros."""

    def communicate(self, em, out, x, *, axes, names, perm):
        return em.collective_permute(x, names, perm)

    def abstract(self, x, *, axes, perm):
        return x

    def transpose(self, ct, x, *, axes, perm):
        return [bind(self, (ct,), {"axes": axes, "perm": tuple([(t, s) for s, t in perm])})]

    def batch_own(self, axis, args, in_axes, rest, *, perm):
        (x,), (a,) = args, in_axes
        x = to_axis(axis.size, x, a, 0)
        source = np.zeros(axis.size, np.int32)
        has = np.zeros(axis.size, bool)
        for s, t in perm:
            source[t], has[t] = s, True
        out = take(x, source)
        if has.all():
            return out, 0
        mask = broadcast_in_dim(as_array(has), out.aval.shape, (0,))
        return select_n(mask, zeros_like_array(out), out), 0


class AxisIndex(Collective):
    def needs_varying(self, params):
        return frozenset()

    def varying(self, vma, params, tracked):
        return frozenset(params["axes"]) & tracked

    def communicate(self, em, out, *, axes, names):
        return em.index_along(names[0])

    def abstract(self, *, axes):
        return make_aval((), _I32, False)

    def jvp(self, primals, tangents, **params):
        return bind(self, (), params), None

    def batch(self, axis, args, in_axes, *, axes):
        return iota(_I32, axis.size), 0

    def show(self, params):
        return {"axis_name": params["axes"][0]}


def take(x, indices):
    """The rows of `x` at these indices, known to be within bounds."""
    return index_take(x, (as_array(np.asarray(indices, np.int32)),), (0,))


def _times(x, n):
    return mul(x, scalar_like(x, n))


psum_p = Reduction("psum", reduce_sum, _times, "add")
pmax_p = Reduction("pmax", lambda x, axes: reduce_max(x, axes), lambda x, n: x, "maximum")
pmin_p = Reduction("pmin", lambda x, axes: reduce_min(x, axes), lambda x, n: x, "minimum")
psum_invariant_p, pvary_p = InvariantSum("psum_invariant", reduce_sum, _times, "add"), Vary("pvary")
all_gather_invariant_p = AllGatherInvariant("all_gather_invariant")
all_gather_p, reduce_scatter_p = AllGather("all_gather"), ReduceScatter("reduce_scatter")
all_to_all_p, ppermute_p, axis_index_p = (
    AllToAll("all_to_all"),
    Permute("ppermute"),
    AxisIndex("axis_index"),
)


def reduction_for(prim, params):
    """The reduction to apply: of values whose types tell where they vary, the sum is one that no longer does."""
    names = prim.names(params)
    tracked = names and params["axis_index_groups"] is None and state.manual.issuperset(names)
    return psum_invariant_p if prim is psum_p and tracked else prim


def vary(x, names):
    """`x` as a value that varies over these mesh axes too."""
    return bind(pvary_p, (x,), {"axes": tuple(sorted(names, key=str))})


install_vary(vary)


def names_of(axis_name) -> tuple:
    """An axis name, or a tuple of them, as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def size_of(axis_name) -> int:
    """The number of members along one or more named axes."""
    return prod([axis_size_of(n) for n in names_of(axis_name)])
