"""Shardings of exported programs: from `jit`'s arguments, in files, and in calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._api.constraints import with_sharding_constraint
from gradix._api.jit.jit import jit
from gradix._api.placing import device_put
from gradix._base import config
from gradix._core.aval import located
from gradix._core.divisions import explicit_part
from gradix._core.mesh import AbstractDevice, AbstractMesh, AxisType, Mesh
from gradix._core.named_sharding import NamedSharding
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec
from gradix._core.trace import Tracer
from gradix._ops.sharding import reshard
from gradix._runtime import xla, xla_partitioning, xla_sharded
from gradix.export.wire import I8, U32, Malformed, Numbers, Table

_TYPES = {AxisType.Auto: 1, AxisType.Explicit: 2, AxisType.Manual: 3}
_TYPE_OF = {n: kind for kind, n in _TYPES.items()}


class Plan:
    """The devices of a program, and the named sharding of each argument and result, or None."""

    def __init__(self, traced, places=None):
        self.devices: tuple | None = None
        self.ins: list = [None] * len(traced.avals)
        self.outs: list = [None] * len(traced.jaxpr.out_avals)
        if traced.placing is not None:
            avals = traced.avals if places is None else places
            home, ins, outs, _ = traced.placing.plan(avals)
            if home is not None and home.mesh is not None and len(home.devices) > 1:
                self.devices = home.devices
                asked = [
                    w if w is not None else a.place.sharding if a.place is not None else _typed(a, home)
                    for w, a in zip(ins[len(traced.consts) :], avals)
                ]
                chosen = [w if w is not None else _typed(a, home) for w, a in zip(outs, traced.jaxpr.out_avals)]
                self.ins, self.outs = [_named(s) for s in asked], [_named(s) for s in chosen]

    @property
    def nr_devices(self) -> int:
        """The number of devices."""
        return len(self.devices) if self.devices else 1

    def options(self) -> dict[str, Any]:
        """The devices and shardings as arguments of `program.lower`."""
        return {"devices": self.devices, "in_shardings": self.ins, "out_shardings": self.outs} if self.devices else {}


def _typed(aval, home):
    """The sharding by the explicit axes of a type, on the devices; None if it has none."""
    known = aval.division
    if known is None or known.mesh.shape_tuple != home.mesh.shape_tuple:
        return None
    return NamedSharding(home.mesh, known.spec)


def _named(sharding):
    if sharding is not None and not isinstance(sharding, NamedSharding):
        raise NotImplementedError(
            f"a program divided by {sharding} cannot be exported, because files can hold NamedShardings "
            "only. Use a NamedSharding instead."
        )
    return sharding


def without_devices(shardings) -> tuple:
    """The named shardings on abstract meshes, which have no particular devices."""
    return tuple([s and NamedSharding(_abstract(s.mesh), s.spec, memory_kind=s.memory_kind) for s in shardings])


def with_divisions(avals, shardings) -> tuple:
    """The types with the part of their shardings that is over `Explicit` mesh axes."""
    return tuple(
        [located(a, division=explicit_part(s, a.ndim)) if s is not None else a for a, s in zip(avals, shardings)]
    )


def _abstract(mesh):
    if isinstance(mesh, AbstractMesh):
        return mesh
    device = mesh._flat_devices_tuple[0]
    return AbstractMesh(
        mesh.axis_sizes,
        mesh.axis_names,
        mesh.axis_types,
        abstract_device=AbstractDevice(device.device_kind, None, device.platform),
    )


def native(shardings, avals) -> tuple:
    """The named shardings as `HloSharding`s, for arrays of the given types; None stays None."""
    return tuple(
        [None if s is None else xla_partitioning.hlo_sharding_on_mesh(s, a.ndim) for s, a in zip(shardings, avals)]
    )


def on_mesh(shardings, mesh) -> tuple:
    """The shardings on a mesh of devices; unchanged if the mesh is None.

    Raises:
        ValueError: the mesh has other axes than the shardings.
    """
    if mesh is None:
        return tuple(shardings)
    for s in shardings:
        if s is not None and s.mesh.shape_tuple != mesh.shape_tuple:
            raise ValueError(
                f"the program was exported for the mesh {s.mesh}; got a mesh with the axes "
                f"{mesh.shape_tuple}. Pass one with the same axes."
            )
    return tuple([s and NamedSharding(mesh, s.spec, memory_kind=s.memory_kind or "device") for s in shardings])


# -- calls -----------------------------------------------------------------------------------------


def on_devices(exported, run, leaves):
    """Run a program for several devices on those of its arguments, or on the first devices."""
    devices, mesh = _devices(exported, leaves)
    named = (*exported._in_named_shardings, *exported._out_named_shardings)
    is_typed = any(s is not None and AxisType.Explicit in s.mesh.axis_types for s in named)
    if mesh is None or not mesh.explicit_axes or is_typed or any(isinstance(x, Tracer) for x in leaves):
        return _placed(exported, run, devices, mesh)(*leaves)
    # The compiler divides what the file leaves open, which it may do over axes that are in no types.
    free = Mesh(mesh.devices, mesh.axis_names)
    with free:
        outs = _placed(exported, run, devices, free)(*[_moved(x, mesh, free) for x in leaves])
    return [_moved(x, free, mesh) for x in outs]


def _moved(x, mesh: Mesh, to: Mesh):
    """An array on `mesh` as one on the other mesh of the same devices and axes."""
    is_on = isinstance(x.sharding, NamedSharding) and x.sharding.mesh == mesh
    return device_put(x, NamedSharding(to, x.sharding.spec)) if is_on else x


def _devices(exported, leaves) -> tuple[tuple, Mesh | None]:
    """The devices for a call, and the mesh of the caller over them, if there is one."""
    n = exported.nr_devices
    for x in leaves:
        place = getattr(x.aval, "place", None)
        mesh = getattr(place.sharding, "mesh", None) if place is not None else None
        if isinstance(mesh, Mesh) and mesh.size == n:
            return mesh._flat_devices_tuple, mesh
    mesh = config.state.gradix_mesh
    if isinstance(mesh, Mesh) and mesh.size == n:
        return mesh._flat_devices_tuple, mesh
    devices = tuple(xla.devices())
    if len(devices) < n:
        raise ValueError(
            f"Function '{exported.fun_name}' was exported for {n} devices and is called in a context with "
            f"{len(devices)} devices. On the CPU, set the option jax_num_cpu_devices before the first "
            "computation."
        )
    return devices[:n], None


def _placed(exported, run, devices, mesh):
    key = (_placed, run, devices, mesh)
    found = exported.memo.get(key)
    if found is None:
        found = exported.memo[key] = _placed_call(exported, run, devices, mesh)
    return found


def _placed_call(exported, run, devices, mesh):
    def constrained(xs, shardings):
        return [x if s is None else divide(x, s) for x, s in zip(xs, shardings)]

    def divide(x, s):
        if isinstance(s, NamedSharding):
            sharding, kinds = NamedSharding(_mesh(s.mesh, devices), s.spec), s.mesh.axis_types
        else:
            sharding, kinds = xla_sharded.sharding_of(s.to_proto(), devices, mesh, x.ndim), mesh and mesh.axis_types
        is_typed = AxisType.Explicit in (kinds or ()) and isinstance(sharding, NamedSharding)
        return reshard(x, sharding) if is_typed else with_sharding_constraint(x, sharding)

    def known(named, natives):
        """The named shardings; where there is none, that of XLA, which older files have alone."""
        return [h if s is None else s for s, h in zip(named, natives)]

    ins = known(exported._in_named_shardings, exported.in_shardings_hlo)
    if leaves_open := not any(s is not None for s in ins):
        everywhere = NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec())

    def call(*leaves):
        if leaves_open:  # No argument has a sharding, so each device gets a copy of all.
            leaves = [with_sharding_constraint(x, everywhere) for x in leaves]
        given = constrained(leaves, ins)
        # Inside the module the compiler divides the arrays, so their types have no explicit axes.
        outs = run(*[x if x.aval.division is None else reshard(x, None) for x in given])
        return constrained(outs, known(exported._out_named_shardings, exported.out_shardings_hlo))

    call.__name__ = exported.fun_name
    return jit(call)


def _mesh(mesh, devices) -> Mesh:
    return Mesh(np.array(devices).reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


# -- files -----------------------------------------------------------------------------------------


def tables(shardings) -> tuple[list, list, list]:
    """Tables of the distinct meshes, tables of the distinct shardings, and the sharding numbers.

    The numbers count from 1, for each of the given shardings; 0 stands for None.
    """
    distinct = list(dict.fromkeys([s for s in shardings if s is not None]))
    meshes = list(dict.fromkeys([s.mesh for s in distinct]))
    return (
        [_mesh_table(m) for m in meshes],
        [_table(s) for s in distinct],
        [0 if s is None else distinct.index(s) + 1 for s in shardings],
    )


def _mesh_table(mesh) -> dict:
    out: dict[int, Any] = {
        0: Numbers(U32, mesh.axis_sizes),
        1: [str(n) for n in mesh.axis_names],
        2: Numbers(I8, [_TYPES[t] for t in mesh.axis_types]),
    }
    device = mesh.abstract_device
    if device is not None:
        out[3] = {
            0: device.device_kind,
            2: device.platform,
            **({} if device.num_cores is None else {1: (U32, device.num_cores)}),
        }
    return out


def _table(sharding) -> dict:
    spec = sharding.spec
    if UNCONSTRAINED in spec:
        raise ValueError(
            f"the sharding {sharding} leaves an axis to the compiler, which files cannot express. Say how "
            "the axis is divided."
        )
    parts = [{0: list(p if isinstance(p, tuple) else () if p is None else (p,))} for p in spec]
    out = {0: _mesh_table(sharding.mesh), 1: {0: parts, 1: sorted(spec.reduced), 2: sorted(spec.unreduced)}}
    return out if sharding.memory_kind is None else {**out, 2: sharding.memory_kind}


def read(table: Table, slot: int, places: list) -> tuple:
    """The shardings with the given numbers, which `tables` wrote into a slot; None for 0.

    Raises:
        Malformed: there is no such sharding, or one is not valid.
    """
    known = [None, *[_read(t) for t in table.tables(slot)]]
    if any(i >= len(known) for i in places):
        raise Malformed("it refers to shardings that do not exist")
    return tuple([known[i] for i in places])


def _read(t: Table) -> NamedSharding:
    mesh = t.table(0)
    sizes, names, kinds = mesh.numbers(0, U32), mesh.texts(1), mesh.numbers(2, I8)
    are_known = all(k in _TYPE_OF for k in kinds) and all(0 < n < 1 << 24 for n in sizes)
    if len(sizes) != len(names) or len(kinds) not in (0, len(names)) or not are_known:
        raise Malformed("the sizes, names and types of a mesh do not fit each other")
    spec = t.table(1)
    device = mesh.table(3) if mesh.has(3) else None
    kind = (
        None
        if device is None
        else AbstractDevice(device.text(0), device.number(1, U32) if device.has(1) else None, device.text(2))
    )
    try:
        abstract = AbstractMesh(sizes, names, tuple([_TYPE_OF[k] for k in kinds]) or None, abstract_device=kind)
        parts = [tuple(p.texts(0)) or None for p in spec.tables(0)]
        return NamedSharding(
            abstract,
            PartitionSpec(*parts, reduced=frozenset(spec.texts(1)), unreduced=frozenset(spec.texts(2))),
            memory_kind=t.text(2) or None,
        )
    except (TypeError, ValueError) as e:
        raise Malformed(f"a sharding is wrong ({e})") from None
