"""Meshes and shardings as text of the Shardy dialect, and regions for one device's part."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.mesh import BaseMesh, Mesh
from gradix._core.named_sharding import axes_of
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec, Sharding
from gradix._stablehlo.attributes import Raw, i64_tensor, string


class Meshes:
    """The meshes that a module over several devices names.

    Args:
        devices: the devices in the order of the partitions; None for a program on one device.
        mesh: the mesh of the arguments of a program over several devices.
    """

    def __init__(self, devices: tuple | None, mesh: BaseMesh | None = None):
        self.devices, self.mesh = devices, mesh
        self.place = {d: i for i, d in enumerate(devices or ())}
        self.symbols: dict[Any, str] = {}
        self.lines: list[str] = []
        self.groups = 0  # of values that are to be divided alike

    def positions(self, mesh: BaseMesh) -> np.ndarray:
        """The partitions of a mesh's devices, in its shape."""
        if self.place and mesh.size != len(self.place):
            raise ValueError(
                f"a program that runs on {len(self.place)} devices holds a sharding on {mesh}, which has {mesh.size}. "
                "All meshes of a program need the same devices."
            )
        if not isinstance(mesh, Mesh) or not self.place:
            return np.arange(mesh.size).reshape(mesh.axis_sizes)
        try:
            return np.array([self.place[d] for d in mesh._flat_devices_tuple]).reshape(mesh.axis_sizes)
        except KeyError:
            raise ValueError(
                f"a program runs on the devices {[d.id for d in self.devices or ()]}, but a sharding in "
                f"it is on {mesh}, of devices {[d.id for d in mesh._flat_devices_tuple]}. All meshes of "
                "a program need the same devices."
            ) from None

    def symbol(self, mesh: BaseMesh) -> str:
        at = self.positions(mesh)
        key = (mesh.shape_tuple, at.tobytes())
        found = self.symbols.get(key)
        if found is None:
            found = self.symbols[key] = f"mesh{len(self.symbols) or ''}"
            axes = ", ".join([f"{string(str(n))}={s}" for n, s in mesh.shape_tuple])
            flat = at.reshape(-1)
            order = "" if np.array_equal(flat, np.arange(flat.size)) else f", device_ids={flat.tolist()}"
            self.lines.append(f"sdy.mesh @{found} = <[{axes}]{order}>")
        return found

    def on_first_device(self) -> str:
        """The sharding of what runs on the first device alone."""
        line = "sdy.mesh @first_device = <[], device_ids=[0]>"
        if line not in self.lines:
            self.lines.append(line)
        return "<@first_device, []>"

    def new_group(self) -> int:
        """A new number, for a group of values that are to be divided alike."""
        self.groups += 1
        return self.groups - 1

    def text(self, mesh: BaseMesh, spec: PartitionSpec, ndim: int, is_open: bool = False, manual=frozenset()) -> str:
        """A sharding such as `<@mesh, [{"x"}, {}]>`.

        With `is_open` the compiler may divide all axes further, over mesh axes that are neither
        explicit nor `manual` around it.
        """
        dims = []
        for p in [*spec, *[None] * (ndim - len(spec))]:
            names = [string(str(a)) for a in axes_of(p)]
            if p is UNCONSTRAINED or is_open:
                names.append("?")
            dims.append("{" + ", ".join(names) + "}")
        named = {*manual, *spec.unreduced, *[a for p in spec for a in axes_of(p)]}
        kept = [a for a in mesh.explicit_axes if a not in named] if is_open else []
        more = ""
        for kind, axes in (("replicated", kept), ("unreduced", [a for a in mesh.axis_names if a in spec.unreduced])):
            more += f", {kind}={{{', '.join([string(str(a)) for a in axes])}}}" if axes else ""
        return f"<@{self.symbol(mesh)}, [{', '.join(dims)}]{more}>"

    def attribute(self, sharding: Sharding, ndim: int) -> Raw:
        """The sharding of an argument or result of the program."""
        mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
        if mesh is None or spec is None:
            raise ValueError(f"a program over several devices takes NamedShardings, got {sharding}.")
        return Raw("#sdy.sharding" + self.text(mesh, spec, ndim))


class Manual:
    """What the emitter knows in a region for one device's part: the mesh and its manual axes."""

    __slots__ = ("mesh", "axes", "indices")

    def __init__(self, mesh: BaseMesh, axes: frozenset, indices: dict | None = None):
        self.mesh, self.axes, self.indices = mesh, axes, indices or {}

    def groups(self, positions: np.ndarray, names, axis_index_groups=None) -> np.ndarray:
        """The partitions that communicate over the named axes, one row per group."""
        at = [self.mesh.axis_names.index(n) for n in names]
        rows = np.moveaxis(positions, at, range(-len(at), 0)).reshape(
            -1, int(np.prod([positions.shape[i] for i in at]))
        )
        if axis_index_groups is None:
            return rows
        most = max(map(len, axis_index_groups))  # rows of smaller groups end with -1
        members = [
            np.pad(rows[:, list(g)], ((0, 0), (0, most - len(g))), constant_values=-1) for g in axis_index_groups
        ]
        return np.concatenate(members)


CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_INDEX, _PARTITION = make_aval((), np.dtype("int32")), make_aval((), np.dtype("uint32"))


def groups_along(em, names, axis_index_groups=None) -> str:
    """The attributes for the device groups of a collective over named mesh axes."""
    groups = em.manual.groups(em.meshes.positions(em.manual.mesh), names, axis_index_groups)
    return f"replica_groups = {i64_tensor(groups, groups.shape)}, {CHANNEL}"


def pairs_along(em, names, perm) -> str:
    """The attributes for the pairs of sender and receiver along named mesh axes."""
    groups = em.manual.groups(em.meshes.positions(em.manual.mesh), names)
    rows = np.array([(g[s], g[t]) for g in groups for s, t in perm], np.int64).reshape(-1, 2)
    return f"source_target_pairs = {i64_tensor(rows, rows.shape)}, {CHANNEL}"


def index_along(em, name):
    """The index of this device along a mesh axis, an int32."""
    manual = em.manual
    if name in manual.indices:
        return manual.indices[name]
    table = _coordinates(em.meshes.positions(manual.mesh), manual.mesh.axis_names.index(name))
    place = em.op("convert", _INDEX, em.op("partition_id", _PARTITION))
    rows = em.constant(table, make_aval(table.shape, table.dtype))
    row = em.op("dynamic_slice", make_aval((1,), table.dtype), rows, place, attrs="slice_sizes = array<i64: 1>")
    return em.op("reshape", _INDEX, row)


def _coordinates(positions: np.ndarray, axis: int) -> np.ndarray:
    """The index of each partition along an axis of the mesh."""
    out = np.zeros(positions.size, np.int32)
    out[positions.reshape(-1)] = np.indices(positions.shape)[axis].reshape(-1)
    return out
