"""Arrays over several devices: their layouts, transfers, and results of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib import _jax

from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import GSPMDSharding, assignment_of, named_like
from gradix._core.sharding import Sharding
from gradix._runtime import xla_buffers
from gradix._runtime.pending import real
from gradix._runtime.xla_buffers import physical
from gradix._runtime.xla_client import client, on_renewal, place

if TYPE_CHECKING:
    from gradix._runtime.xla_program import Executable, On

xc = lazy_module("jaxlib.xla_client")


class _Partitioned(_jax.GSPMDSharding):
    """A sharding with the two members that jaxlib's C++ code reads."""

    memory_kind = property(lambda self: self._memory_kind)

    def _to_xla_hlo_sharding(self, ndim):
        return self._hlo_sharding


class Layout:
    """A sharding of arrays of some rank, in all forms that transfers and programs need.

    Attributes:
        devices, local: all devices, in order, and those of this process.
        own: the places of `local` in `devices`.
        native: jaxlib's object for the sharding.
        coordinates: for each device, the place of its part along each axis.
        factors: the number of parts along each axis.
    """

    __slots__ = ("sharding", "devices", "local", "native", "coordinates", "factors", "is_single", "own")

    def __init__(self, sharding: Sharding, ndim: int):
        self.sharding, self.devices = sharding, tuple(assignment_of(sharding))
        here = client().process_index()
        self.own = [i for i, d in enumerate(self.devices) if d.process_index == here]
        self.local = [self.devices[i] for i in self.own]
        self.is_single = len(self.devices) == 1
        named: Any = sharding
        if not hasattr(sharding, "coordinates"):
            named = GSPMDSharding(self.devices)
        self.coordinates, self.factors = named.coordinates(ndim), list(named.factors(ndim))
        self.native = (
            place(self.devices[0]).sharding
            if self.is_single and not hasattr(sharding, "coordinates")
            else _Partitioned(_jax.DeviceList(self.devices), op_sharding(self.coordinates, self.factors))
        )

    def slices(self, shape) -> list[tuple]:
        """The index of the part of each device of this process, in an array of this shape."""
        part = [n // f for n, f in zip(shape, self.factors)]
        return [
            tuple([slice(int(c) * n, (int(c) + 1) * n) for c, n in zip(self.coordinates[i], part)]) for i in self.own
        ]


_layouts: BoundedCache[tuple, Layout] = BoundedCache(4096)
on_renewal(_layouts.clear)


def layout_of(sharding: Sharding, ndim: int) -> Layout:
    """The `Layout` of a sharding for arrays of this rank, which is made once."""
    key = (sharding, ndim)
    found = _layouts.get(key)
    if found is None:
        found = _layouts.keep(key, Layout(sharding, ndim))
    return found


def op_sharding(coordinates: np.ndarray, factors: list[int]):
    """XLA's form of a sharding, which lists the devices in the order of their parts."""
    op = xc.OpSharding()
    n, parts = len(coordinates), prod(factors)
    if parts == 1:
        op.type = xc.OpSharding.Type.REPLICATED
        return op
    op.type = xc.OpSharding.Type.OTHER
    flat = np.ravel_multi_index(tuple(coordinates.T), tuple(factors))
    op.tile_assignment_dimensions = [*factors, n // parts] if n > parts else list(factors)
    op.tile_assignment_devices = [int(i) for i in np.argsort(flat, kind="stable")]
    op.replicate_on_last_tile_dim = n > parts
    return op


def sharding_of(op, devices: tuple, mesh: Mesh | None, ndim: int) -> Sharding:
    """The sharding of an array that XLA describes by `op`, on `mesh` if that can express it."""
    native = xc.HloSharding.from_proto(op)
    n = len(devices)
    if native.is_replicated() or native.is_maximal() or ndim == 0:
        counts, parts = [1] * ndim, np.zeros((n, ndim), np.int64)
    else:
        dims = list(native.tile_assignment_dimensions())
        order = np.asarray(native.tile_assignment_devices(), np.int64)
        counts = [int(k) for k in dims[:ndim]]
        grid = np.indices(dims).reshape(len(dims), -1)[:ndim].T
        parts = np.zeros((n, ndim), np.int64)
        parts[order] = grid
    if mesh is not None:
        named = named_like(mesh, counts, parts, ndim)
        if named is not None:
            return named
    return GSPMDSharding(devices, counts, parts)


def put_sharded(array: np.ndarray, aval, sharding: Sharding):
    """A buffer of a NumPy array of the aval's physical dtype, divided over devices."""
    kind, where = physical(aval), layout_of(sharding, aval.ndim)
    if array.dtype.names:  # float0
        array = np.zeros(array.shape, bool)
    parts = [array[s] if array.ndim else array for s in where.slices(array.shape)]
    return put_parts(parts, kind, where)


def put_copied(array: np.ndarray, aval, sharding: Sharding):
    """As `put_sharded`, for an array that may be written to later and is therefore copied."""
    kind, where = physical(aval), layout_of(sharding, aval.ndim)
    slices = where.slices(array.shape)
    if prod(where.factors) == len(where.devices):
        return put_parts([array[s] for s in slices], kind, where, False)
    # XLA fails on one memory for several devices unless they may share it.
    copies: dict[tuple, np.ndarray] = {}
    for part_ends in map(_ends, slices):
        if part_ends not in copies:
            part = array[tuple([slice(*ends) for ends in part_ends])]
            copies[part_ends] = xla_buffers.aligned(part.shape, kind.dtype)
            copies[part_ends][...] = part
    return put_parts([copies[_ends(s)] for s in slices], kind, where)


def _ends(place: tuple) -> tuple:
    """An index of slices in a form that can be hashed."""
    return tuple([(s.start, s.stop) for s in place])


def put_parts(parts: Sequence, kind, where: Layout, is_owned: bool = True):
    """A buffer made of the parts of this process's devices.

    With `is_owned` nobody will write to the parts, so the buffer may share their memory.
    """
    semantics = _jax.HostBufferSemantics.ZERO_COPY if is_owned else _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    return _jax.batched_device_put(
        kind, where.native, list(parts), where.local, True, False, semantics, enable_x64=True
    )


def move(buffer, aval, sharding: Sharding):
    """A copy on another device of a buffer on one device."""
    where = layout_of(sharding, aval.ndim)
    copies = _jax.ArrayCopySemantics.REUSE_INPUT
    return _jax.batched_copy_array_to_devices_with_sharding(
        [real(buffer)], [_jax.DeviceList(where.devices)], [where.native], [copies]
    )[0]


def copied(buffer):
    """A copy of a buffer, on the same devices."""
    buffer = real(buffer)
    native = buffer._sharding
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer], [native._internal_device_list], [native], [_jax.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


def join(buffers: Sequence, aval, sharding: Sharding):
    """A buffer over several devices made of buffers on them, in the order of the sharding."""
    where = layout_of(sharding, aval.ndim)
    return _jax.ArrayImpl(physical(aval), where.native, [*map(real, buffers)], committed=True, _skip_checks=True)


def part_of(aval, sharding: Sharding):
    """The physical type of the part on one device."""
    where = layout_of(sharding, aval.ndim)
    return xla_buffers.Physical(tuple([n // f for n, f in zip(aval.shape, where.factors)]), physical(aval).dtype)


def parts(buffer) -> list:
    """The buffers on the devices of this process, in the order of the sharding."""
    return list(buffer._arrays)


def gather(buffer, aval, sharding: Sharding) -> np.ndarray:
    """The whole value of an array whose parts are all on devices of this process."""
    where = layout_of(sharding, aval.ndim)
    own = parts(buffer)
    if prod(where.factors) == 1:
        return xla_buffers.get(own[0])
    out = np.empty(aval.shape, physical(aval).dtype)
    for part, at in zip(own, where.slices(aval.shape)):
        out[at] = xla_buffers.get(part)
    out.setflags(write=False)
    return out


def run_in_turn(parts: Sequence[Executable], results: Sequence[tuple]) -> Callable[[list], list]:
    """A function of buffers over several devices that runs a program on each device in turn.

    Args:
        parts: the program of each device, in the order of the devices.
        results: the type and the sharding of each result over these devices.
    """
    runs = [(p.execute, p.handlers) for p in parts]
    kinds = [(physical(a), layout_of(s, a.ndim).native) for a, s in results]

    def run(buffers):
        rows = zip(*[b._arrays for b in buffers])
        made = [execute(list(row)).consume_with_handlers(handlers) for (execute, handlers), row in zip(runs, rows)]
        return [
            _jax.ArrayImpl(kind, native, list(column), committed=True, _skip_checks=True)
            for (kind, native), column in zip(kinds, zip(*made))
        ]

    return run


def chosen_shardings(loaded, out_avals, on: On) -> list[Sharding]:
    """The shardings of a program's results: those that were asked for, and what XLA chose."""
    wanted: Any = on.out_shardings
    native = loaded.get_output_shardings() if any(w is None for w in wanted) else None
    return [
        w if w is not None else _chosen(native, i, on.devices, on.mesh, a.ndim)
        for i, (w, a) in enumerate(zip(wanted, out_avals))
    ]


def _chosen(shardings, i: int, devices: tuple, mesh, ndim: int) -> Sharding:
    if not shardings:
        return GSPMDSharding(devices) if mesh is None else sharding_of_replicated(mesh, ndim)
    return sharding_of(shardings[i], devices, mesh, ndim)


def sharding_of_replicated(mesh: Mesh, ndim: int) -> Sharding:
    """The sharding that puts a whole array on each device of a mesh."""
    found = named_like(mesh, [1] * ndim, np.zeros((mesh.size, ndim), np.int64), ndim)
    assert found is not None
    return found
