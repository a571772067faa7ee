"""`shard_map_p`: a program that each device of a mesh runs on its part of the arguments."""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._base import config as _config
from gradix._control.inner_programs import dependent
from gradix._core.aval import Reduced, Unreduced, located, make_aval, reduced_axes, seen, unreduced_axes
from gradix._core.divisions import entries, explicit_part, names_in, tracked_axes
from gradix._core.effects import MeshEffect, NamedAxisEffect
from gradix._core.jaxpr import ClosedJaxpr, axis_names, jaxprs_in_params
from gradix._core.mesh import AbstractMesh, AxisType, BaseMesh, Mesh
from gradix._core.named_sharding import NamedSharding, axes_of
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.sharding import PartitionSpec
from gradix._core.trace import bind, state
from gradix._ops.arithmetic import div
from gradix._ops.basis import broadcast_in_dim
from gradix._ops.collectives import psum_p, settle, size_of, vary
from gradix._ops.operands import scalar_like
from gradix._ops.shape import reshape
from gradix._transforms.batch import AxisData, batch_jaxpr
from gradix._transforms.dce import dce_closed
from gradix._transforms.jvp import jvp_jaxpr
from gradix._transforms.linearize import linearize_jaxpr, transpose_jaxpr
from gradix._transforms.staging import eval_closed, stage_closed

P = PartitionSpec


class Frame:
    """Stands for the trace that binds a named axis; only the size of the axis is read from it."""

    __slots__ = ("size",)
    level = -2  # `bind` never picks it, because a device's program is always staged

    def __init__(self, size: int):
        self.size = size


class part_of_mesh:
    """A context manager in which programs of one device's part are traced.

    Inside, the mesh axes are bound as named axes, and types say over which axes values vary.

    Args:
        mesh: the whole mesh.
        axes: its manual axes.
        check_vma: whether types say over which manual axes values vary.
    """

    __slots__ = ("mesh", "axes", "check_vma", "saved")

    def __init__(self, mesh: BaseMesh, axes: frozenset, check_vma: bool):
        self.mesh, self.axes, self.check_vma = mesh, axes, check_vma

    def __enter__(self) -> None:
        s, shape = state, self.mesh.shape
        inner = around(self.mesh).update_axis_types(dict.fromkeys(self.axes, AxisType.Manual))
        self.saved = s.axes, s.manual, _config.enter_local("gradix_mesh", inner)
        s.axes = {**s.axes, **{n: Frame(shape[n]) for n in self.axes}}
        s.manual = s.manual | tracked_axes(self.mesh, self.axes) if self.check_vma else s.manual - self.axes
        seen.meshes = True

    def __exit__(self, *exc) -> None:
        state.axes, state.manual, before = self.saved
        _config.leave_local("gradix_mesh", before)


def local_aval(aval, spec, mesh: BaseMesh, axes: frozenset, check_vma: bool):
    """The type of one device's part of an array of type `aval`."""
    sizes, shape = mesh.shape, list(aval.shape)
    for i, p in enumerate(spec):
        shape[i] //= prod([sizes[a] for a in axes_of(p)])
    vma = varying_of(spec, mesh) if check_vma else frozenset()
    left = None
    if aval.division is not None:  # the division over axes that are not manual is kept
        left = explicit_part(
            aval.division.update(mesh=aval.division.mesh.update_axis_types(dict.fromkeys(axes, AxisType.Manual))),
            aval.ndim,
        )
    return located(make_aval(tuple(shape), aval.dtype, aval.weak_type), vma=aval.vma | vma, division=left)


def varying_of(spec, mesh: BaseMesh) -> frozenset:
    """Over which axes of a mesh parts of arrays with this spec vary; marked if they are unreduced or reduced."""
    unreduced, reduced = tracked_axes(mesh, spec.unreduced), tracked_axes(mesh, spec.reduced)
    varying = tracked_axes(mesh, [a for p in spec for a in axes_of(p)])
    return varying.union(map(Unreduced, unreduced), map(Reduced, reduced))


def global_aval(aval, spec, mesh: BaseMesh, axes: frozenset):
    """The type of the whole array of which `aval` is one device's part."""
    sizes, shape = mesh.shape, list(aval.shape)
    for i, p in enumerate(spec):
        shape[i] *= prod([sizes[a] for a in axes_of(p)])
    known = around(mesh)
    row = [None if p is None else tuple(axes_of(p)) for p in spec] + [None] * (aval.ndim - len(spec))
    for i, p in enumerate(entries(aval)):
        row[i] = (*(row[i] or ()), *axes_of(p)) or None
    whole_spec = P(*row, unreduced=spec.unreduced, reduced=spec.reduced)
    whole = explicit_part(NamedSharding(known, whole_spec), aval.ndim)
    return located(
        make_aval(tuple(shape), aval.dtype, aval.weak_type),
        vma=aval.vma.difference(axes, map(Unreduced, axes), map(Reduced, axes)),
        division=whole,
    )


def around(mesh: BaseMesh) -> AbstractMesh:
    """The abstract mesh, with the axis types in force where it is used."""
    found = _config.state.gradix_mesh
    return found.abstract_mesh if found is not None and found.shape_tuple == mesh.shape_tuple else mesh.abstract_mesh


def _unmapped(spec, mesh: BaseMesh, axes: frozenset) -> tuple:
    """The manual axes that a spec does not name: the value is not divided over these."""
    used = {a for p in spec for a in axes_of(p)} | spec.unreduced | spec.reduced
    return tuple([a for a in mesh.axis_names if a in axes and a not in used])


def _summed(spec, mesh: BaseMesh, axes: frozenset) -> tuple:
    """The axes over which cotangents of an argument of an unchecked program are summed, or averaged.

    The average over unreduced axes is the cotangent of a sum of which every device has an equal share.
    """
    return (*_unmapped(spec, mesh, axes), *[Unreduced(a) for a in mesh.axis_names if a in spec.unreduced])


def has_inner_programs(closed: ClosedJaxpr) -> bool:
    """Whether equations hold programs, such as bodies of loops."""
    return any(next(jaxprs_in_params(e.params), None) for e in closed.jaxpr.eqns)


def _varying(mapped: ClosedJaxpr, in_axes, axes: frozenset) -> ClosedJaxpr:
    """A mapped program whose mapped operands vary over mesh axes, as each device has its examples.

    Operands that all examples share are made to vary where they meet the others, so that their
    cotangents are summed over these axes.
    """
    key = ("varying", tuple(in_axes), axes)
    found = mapped.memo.get(key)
    if found is None:
        avals = [
            v if a is None else located(v.plain, vma=v.vma | axes, division=v.division)
            for v, a in zip(mapped.in_avals, in_axes)
        ]
        found = mapped.memo[key] = stage_closed(lambda *xs: eval_closed(mapped, *xs), avals, mapped.jaxpr.debug_info)
    return found


def _axes_taken(jaxpr, specs) -> set:
    """The mesh axes over which a function's arrays are divided, or over which it communicates."""
    return {*axis_names(jaxpr.effects), *[n for s in specs for n in names_in(s)]}


def _division_of_batch(args, in_axes, jaxpr, specs) -> tuple:
    """The explicit mesh axes over which the mapped axis is divided, if the program leaves them free.

    Each device then has the examples that it holds, and needs no others.
    """
    taken = _axes_taken(jaxpr, specs)
    for x, a in zip(args, in_axes):
        place = x.aval.place
        division = x.aval.division if place is None else explicit_part(place.sharding, x.aval.ndim)
        if a is not None and division is not None and division.spec[a] is not None:
            free = names_in([division.spec[a]])
            return tuple(free) if taken.isdisjoint(free) else ()
    return ()


class ShardMap(Primitive):
    """Runs `jaxpr` on each device of `mesh`, on the device's parts of the operands.

    `in_specs` say how operands are divided into parts, and `out_specs` how the parts of results are
    joined. Both divide over `manual_axes` only; the compiler divides over the other mesh axes.
    """

    multiple_results = True
    effectful = True
    named = True
    mesh = MeshTraits(mixes=True, types_inside=True, placed=True)

    def abstract(self, *avals, jaxpr, mesh, manual_axes, out_specs, **_):
        return [global_aval(a, s, mesh, manual_axes) for a, s in zip(jaxpr.out_avals, out_specs)]

    def effects(self, params):
        mine = params["manual_axes"]
        left = frozenset(
            [e for e in params["jaxpr"].effects if not (isinstance(e, NamedAxisEffect) and e.name in mine)]
        )
        mesh = params["mesh"]
        return left | {MeshEffect(mesh)} if isinstance(mesh, Mesh) else left

    def names(self, params):
        return tuple([n for n in axis_names(params["jaxpr"].effects) if n not in params["manual_axes"]])

    def asked_of(self, params):
        mesh = params["mesh"]
        if not isinstance(mesh, Mesh) or len(params["manual_axes"]) < len(mesh.axis_names):
            return ()  # the compiler divides along the other axes
        return tuple([NamedSharding(mesh, s) for s in params["out_specs"]])

    def dependent(self, marks, params, smooth):
        return dependent(params["jaxpr"], tuple(marks), smooth)

    @staticmethod
    def inside(params) -> part_of_mesh:
        return part_of_mesh(params["mesh"], params["manual_axes"], params["check_vma"])

    # -- transformations ---------------------------------------------------------------------------

    def jvp(self, primals, tangents, *, jaxpr, in_specs, out_specs, **params):
        nonzero = tuple([t is not None for t in tangents])
        with self.inside(params):
            both, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
        ins = (*in_specs, *[s for s, nz in zip(in_specs, nonzero) if nz])
        outs_specs = (*out_specs, *[s for s, nz in zip(out_specs, out_nonzero) if nz])
        outs = bind(
            self,
            [*primals, *[t for t in tangents if t is not None]],
            {"jaxpr": both, "in_specs": ins, "out_specs": outs_specs, **params},
        )
        n = len(out_specs)
        given = iter(outs[n:])
        return outs[:n], [next(given) if nz else None for nz in out_nonzero]

    def linearize(self, primals, tangents, *, jaxpr, in_specs, out_specs, **params):
        nonzero = tuple([t is not None for t in tangents])
        with self.inside(params):
            split = linearize_jaxpr(jaxpr, nonzero)
            known, specs = with_kept_parts(split.known, split.n_out, params)
            sources = [
                ("in", i, in_specs[i]) if kind == "in" else ("out", i, (*out_specs, *specs)[i])
                for kind, i in split.sources
            ]
            is_fresh = [kind == "out" and i >= split.n_out for kind, i, _ in sources]
            linear = _with_plain_arguments(split.linear, is_fresh)
        outs = bind(self, primals, {"jaxpr": known, "in_specs": in_specs, "out_specs": (*out_specs, *specs), **params})
        if not any(split.out_nonzero):
            return outs[: split.n_out], [None] * split.n_out
        residuals = [primals[i] if kind == "in" else outs[i] for kind, i, _ in sources]
        t_specs = [s for s, nz in zip(in_specs, nonzero) if nz]
        ts = bind(
            self,
            [*residuals, *[t for t in tangents if t is not None]],
            {
                "jaxpr": linear,
                "in_specs": (*[s for _, _, s in sources], *t_specs),
                "out_specs": tuple([s for s, nz in zip(out_specs, split.out_nonzero) if nz]),
                **params,
            },
        )
        given = iter(ts)
        return outs[: split.n_out], [next(given) if nz else None for nz in split.out_nonzero]

    def transpose(self, cts, *args, jaxpr, in_specs, out_specs, **params):
        linear = tuple([type(a) is Linear for a in args])
        nonzero = tuple([c is not None for c in cts])
        mesh, axes, checked = params["mesh"], params["manual_axes"], params["check_vma"]
        ct_specs = [s for s, nz in zip(out_specs, nonzero) if nz]
        x_specs = [s for s, is_lin in zip(in_specs, linear) if is_lin]
        given = [c for c in cts if c is not None]
        # each device adds its cotangent of a result that is equal on all, so this divides it
        if not checked:
            sizes = mesh.shape
            copies = [prod([sizes[a] for a in _unmapped(s, mesh, axes)]) for s in ct_specs]
            given = [c if n == 1 else div(c, scalar_like(c, n)) for c, n in zip(given, copies)]
        ct_specs = [s.to_ct_spec() for s in ct_specs]
        with self.inside(params):
            back, live = transpose_jaxpr(jaxpr, linear, nonzero)
            back = _fitted(
                back,
                [() if checked else _summed(s, mesh, axes) for s in x_specs],
                [varying_of(s.to_ct_spec(), mesh) if checked else frozenset() for s in x_specs],
            )
        known = [(a, s) for a, s, is_lin in zip(args, in_specs, linear) if not is_lin]
        outs = bind(
            self,
            [*[a for a, _ in known], *given],
            {
                "jaxpr": back,
                "in_specs": (*[s for _, s in known], *ct_specs),
                "out_specs": tuple([s.to_ct_spec() for s in x_specs]),
                **params,
            },
        )
        results = iter([o if alive else None for o, alive in zip(outs, live)])
        return [next(results) if is_lin else None for is_lin in linear]

    def batch(self, axis, args, in_axes, *, jaxpr, in_specs, out_specs, **params):
        spmd = axis.spmd_name
        if spmd is None:
            spmd = _division_of_batch(args, in_axes, jaxpr, (*in_specs, *out_specs))
        spmd = tuple(spmd) if isinstance(spmd, (tuple, list)) else (spmd,)
        # The types of inner programs would not say which operands differ over these axes.
        fits = all(a is not None for a in in_axes) or not has_inner_programs(jaxpr)
        # Examples divided over an axis would be mixed where the function itself is divided or communicates over it.
        fits = fits and _axes_taken(jaxpr, (*in_specs, *out_specs)).isdisjoint(spmd)
        mine = tuple([n for n in spmd if n in params["manual_axes"] and fits])
        sizes = params["mesh"].shape
        inner = AxisData(axis.name, axis.size // prod([sizes[n] for n in mine]), axis.spmd_name)
        entry = mine if mine else None
        with self.inside(params):
            mapped, out_axes = batch_jaxpr(jaxpr, inner, tuple(in_axes))
            if mine and params["check_vma"]:
                mapped = _varying(mapped, in_axes, frozenset(mine))
        ins = [s if a is None else _with_entry(s, a, entry) for s, a in zip(in_specs, in_axes)]
        outs = [s if a is None else _with_entry(s, a, entry) for s, a in zip(out_specs, out_axes)]
        return bind(self, args, {"jaxpr": mapped, "in_specs": tuple(ins), "out_specs": tuple(outs), **params}), list(
            out_axes
        )

    def dce(self, used, eqn):
        params = eqn.params
        jaxpr, used_inputs = dce_closed(params["jaxpr"], tuple(used))
        return eqn.replace(
            invars=[v for v, u in zip(eqn.invars, used_inputs) if u],
            outvars=[v for v, u in zip(eqn.outvars, used) if u],
            params={
                **params,
                "jaxpr": jaxpr,
                "in_specs": tuple([s for s, u in zip(params["in_specs"], used_inputs) if u]),
                "out_specs": tuple([s for s, u in zip(params["out_specs"], used) if u]),
            },
        )

    # -- lowering ----------------------------------------------------------------------------------

    def lower(self, em, outs, *args, jaxpr, mesh, manual_axes, in_specs, out_specs, **_):
        if em.meshes.devices is None:
            raise ValueError(
                "shard_map is for the devices of a mesh, and this program is lowered for none. Call it, "
                "or lower it with jit."
            )
        outer = em.manual
        whole = manual_axes | (outer.axes if outer is not None else frozenset())
        is_partial = len(whole) < len(mesh.axis_names)
        index_avals = [
            make_aval((mesh.shape[a],), np.dtype("int32")) for a in mesh.axis_names if is_partial and a in manual_axes
        ]
        names = [a for a in mesh.axis_names if is_partial and a in manual_axes]
        numbers = [em.op("iota", a, attrs="iota_dimension = 0 : i64") for a in index_avals]
        text = em.meshes.text
        # Newer versions of XLA take summands from a constraint only, which says that they are meant.
        ins = [em.constrained(x, mesh, s) if s.unreduced else x for x, s in zip(args, in_specs)] + numbers
        specs_in = [*in_specs, *[P(n) for n in names]]
        scalar = make_aval((), np.dtype("int32"))
        known = dict(outer.indices) if outer is not None else {}  # along the axes of the regions around this one
        ins, specs_in = [*ins, *known.values()], [*specs_in, *[P()] * len(known)]
        sizes = em.variables if mesh.size > 1 else {}
        ins, specs_in = [*sizes.values(), *ins], [*[P()] * len(sizes), *specs_in]

        def body(*xs):
            if sizes:
                em.variables, xs = dict(zip(sizes, xs)), xs[len(sizes) :]
            rest = xs[len(args) :]
            indices = dict(zip(known, rest[len(names) :]))
            indices.update({n: em.op("reshape", scalar, x) for n, x in zip(names, rest)})
            em.manual = em.manual_part(mesh, whole, indices)
            return em.inline(jaxpr.jaxpr, jaxpr.consts, xs[: len(args)])

        if mesh.size == 1:
            # the part is the whole; XLA does not resolve a region around a callback on one device
            try:
                return body(*ins)
            finally:
                em.manual = outer
        ones = [make_aval((1,), np.dtype("int32"))] * len(names)
        local = [*[v.aval for v in jaxpr.jaxpr.invars], *ones, *[scalar] * len(known)]
        variables = em.variables
        try:
            region = em.isolated_region([*[scalar] * len(sizes), *local], body, "sdy.return")
        finally:
            em.manual, em.variables = outer, variables
        operands = ", ".join([text(mesh, s, v.aval.ndim) for s, v in zip(specs_in, ins)])
        manual = ", ".join([_quoted(a) for a in mesh.axis_names if a in manual_axes])
        attrs = (
            f"in_shardings = #sdy.sharding_per_value<[{operands}]>, "
            "out_shardings = "
            f"#sdy.sharding_per_value<[{', '.join([text(mesh, s, a.ndim) for s, a in zip(out_specs, outs)])}]>, "
            f"manual_axes = #sdy<manual_axes{{{manual}}}>"
        )
        if sizes:
            attrs += f", {em.sizes_attribute(sizes, local, jaxpr.out_avals, outs)}"
        return em.ops("sdy.manual_computation", outs, *ins, attrs=attrs, regions=(region,))

    def show(self, params):
        return {
            "check_vma": params["check_vma"],
            "in_specs": params["in_specs"],
            "jaxpr": params["jaxpr"],
            "mesh": params["mesh"],
            "newly_manual_axes": params["manual_axes"],
            "out_specs": params["out_specs"],
        }


def _quoted(name) -> str:
    return '"' + str(name) + '"'


def _with_entry(spec, axis: int, entry) -> PartitionSpec:
    parts = list(spec)
    parts += [None] * (axis - len(parts))
    return spec.update((*parts[:axis], entry, *parts[axis:]))


def _residual_spec(aval, mesh: BaseMesh, axes: frozenset, check_vma: bool) -> PartitionSpec:
    """The spec of a residual: its parts are stacked over all mesh axes over which it varies."""
    varying = tuple([a for a in mesh.axis_names if (a in aval.vma if check_vma else True) and a in axes])
    return P(*([varying] if varying else []), unreduced=unreduced_axes(aval.vma) & axes)


def with_kept_parts(closed: ClosedJaxpr, n: int, params: dict) -> tuple[ClosedJaxpr, list]:
    """The program whose results from number `n` on leave `shard_map` as they are, and their specs."""
    mesh, axes, checked = params["mesh"], params["manual_axes"], params["check_vma"]
    specs = [_residual_spec(a, mesh, axes, checked) for a in closed.out_avals[n:]]
    return _with_plain_results(closed, n), specs


def with_given_parts(closed: ClosedJaxpr, n: int) -> ClosedJaxpr:
    """The program whose arguments from number `n` on are what a program of `with_kept_parts` returned."""
    return _with_plain_arguments(closed, [i >= n for i in range(len(closed.in_avals))])


def _with_plain_results(closed: ClosedJaxpr, n: int) -> ClosedJaxpr:
    """The program whose results from number `n` on are not reduced, and scalars have shape (1,)."""

    def ranked(*args):
        outs = eval_closed(closed, *args)
        fresh = [settle(o) for o in outs[n:]]
        return [*outs[:n], *[o if o.aval.shape else broadcast_in_dim(o, (1,), ()) for o in fresh]]

    return _memo(closed, ("ranked", n), ranked, closed.in_avals)


def _with_plain_arguments(closed: ClosedJaxpr, flags: list) -> ClosedJaxpr:
    """The program that takes the flagged arguments as `_with_plain_results` returns them."""
    flags = [*flags, *[False] * (len(closed.in_avals) - len(flags))]

    def plain(*args):
        typed = [
            vary(a if t.shape else _first(a), _marks(t)) if flag else a
            for a, t, flag in zip(args, closed.in_avals, flags)
        ]
        return eval_closed(closed, *typed)

    avals = [_plain_aval(t) if flag else t for t, flag in zip(closed.in_avals, flags)]
    return _memo(closed, ("plain", tuple(flags)), plain, avals)


def _plain_aval(aval):
    """The type of a residual between the programs: not reduced, and of one axis at least."""
    shaped = aval if aval.shape else aval.update(shape=(1,))
    return located(shaped.plain, vma=aval.vma - _marks(aval), division=shaped.division)


def _marks(aval) -> frozenset:
    return frozenset(map(Reduced, reduced_axes(aval.vma)))


def _fitted(closed: ClosedJaxpr, sums: list, varying: list) -> ClosedJaxpr:
    """The program with each result summed over the axes `sums`, or made to vary over `varying`.

    Over axes that are marked as unreduced, the average is taken.
    """
    if not any(sums) and all(v <= a.vma for v, a in zip(varying, closed.out_avals)):
        return closed

    def added(o, axes):
        averaged = unreduced_axes(frozenset(axes))
        names = (*[a for a in axes if type(a) is not Unreduced], *[a.axis for a in axes if type(a) is Unreduced])
        total = bind(psum_p, (o,), {"axes": names, "axis_index_groups": None})
        return div(total, scalar_like(total, size_of(tuple(averaged)))) if averaged else total

    def fitted(*args):
        return [
            vary(o, v - o.aval.vma) if v - o.aval.vma else added(o, s) if s else o
            for o, s, v in zip(eval_closed(closed, *args), sums, varying)
        ]

    return _memo(closed, ("fitted", tuple(sums), tuple(varying)), fitted, closed.in_avals)


def _memo(closed: ClosedJaxpr, key, function, avals) -> ClosedJaxpr:
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = stage_closed(function, avals, closed.jaxpr.debug_info)
    return found


def _first(x):
    """The element of an array of size 1, as a scalar."""
    return reshape(x, ())


shard_map_p = ShardMap("shard_map")
seen.part_type, seen.whole_type = local_aval, global_aval
