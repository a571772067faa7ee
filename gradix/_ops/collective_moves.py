"""Values moved along named axes: all_gather, reduce_scatter, all_to_all and ppermute."""

from __future__ import annotations

import numpy as np

from gradix._core.array import as_array
from gradix._core.aval import Reduced, Unreduced, make_aval
from gradix._core.primitive import MeshTraits
from gradix._core.trace import bind
from gradix._ops.arithmetic import mul
from gradix._ops.basis import broadcast_in_dim, move_axis, reduce_sum, to_axis
from gradix._ops.collectives import Collective, among, as_summands, axis_index_p, rows_by_group, rows_from_groups, take
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import zeros_like_array
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from gradix._ops.operands import scalar_like
from gradix._ops.select import select_n
from gradix._ops.shape import reshape

_I32 = np.dtype("int32")


class Move(Collective):
    """A linear collective of one operand, whose transpose is another of this family."""

    mesh = MeshTraits(sums="kept")

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), bind(self, tuple(tangents), params)


class AllGather(Move):
    def communicate(self, em, out, x, *, axes, names, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
        at = all_gather_dimension
        if not tiled:
            x = em.reshape(x, (*x.aval.shape[:at], 1, *x.aval.shape[at:]))
        attrs = f"all_gather_dim = {at} : i64, {among(em, names, axis_index_groups)}"
        return em.op("all_gather", out, x, attrs=attrs)

    def abstract(self, x, *, axes, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
        shape = list(x.shape)
        if tiled:
            shape[all_gather_dimension] *= axis_size
        else:
            shape.insert(all_gather_dimension, axis_size)
        return make_aval(tuple(shape), x.dtype, x.weak_type)

    def transpose(self, ct, x, *, axes, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
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

    def batch_own(self, axis, args, in_axes, rest, *, all_gather_dimension, axis_size, tiled, axis_index_groups):
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
    """As all_gather, with a result type that says that all members hold the same."""

    def varying(self, vma, params, tracked):
        return vma - frozenset(self.names(params))

    def transpose(self, ct, x, *, axes, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
        here = convert_element_type(bind(axis_index_p, (), {"axes": axes}), _I32)
        if not tiled:
            return [dynamic_index_in_dim(ct, here, all_gather_dimension, keepdims=False)]
        size = ct.aval.shape[all_gather_dimension] // axis_size
        return [dynamic_slice_in_dim(ct, mul(here, scalar_like(here, size)), size, all_gather_dimension)]


class AllGatherReduced(AllGather):
    """As all_gather, with a result type that is reduced: devices have summands of its cotangent."""

    def varying(self, vma, params, tracked):
        names = frozenset(self.names(params))
        return (vma - names).union(map(Reduced, names & tracked))

    def transpose(self, ct, x, *, axes, all_gather_dimension, **params):
        params = {"axes": axes, "scatter_dimension": all_gather_dimension, **params}
        return [bind(unreduced_reduce_scatter_p, (as_summands(ct, axes),), params)]


def _grouped(axis, x, a, groups):
    """For each example, the values of its group: shape (size, group size, ...)."""
    x = to_axis(axis.size, x, a, 0)
    members = {i: list(g) for g in groups for i in g}
    table = np.array([members[i] for i in range(axis.size)])
    return reshape(take(x, table.reshape(-1)), (*table.shape, *x.aval.shape[1:]))


class ReduceScatter(Move):
    def communicate(self, em, out, x, *, axes, names, scatter_dimension, axis_size, tiled, axis_index_groups=None):
        at, shape = scatter_dimension, list(x.aval.shape)
        shape[at] //= axis_size
        part = em.op(
            "reduce_scatter",
            make_aval(tuple(shape), out.dtype),
            x,
            attrs=f"scatter_dimension = {at} : i64, {among(em, names, axis_index_groups)}",
            regions=(em.reducer([out.dtype], "add"),),
        )
        return part if tiled else em.reshape(part, out.shape)

    def abstract(self, x, *, axes, scatter_dimension, axis_size, tiled, axis_index_groups=None):
        shape, n = list(x.shape), x.shape[scatter_dimension]
        if tiled:
            if n % axis_size:
                raise ValueError(
                    f"psum_scatter: dimension {scatter_dimension} of size {n} does not divide into "
                    f"{axis_size} equal parts. Pad it to a multiple of {axis_size}."
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

    def transpose(self, ct, x, *, axes, scatter_dimension, axis_size, tiled, axis_index_groups=None):
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

    def batch_own(self, axis, args, in_axes, rest, *, scatter_dimension, axis_size, tiled, axis_index_groups):
        (x,), (a,) = args, in_axes
        if axis_index_groups is not None:
            return self._in_groups(to_axis(axis.size, x, a, 0), axis_index_groups, scatter_dimension + 1, tiled), 0
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
        """Sum over each group; member j keeps part j of the sum."""
        total = reduce_sum(rows_by_group(x, groups), (1,))  # (groups, ...)
        size, shape = len(groups[0]), total.aval.shape
        if tiled:
            total = reshape(total, (*shape[:place], size, shape[place] // size, *shape[place + 1 :]))
        return rows_from_groups(move_axis(total, place, 1), groups)


class UnreducedReduceScatter(ReduceScatter):
    """As reduce_scatter, of summands that a type says are still to be added."""

    mesh = MeshTraits(mixes=True)

    def needs_varying(self, params):
        return frozenset()

    def varying(self, vma, params, tracked):
        names = frozenset(self.names(params))
        return vma.difference(map(Unreduced, names)) | names & tracked

    def transpose(self, ct, x, *, axes, scatter_dimension, **params):
        return [bind(all_gather_reduced_p, (ct,), {"axes": axes, "all_gather_dimension": scatter_dimension, **params})]


class AllToAll(Move):
    """Split `split_axis` among the members, and stack what each receives along `concat_axis`."""

    def communicate(self, em, out, x, *, axes, names, split_axis, concat_axis, axis_size, axis_index_groups=None):
        # XLA concatenates along an existing axis only. So this splits and concatenates along the
        # split axis, and moves it afterwards.
        got = em.op(
            "all_to_all",
            x.aval,
            x,
            attrs=f"split_dimension = {split_axis} : i64, concat_dimension = {split_axis} : i64, "
            f"split_count = {axis_size} : i64, {em.groups_along(names, axis_index_groups)}",
        )
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
        return {**params, "split_axis": params["split_axis"] + 1, "concat_axis": params["concat_axis"] + 1}

    def batch_own(self, axis, args, in_axes, rest, *, split_axis, concat_axis, axis_size, axis_index_groups):
        (x,), (a,) = args, in_axes
        # sender first, receivers at split_axis + 1
        x = to_axis(axis.size, x, a, 0)
        if axis_index_groups is not None:
            # (group, receiver, sender, ...)
            dealt = move_axis(rows_by_group(x, axis_index_groups), split_axis + 2, 1)
            return move_axis(rows_from_groups(dealt, axis_index_groups), 1, concat_axis + 1), 0
        receivers_first = move_axis(x, split_axis + 1, 0)  # (receiver, sender, ...)
        return move_axis(receivers_first, 1, concat_axis + 1), 0


class Permute(Move):
    """Send from source to target for each pair of `perm`.

    A member that receives nothing gets zeros.
    """

    def communicate(self, em, out, x, *, axes, names, perm):
        return em.op("collective_permute", x.aval, x, attrs=em.pairs_along(names, perm))

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


all_gather_invariant_p = AllGatherInvariant("all_gather_invariant")
all_gather_reduced_p = AllGatherReduced("all_gather_reduced")
all_gather_p, reduce_scatter_p = AllGather("all_gather"), ReduceScatter("reduce_scatter")
unreduced_reduce_scatter_p = UnreducedReduceScatter("unreduced_reduce_scatter")
all_to_all_p, ppermute_p = AllToAll("all_to_all"), Permute("ppermute")
