"""Primitives that set how a value lies on devices: sharding_constraint, reshard, shard_alike, layout_constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._base import config as _config
from gradix._base.errors import class_of
from gradix._core import seams
from gradix._core.array import as_array
from gradix._core.aval import located
from gradix._core.divisions import NO_SUMS, ShardingTypeError, division, entries, explicit_part, mesh_of, names_in, sums
from gradix._core.effects import MeshEffect
from gradix._core.mesh import AxisType, Mesh
from gradix._core.named_sharding import NamedSharding, axes_of
from gradix._core.operators import Array
from gradix._core.primitive import MeshTraits, Primitive, ValueTraits
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec
from gradix._core.trace import bind, state
from gradix._ops.basis import move_axis, to_axis

_options = _config.state


class Constraint(Primitive):
    """The operand itself, constrained to `sharding`; its cotangent gets the same constraint."""

    effectful = True
    named = True  # its batch rule reads the mesh axis of the mapped axis
    mesh = MeshTraits(placed=True, divides=True)
    live = "elements"

    def effects(self, params):
        mesh = getattr(params["sharding"], "mesh", None)
        return frozenset([MeshEffect(mesh)]) if isinstance(mesh, Mesh) else frozenset()

    def asked_of(self, params):
        sharding = params["sharding"]
        spec = getattr(sharding, "spec", ())
        return () if UNCONSTRAINED in spec or not isinstance(getattr(sharding, "mesh", None), Mesh) else (sharding,)

    def abstract(self, x, *, sharding):
        return x

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, **params):
        return [bind(self, (ct,), params)]

    def batch(self, axis, args, axes, *, sharding):
        (x,), (a,) = args, axes
        if not isinstance(sharding, NamedSharding):
            return bind(self, (x,), {"sharding": sharding}), a
        name = getattr(axis, "spmd_name", None)
        return bind(
            self, (move_axis(x, a, 0),), {"sharding": with_leading(sharding, UNCONSTRAINED if name is None else name)}
        ), 0

    def lower(self, em, out, x, *, sharding):
        if em.meshes.devices is None or not isinstance(sharding, NamedSharding):
            return x
        return em.constrained(x, sharding.mesh, without_axes(sharding.spec, _manual_axes(em)))


def _manual_axes(em) -> frozenset:
    return em.manual.axes if em.manual is not None else frozenset()


def with_leading(sharding: NamedSharding, partition) -> NamedSharding:
    """`sharding` for an array with a new leading axis."""
    spec = sharding.spec
    return sharding.update(spec=PartitionSpec(partition, *spec, unreduced=spec.unreduced, reduced=spec.reduced))


def without_axes(spec: PartitionSpec, names) -> PartitionSpec:
    """The spec without the mesh axes that are manual in the surrounding region."""
    if not names:
        return spec
    parts = [
        p
        if p is None or p is UNCONSTRAINED
        else tuple([a for a in (p if isinstance(p, tuple) else (p,)) if a not in names])
        for p in spec
    ]
    return PartitionSpec(*parts)


class Reshard(Constraint):
    """A constraint that also sets the division in the operand's type.

    The compiler decides about mesh axes that are `Auto`, unless the spec names one.
    """

    @staticmethod
    def open_axes(sharding) -> frozenset:
        auto = frozenset(getattr(sharding.mesh, "auto_axes", ()))
        return auto if auto.isdisjoint(names_in(sharding.spec)) else frozenset()

    def asked_of(self, params):
        return () if self.open_axes(params["sharding"]) else super().asked_of(params)

    def abstract(self, x, *, sharding):
        return located(x.plain, vma=x.vma, division=explicit_part(sharding, x.ndim))

    def show(self, params):
        return {}  # the type of the result shows the sharding

    def lower(self, em, out, x, *, sharding):
        new = sums(out).unreduced - sums(x.aval).unreduced
        if new and em.meshes.devices is not None and not em.is_zero(x):
            names = [a for a in sharding.mesh.axis_names if a in new]
            own = [i for i, e in enumerate(entries(x.aval)) if axes_of(e) == tuple(names)]
            x = em.as_summands(x, sharding.mesh, names, own[0] if own else None)
        if em.meshes.devices is None or not self.open_axes(sharding) - _manual_axes(em):
            return super().lower(em, out, x, sharding=sharding)
        return em.constrained(x, sharding.mesh, without_axes(sharding.spec, _manual_axes(em)), is_open=True)

    def transpose(self, ct, x, *, sharding):
        # The caller reshards a cotangent to the division of its operand.
        return [ct]

    def batch(self, axis, args, axes, *, sharding):
        (x,), (a,) = args, axes
        row, along = entries(x.aval), getattr(axis, "division", None)
        entry = row[a] if along is None or row[a] is not None else along[1]  # the compiler may have divided `x`
        return bind(self, (move_axis(x, a, 0),), {"sharding": with_leading(sharding, entry)}), 0


class Move(Primitive):
    """The operand itself, on another device; compiled programs run where their arguments are.

    Its parameters are the sharding of the result and that of the operand, to which cotangents
    return. None stands for the default device.
    """

    mesh = MeshTraits(placed=True)
    values = ValueTraits(keeps_nan=True)

    def abstract(self, x, *, to, back):
        return x

    def run(self, args, params):
        return seams.move(args[0], params["to"])

    def jvp(self, primals, tangents, *, to, back):
        (x,), (t,) = primals, tangents
        place = x.aval.place
        if place is not None and place.is_committed:
            back = place.sharding
        params = {"to": to, "back": back}
        return bind(self, (x,), params), bind(self, (t,), params)

    def transpose(self, ct, x, *, to, back):
        return [bind(self, (ct,), {"to": back, "back": to})]

    def batch(self, axis, args, axes, **params):
        return bind(self, args, params), axes[0]

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x, *, to, back):
        return x


class ToAuto(Primitive):
    """The operand itself, whose division the compiler decides from here on."""

    mesh = MeshTraits(divides=True)
    live = "elements"

    def abstract(self, x, *, axes=None):
        if x.division is None or axes is None:
            return located(x.plain, vma=x.vma)
        mesh = x.division.mesh.update_axis_types(dict.fromkeys(axes, AxisType.Auto))
        return located(x.plain, vma=x.vma, division=explicit_part(NamedSharding(mesh, x.division.spec), x.ndim))

    def show(self, params):
        return {}

    def host(self, x, *, axes=None):
        return x

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, *, axes=None):
        return [ct]

    def batch(self, size, args, in_axes, *, axes=None):
        (x,), (a,) = args, in_axes
        entry, mesh = entries(x.aval)[a], _options.gradix_mesh
        explicit = set(mesh.explicit_axes) if mesh is not None else set()
        if axes is None and entry is not None and explicit.issuperset(axes_of(entry)):
            # the mapped axis is no part of what the function decides about
            row = [entry if i == a else None for i in range(x.aval.ndim)]
            sharding = NamedSharding(x.aval.division.mesh, PartitionSpec(*row))
            return bind(reshard_p, (x,), {"sharding": sharding}), a
        return bind(self, args, {"axes": axes}), a

    def lower(self, em, out, x, *, axes=None):
        return x


class ShardAlike(Primitive):
    """Two operands of one shape that are sharded alike; linear in each."""

    multiple_results = True
    host_limit = 1 << 62

    def abstract(self, x, y):
        return [x, y]

    def host(self, x, y):
        return [x, y]

    def jvp(self, primals, tangents):
        return bind(self, primals, {}), list(tangents)

    def transpose(self, cts, x, y):
        return list(cts)

    def batch(self, size, args, axes):
        moved = [to_axis(size, x, a, 0) for x, a in zip(args, axes)]
        return bind(self, moved, {}), [0, 0]

    def lower(self, em, outs, x, y):
        if em.meshes.devices is None:
            return [x, y]
        mesh = em.meshes.mesh
        if mesh is not None and em.manual is None:
            # An argument is divided as it is given, which must not bind what is asked to be like it.
            x, y = [em.constrained(v, mesh, PartitionSpec(*[None] * v.aval.ndim), is_open=True) for v in (x, y)]
        em.divide_alike(x, y)
        return [x, y]


class LayoutConstraint(Primitive):
    """The operand itself, whose axes must lie in a device's memory in the order that `layout` names.

    A result of a program that is a result of this operation has that layout.
    """

    mesh = MeshTraits(placed=True)
    values = ValueTraits(keeps_nan=True)

    def abstract(self, x, *, layout):
        return x

    def run(self, args, params):
        return seams.lay_out(args[0], params["layout"])

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, **params):
        return [bind(self, (ct,), params)]

    def batch(self, axis, args, axes, *, layout):
        (x,), (a,) = args, axes
        order = (0, *[k + 1 for k in layout.major_to_minor])
        return bind(self, (move_axis(x, a, 0),), {"layout": layout.update(major_to_minor=order)}), 0

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x, *, layout):
        return em.laid_out(x, layout.major_to_minor)


shard_alike_p, move_p = ShardAlike("shard_alike"), Move("move")
layout_constraint_p = LayoutConstraint("layout_constraint")
sharding_constraint_p, reshard_p, to_auto_p = (Constraint("sharding_constraint"), Reshard("reshard"), ToAuto("to_auto"))


def reshard(x, sharding):
    """`x` with another division, also in its type; None leaves the division to the compiler."""
    return bind(to_auto_p, (x,), {}) if sharding is None else bind(reshard_p, (x,), {"sharding": sharding})


def summed_like(number, x):
    """A number in the form of a summand, if `x` is still to be summed over mesh axes."""
    left = sums(x.aval)
    if left == NO_SUMS:
        return number
    return bind(reshard_p, (number,), {"sharding": division(x.aval.division.mesh, (), left)})


seams.reshard = reshard
_programs: dict[tuple, Callable] = {}


def asked(name: str, out_sharding, operands=()) -> NamedSharding:
    """The argument `out_sharding` as a NamedSharding, on the current mesh or that of the operands.

    Raises:
        TypeError: it is neither a NamedSharding nor a PartitionSpec.
        ValueError: there is no mesh, or the spec names a mesh axis that is not `Explicit`.
    """
    mesh = _options.gradix_mesh
    if isinstance(out_sharding, NamedSharding):
        given = out_sharding.mesh.abstract_mesh
        is_set = mesh is not None and mesh.axis_names and state.stage is not None
        if is_set and _kinds(mesh.abstract_mesh) != _kinds(given):
            raise ValueError(
                f"Context mesh {mesh.abstract_mesh} should match the mesh of sharding {given} passed to "
                f"{name}. Pass a PartitionSpec, which is on the mesh in force."
            )
        check_explicit(name, out_sharding)
        return out_sharding
    if not isinstance(out_sharding, PartitionSpec):
        raise TypeError(
            f"`out_sharding` argument of {name} only supports NamedSharding or PartitionSpec "
            f"instances. Got {class_of(out_sharding)}."
        )
    if mesh is None or not mesh.axis_names:
        mesh = mesh_of([x.aval for x in operands])
    if mesh is None:
        raise ValueError(
            f"Please set a mesh via `gradix.set_mesh` if a PartitionSpec is passed to {name}: got "
            f"out_sharding={out_sharding}. Or pass NamedSharding(mesh, spec)."
        )
    sharding = NamedSharding(mesh, out_sharding)
    check_explicit(name, sharding)
    return sharding


def check_explicit(name: str, sharding: NamedSharding) -> None:
    """Raise for a spec that names mesh axes over which the compiler divides, and types do not.

    Raises:
        ValueError: it names an axis of type Auto or Manual, or is UNCONSTRAINED.
    """
    spec, kinds = sharding.spec, dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types))
    other = next((n for n in names_in(spec) if kinds[n] is not AxisType.Explicit), None)
    if other is not None:
        raise ValueError(
            f"PartitionSpec passed to {name} cannot contain axis names that are of type Auto or Manual. Got "
            f"PartitionSpec: {spec} with axis name: {other} of type: {kinds[other]}. Types say nothing of such axes: "
            "constrain the value with gradix.lax.with_sharding_constraint, put it there with gradix.device_put, or "
            "make the mesh with axis_types=(AxisType.Explicit, ...)."
        )
    if UNCONSTRAINED in tuple(spec):
        raise ValueError(
            f"PartitionSpec passed to {name} cannot be UNCONSTRAINED: got {spec}. The compiler decides about mesh axes "
            "of type Auto anyhow; write None."
        )


def _kinds(mesh) -> tuple:
    return mesh.axis_names, mesh.axis_sizes, mesh.axis_types


def of_rank(sharding, ndim: int):
    """A sharding on a mesh with explicit axes, with an entry for each axis, as types have it."""
    mesh: Any = getattr(sharding, "mesh", None)
    if mesh is None or AxisType.Explicit not in mesh.axis_types or len(sharding.spec) >= ndim:
        return sharding
    spec = sharding.spec
    return sharding.update(spec=spec.update(partitions=(*spec, *[None] * (ndim - len(spec)))))


def _without_more(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """The sharding without entries for axes that an array of this rank lacks, if they divide nothing."""
    spec = sharding.spec
    if len(spec) <= ndim or any(p is not None for p in spec[ndim:]):
        return sharding
    return sharding.update(spec=spec.update(partitions=spec[:ndim]))


def divided(function: Callable, out_sharding, *args, leaves_sums: Callable | None = None, **options):
    """`function(*args, **options)` resharded to `out_sharding`; the compiler divides its operands.

    If `out_sharding` is unreduced, `leaves_sums(sharding, *args, **options)` is called in its place,
    where it is given: it leaves the sums over these mesh axes, over which its operands are divided,
    to be finished.
    """
    name = getattr(function, "__name__", "a function")
    at = [i for i, a in enumerate(args) if isinstance(a, (Array, np.ndarray))]
    operands = [as_array(args[i]) for i in at]
    sharding = asked(name, out_sharding, operands)
    held = {n for x in operands for n in (*names_in(entries(x.aval)), *sums(x.aval).unreduced)}
    if not sharding.spec.unreduced <= held:
        raise ShardingTypeError(
            f"{name}: out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced "
            f"axes={set(sharding.spec.unreduced)}, but no operand is divided over "
            f"{set(sharding.spec.unreduced - held)}: {', '.join([x.aval.str_short() for x in operands])}."
        )

    is_typed = leaves_sums is not None and bool(sharding.spec.unreduced)

    def whole(*xs):
        given = list(args)
        for i, x in zip(at, xs):
            is_free = x.aval.division is not None and not is_typed
            given[i] = bind(to_auto_p, (x,), {}) if is_free else x
        out = leaves_sums(sharding, *given, **options) if is_typed else function(*given, **options)  # type: ignore[misc]
        wanted = _without_more(sharding, out.aval.ndim)
        has_it = is_typed and out.aval.division == explicit_part(wanted, out.aval.ndim)
        return out if has_it else reshard(out, wanted)

    if state.stage is not None:
        return whole(*operands)
    rest = tuple([None if i in at else (type(a), a) for i, a in enumerate(args)])
    try:
        key = function, rest, tuple(options.items()), sharding
        found = _programs.get(key)
    except TypeError:  # an argument is not hashable
        return seams.jit(whole)(*operands)
    if found is None:
        if len(_programs) >= 1024:
            _programs.clear()
        found = _programs[key] = seams.jit(whole)
    return found(*operands)


def rearranged(function: Callable, out_sharding, operand, *args, copies: bool = False, **options):
    """`function(operand, *args, **options)`, which moves elements, resharded to `out_sharding`.

    With `copies` it repeats elements along new axes, which may be divided over the axes along which
    the operand is reduced.

    Raises:
        ValueError: `out_sharding` is unreduced or reduced over other mesh axes than the operand.
    """
    name = getattr(function, "__name__", "a function")
    array = as_array(operand)
    sharding, have = asked(name, out_sharding, (array,)), sums(array.aval)
    if copies and have.reduced and not sharding.spec.reduced and have.reduced <= set(names_in(sharding.spec)):
        # copies are divided over the axes along which the operand is reduced: its cotangent is their sum
        whole = division(array.aval.division.mesh, entries(array.aval), have._replace(reduced=frozenset()))
        operand = array = reshard(
            array, whole or NamedSharding(sharding.mesh, PartitionSpec(*[None] * array.aval.ndim))
        )
        have = sums(array.aval)
    for kind in ("unreduced", "reduced"):
        own, wanted = getattr(have, kind), getattr(sharding.spec, kind)
        if own != wanted:
            rule = f"must be {kind} over the same mesh axes as operand" if own else f"cannot contain {kind} axes"
            raise ValueError(
                f"out_sharding passed to {name} {rule}, as {name} only moves elements. Got out_sharding: "
                f"{sharding.spec} and operand type: {array.aval.str_short()}. Reshard the operand or the result with "
                "gradix.sharding.reshard(x, PartitionSpec(...))."
            )
    if have == NO_SUMS:
        return divided(function, out_sharding, operand, *args, **options)
    out = function(array, *args, **options)
    return reshard(out, of_rank(_without_more(sharding, out.aval.ndim), out.aval.ndim))
