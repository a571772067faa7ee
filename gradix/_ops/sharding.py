"""Primitives that say where a value lies within a program: sharding_constraint, reshard, shard_alike."""
from __future__ import annotations

from gradix._core.aval import located
from gradix._core.effects import MeshEffect
from gradix._core.mesh import AxisType, Mesh
from gradix._core.named_sharding import NamedSharding
from gradix._core.primitive import MeshTraits, Primitive
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec
from gradix._core.trace import bind
from gradix._ops.basis import move_axis, to_axis


class Constraint(Primitive):
    """The operand itself, divided as `sharding` says; its cotangent is divided likewise."""

    effectful = True
    mesh = MeshTraits(placed=True)
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
        t, = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, **params):
        return [bind(self, (ct,), params)]

    def batch(self, axis, args, axes, *, sharding):
        (x,), (a,) = args, axes
        if not isinstance(sharding, NamedSharding):
            return bind(self, (x,), {"sharding": sharding}), a
        name = getattr(axis, "spmd_name", None)
        return bind(self, (move_axis(x, a, 0),), {"sharding": with_leading(sharding, UNCONSTRAINED if name is None else name)}), 0

    def lower(self, em, out, x, *, sharding):
        if em.meshes.devices is None or not isinstance(sharding, NamedSharding):
            return x
        inside = em.manual.axes if em.manual is not None else frozenset()
        spec = without_axes(sharding.spec, inside)
        text = em.meshes.text(sharding.mesh, spec, out.ndim)
        return em.op("sdy.sharding_constraint", out, x, attrs=f"sharding = #sdy.sharding{text}")


def with_leading(sharding: NamedSharding, partition) -> NamedSharding:
    """The sharding of an array with one more axis in front."""
    spec = sharding.spec
    return sharding.update(spec=PartitionSpec(partition, *spec, unreduced=spec.unreduced, reduced=spec.reduced))


def without_axes(spec: PartitionSpec, names) -> PartitionSpec:
    """The spec without the mesh axes that are manual around it."""
    if not names:
        return spec
    parts = [p if p is None or p is UNCONSTRAINED else tuple([a for a in (p if isinstance(p, tuple) else (p,)) if a not in names])
             for p in spec]
    return PartitionSpec(*parts)


class Reshard(Constraint):
    """A constraint that also sets the sharding in the operand's type."""

    def abstract(self, x, *, sharding):
        return typed(x, sharding)


def typed(aval, sharding):
    """The type, with the sharding over explicit mesh axes in it."""
    mesh = sharding.mesh.abstract_mesh
    if AxisType.Explicit not in mesh.axis_types:
        return located(aval.plain, vma=aval.vma)
    spec = PartitionSpec(*sharding.spec, *[None] * (aval.ndim - len(sharding.spec)))
    return located(aval.plain, vma=aval.vma, sharding=NamedSharding(mesh, spec))


class ShardAlike(Primitive):
    """Two operands of one shape, to be divided alike; linear in each."""

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

    def batch(self, axis, args, axes):
        moved = [to_axis(axis.size, x, a, 0) for x, a in zip(args, axes)]
        return bind(self, moved, {}), [0, 0]

    def lower(self, em, outs, x, y):
        if em.meshes.devices is None:
            return [x, y]
        group = em.meshes.new_group()
        for v in (x, y):
            em.ops("sdy.sharding_group", [], v, attrs=f"group_id = {group} : i64")
        return [x, y]


shard_alike_p = ShardAlike("shard_alike")
sharding_constraint_p, reshard_p = Constraint("sharding_constraint"), Reshard("reshard")
