"""Communication over named axes: the base class, psum, pmax, pmin, pvary and axis_index."""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core import seams
from gradix._core.array import as_array
from gradix._core.aval import Reduced, Unreduced, make_aval, reduced_axes, unreduced_axes
from gradix._core.divisions import entries
from gradix._core.effects import NamedAxisEffect
from gradix._core.primitive import MeshTraits, Primitive
from gradix._core.trace import axis_size_of, bind, state
from gradix._ops.arithmetic import div, mul
from gradix._ops.basis import broadcast_in_dim, free_axes, move_axis, reduce_sum, to_axis
from gradix._ops.comparison import eq
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import iota, zeros_like_array
from gradix._ops.indexing.gather import index_take
from gradix._ops.operands import scalar_like
from gradix._ops.reductions import reduce_max, reduce_min
from gradix._ops.select import select_n
from gradix._ops.shape import reshape

_I32 = np.dtype("int32")


class Collective(Primitive):
    """A primitive that communicates over `axes`: names bound by vmap, or positional ints."""

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
                f"axis_name={names[0]!r}), or shard_map over a mesh with that axis."
            )
        return self.communicate(em, out, *args, axes=axes, names=names, **params)

    def communicate(self, em, out, *args, axes, names, **params):
        """Lower the operation between the devices along mesh axes."""
        raise NotImplementedError

    def show(self, params):
        return {**{k: v for k, v in params.items() if k != "axes"}, "axis_name": params["axes"]}

    def batch(self, axis, args, in_axes, *, axes, **params):
        if axis.name is None or axis.name not in axes:
            return self.batch_other(axis, args, in_axes, axes=axes, **params)
        if len(axes) > 1 and not self.joins:
            raise NotImplementedError(
                f"{self.name} over several named axes {axes} at once. Apply it over one after another."
            )
        rest = tuple([a for a in axes if a != axis.name])
        return self.batch_own(axis, args, in_axes, rest, **params)

    joins = False

    def batch_other(self, axis, args, in_axes, **params):
        """Batch over an axis that the collective does not name: keep the batch axis in front."""
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
        return vma if params["axis_index_groups"] is not None else vma - frozenset(self.names(params))

    def communicate(self, em, out, x, *, axes, names, axis_index_groups=None):
        places = [a for a in axes if isinstance(a, int)]
        if places:
            x = em.expand(lambda v: self.combine(v, tuple(places)), x)[0]
        if not names or not x.aval.size:
            return x
        return emit_all_reduce(em, x, names, axis_index_groups, self.hlo)

    def divide(self, mesh, avals, outs, params):
        return [tuple([e for i, e in enumerate(entries(avals[0])) if i not in params["axes"]])]

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
        if len({len(g) for g in groups}) > 1:
            raise NotImplementedError(
                f"axis_index_groups of different sizes, {[len(g) for g in groups]}, are for the devices of pmap and "
                "shard_map; vmap takes groups of one size. Reduce with gradix.ops.segment_sum outside of vmap."
            )
        groups_first = rows_by_group(to_axis(axis.size, x, a, 0), groups)
        total = self.combine(groups_first, (1,))
        spread = broadcast_in_dim(total, groups_first.aval.shape, free_axes(groups_first.aval.ndim, (1,)))
        out = rows_from_groups(spread, groups)
        return bind(self, (out,), {"axes": rest, "axis_index_groups": None}) if rest else out, 0

    def show(self, params):
        return {"axes": params["axes"], "axis_index_groups": params["axis_index_groups"]}


class InvariantSum(Reduction):
    """The sum over mesh axes, with a result type that no longer varies over them."""

    mesh = MeshTraits(sums="kept")

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), bind(self, tuple(tangents), params)

    def transpose(self, ct, x, **params):
        return [bind(pvary_p, (ct,), {"axes": params["axes"]})]

    def show(self, params):
        return {"axes": params["axes"]}


class UnreducedSum(InvariantSum):
    """The sum of the summands that a type says are still to be added over mesh axes."""

    mesh = MeshTraits(mixes=True)

    def needs_varying(self, params):
        return frozenset()

    def varying(self, vma, params, tracked):
        return vma.difference(map(Unreduced, params["axes"]))

    def transpose(self, ct, x, **params):  # all devices have the cotangent
        return [bind(reduce_p, (ct,), {"axes": params["axes"]})]


class Vary(Collective):
    """The operand, with a type that varies over more mesh axes.

    Its transpose sums over these axes.
    """

    mesh = MeshTraits(mixes=True)

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

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


class Summand(Vary):
    """An operand that varies over mesh axes, as one of the summands of a value along these."""

    def varying(self, vma, params, tracked):
        axes = frozenset(params["axes"]) & tracked
        return (vma - axes).union(map(Unreduced, axes))

    def transpose(self, ct, x, *, axes):
        return [vary(ct, frozenset(axes) & reduced_axes(ct.aval.vma))]


class Release(Vary):
    """A reduced operand, with a type that varies, as do its cotangents, which are summands already."""

    def varying(self, vma, params, tracked):
        return vma.difference(map(Reduced, params["axes"])) | frozenset(params["axes"]) & tracked

    def transpose(self, ct, x, *, axes):
        missing = state.manual.intersection(axes) - ct.aval.vma - unreduced_axes(ct.aval.vma)
        return [as_summands(vary(ct, missing), axes)]


class Reduce(Vary):
    """An operand that is equal along mesh axes, with a reduced type; the transpose sums."""

    def varying(self, vma, params, tracked):
        return vma.union([Reduced(a) for a in params["axes"] if a in tracked])

    def transpose(self, ct, x, *, axes):
        return [bind(unreduced_psum_p, (as_summands(ct, axes),), {"axes": axes, "axis_index_groups": None})]


class Settle(Vary):
    """A reduced operand, with a type that is equal along mesh axes.

    The first device takes the cotangent, which all have, as the only summand.
    """

    def varying(self, vma, params, tracked):
        return vma.difference(map(Reduced, params["axes"]))

    def transpose(self, ct, x, *, axes):
        return [vary(ct, frozenset(map(Unreduced, state.manual.intersection(axes))))]


def rows_by_group(x, groups):
    """The rows of `x` as (groups, members of each, ...)."""
    order = np.array(groups)
    return reshape(take(x, order.reshape(-1)), (*order.shape, *x.aval.shape[1:]))


def rows_from_groups(x, groups):
    """The inverse of `rows_by_group`."""
    rows = reshape(x, (x.aval.shape[0] * x.aval.shape[1], *x.aval.shape[2:]))
    return take(rows, np.argsort(np.array(groups).reshape(-1)))


def emit_all_reduce(em, x, names, groups, hlo: str):
    """`x` reduced over the members of each group by an operation; each member gets the result."""
    region = em.reducer([x.aval.dtype], hlo)
    return em.op("all_reduce", x.aval, x, attrs=among(em, names, groups), regions=(region,))


def among(em, names, groups) -> str:
    """The attributes for the devices that communicate, numbered over all partitions."""
    return em.groups_along(names, groups) + ", use_global_device_ids"


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
unreduced_psum_p = UnreducedSum("unreduced_psum", reduce_sum, _times, "add")
summand_p = Summand("vary_unreduced_cast")
release_p, reduce_p, settle_p = Release("release"), Reduce("reduce_cast"), Settle("settle")
axis_index_p = AxisIndex("axis_index")


def reduction_for(prim, params):
    """The primitive for an operand that varies: psum becomes `psum_invariant` over axes that types track."""
    names = prim.names(params)
    tracked = names and params["axis_index_groups"] is None and state.manual.issuperset(names)
    return psum_invariant_p if prim is psum_p and tracked else prim


def vary(x, names):
    """`x` with a type that varies over these mesh axes too, or is unreduced or reduced over those marked.

    Raises:
        ValueError: it is still to be summed over one of them.
    """
    have = x.aval.vma
    summed = unreduced_axes(names) - unreduced_axes(have)
    names = names.difference(map(Unreduced, unreduced_axes(names)))
    wrong = unreduced_axes(have) & (names | reduced_axes(names))
    if wrong:
        raise ValueError(
            f"a value of type {x.aval.str_short()} is still to be summed over {sorted(map(str, wrong))}, so that its "
            "parts are neither values of their own nor equal along these axes. Sum it with gradix.lax.psum or "
            "gradix.lax.psum_scatter; with check_vma=False in shard_map, types say nothing of this."
        )
    held = reduced_axes(have) & names
    marked = reduced_axes(names) - have
    axes = [n for n in names if type(n) is not Reduced and n not in have and n not in held]
    lift = getattr(state.axes.get(axes[0]), "lift", None) if axes else None
    if lift is not None:  # a value from outside of a function that runs on parts in Python
        x = lift(x)
    for prim, of_this in ((release_p, held), (pvary_p, axes), (reduce_p, marked)):
        if of_this:
            x = bind(prim, (x,), {"axes": _ordered(of_this)})
    if not summed:
        return x
    x = _of_first(settle(x, summed), summed - x.aval.vma)
    return bind(summand_p, (x,), {"axes": _ordered(summed)})


def as_summands(ct, axes):
    """The cotangent of a value that is reduced over these axes, with the type of summands.

    Raises:
        TypeError: it is reduced, so that it is not known whether every device has a summand or the whole.
    """
    axes = state.manual.intersection(axes)
    wrong = axes & reduced_axes(ct.aval.vma)
    if wrong:
        raise TypeError(
            f"the cotangent of a value that is reduced over {sorted(map(str, wrong))} must be unreduced over these "
            f"axes, got {ct.aval.str_short()}. A rule of custom_vjp returns it for an operand of such a type: compute "
            "it from the cotangents that the rule gets, or write pcast(ct, ..., to='varying') if each device has a "
            "summand."
        )
    return vary(ct, frozenset(map(Unreduced, axes)))


def _ordered(axes) -> tuple:
    return tuple(sorted(axes, key=str))


def _of_first(x, axes):
    """`x` on the first device along each of these mesh axes, along which it is equal; zeros on the others."""
    for a in _ordered(axes):
        here = bind(axis_index_p, (), {"axes": (a,)})
        is_first = eq(here, scalar_like(here, 0))
        if x.aval.shape:
            is_first = broadcast_in_dim(is_first, x.aval.shape, ())
        x = select_n(is_first, zeros_like_array(x), x)
    return x


def settle(x, axes=None):
    """`x` with a type that is equal along the mesh axes over which it is reduced, or those of them in `axes`."""
    held = reduced_axes(x.aval.vma)
    held = held if axes is None else held & axes
    return bind(settle_p, (x,), {"axes": _ordered(held)}) if held else x


seams.vary = vary


def names_of(axis_name) -> tuple:
    """An axis name, or a tuple of them, as a tuple."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def size_of(axis_name) -> int:
    """The number of members along one or more named axes."""
    return prod([axis_size_of(n) for n in names_of(axis_name)])
