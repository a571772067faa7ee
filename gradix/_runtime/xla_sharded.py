"""Arrays and programs over several devices, by XLA's partitioned execution through jaxlib."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from jaxlib import _jax

from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import GSPMDSharding, assignment_of, named_like
from gradix._core.sharding import Sharding
from gradix._runtime import xla_buffers, xla_callbacks, xla_options
from gradix._runtime.collective_calls import calls
from gradix._runtime.pending import real
from gradix._runtime.xla_buffers import physical
from gradix._runtime.xla_client import RuntimeFailure, client, executables, on_renewal, place
from gradix._runtime.xla_compiler import compile_and_load
from gradix._runtime.xla_custom_calls import ensure_named_in, explained
from gradix._runtime.xla_program import Executable, executing, runner_for
from gradix._stablehlo.emitter import unmarked
from gradix._stablehlo.structured import HOST_KERNEL

_host = lazy_module("gradix._runtime.xla_host_kernels")
hashlib, xc = lazy_module("hashlib"), lazy_module("jaxlib.xla_client")
xla_partitioning = lazy_module("gradix._runtime.xla_partitioning")


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

    __slots__ = (
        "sharding",
        "devices",
        "local",
        "native",
        "coordinates",
        "factors",
        "is_single",
        "own",
    )

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
            else _Partitioned(
                _jax.DeviceList(self.devices), op_sharding(self.coordinates, self.factors)
            )
        )

    def slices(self, shape) -> list[tuple]:
        """The index of the part of each device of this process, in an array of this shape."""
        part = [n // f for n, f in zip(shape, self.factors)]
        return [
            tuple([slice(int(c) * n, (int(c) + 1) * n) for c, n in zip(self.coordinates[i], part)])
            for i in self.own
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
    semantics = (
        _jax.HostBufferSemantics.ZERO_COPY
        if is_owned
        else _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    )
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
    return _jax.ArrayImpl(
        physical(aval), where.native, [*map(real, buffers)], committed=True, _skip_checks=True
    )


def part_of(aval, sharding: Sharding):
    """The physical type of the part on one device."""
    where = layout_of(sharding, aval.ndim)
    return xla_buffers.Physical(
        tuple([n // f for n, f in zip(aval.shape, where.factors)]), physical(aval).dtype
    )


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


class PartitionedExecutable(Executable):
    """A program compiled for several devices; `out_shardings` are the shardings of its results."""

    __slots__ = ("out_shardings",)

    def __init__(
        self,
        loaded,
        in_avals,
        out_avals,
        devices: tuple,
        mesh,
        wanted,
        *,
        functions: Sequence[Callable],
        has_host_kernels: bool,
        is_from_bytes: bool,
        name: tuple[str, str] = ("", ""),
    ):
        self.is_from_bytes, self.pace = is_from_bytes, None
        self.loaded, self.in_avals, self.out_avals = loaded, tuple(in_avals), tuple(out_avals)
        self.device, self.has_callbacks = devices[0], bool(functions)
        self.is_awaited = self.has_callbacks or has_host_kernels
        self.execute = executing(loaded, self.is_awaited)
        chosen = loaded.get_output_shardings() if any(w is None for w in wanted) else None
        self.out_shardings = [
            w if w is not None else _chosen(chosen, i, devices, mesh, a.ndim)
            for i, (w, a) in enumerate(zip(wanted, self.out_avals))
        ]
        self.handlers = [
            _handler(a, layout_of(s, a.ndim)) for a, s in zip(self.out_avals, self.out_shardings)
        ]
        self.run = runner_for(self.execute, self.handlers, functions, has_host_kernels)
        executables.add(self)
        if devices[0].platform == "cpu" and len(devices) > 1 and _communicates(loaded):
            self.is_awaited, self.run = (
                True,
                _waiting(
                    self.run,
                    name,
                    any(d.process_index != devices[0].process_index for d in devices),
                ),
            )


_COLLECTIVE = re.compile(
    r" (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|ragged-all-to-all)"
    r"(?:-start)?\("
)


def _communicates(loaded) -> bool:
    return any(_COLLECTIVE.search(m.to_string()) for m in loaded.hlo_modules())


def _waiting(
    run: Callable[[list], list], name: tuple[str, str], is_joint: bool
) -> Callable[[list], list]:
    """A function that runs a program whose devices communicate, and waits until it has ended.

    If several calls ran at the same time, XLA:CPU's threads could wait for each other for ever.
    With `is_joint` the devices are those of several processes, and the calls are recorded.
    """

    def call(buffers):
        outs = run(buffers)
        for out in outs:
            out.block_until_ready()
        return outs

    if not is_joint:
        return call

    def joint(buffers):
        calls.enter(*name)
        try:
            return call(buffers)
        finally:
            calls.leave()

    return joint


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
        made = [
            execute(list(row)).consume_with_handlers(handlers)
            for (execute, handlers), row in zip(runs, rows)
        ]
        return [
            _jax.ArrayImpl(kind, native, list(column), committed=True, _skip_checks=True)
            for (kind, native), column in zip(kinds, zip(*made))
        ]

    return run


def _name_of(text: str) -> tuple[str, str]:
    """The name of a module, and a digest of its text."""
    found = re.match(r"\s*(?:builtin\.)?module @(\S+)", text)
    return found[1] if found else "", hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _chosen(shardings, i: int, devices: tuple, mesh, ndim: int) -> Sharding:
    if not shardings:
        return GSPMDSharding(devices) if mesh is None else sharding_of_replicated(mesh, ndim)
    return sharding_of(shardings[i], devices, mesh, ndim)


def sharding_of_replicated(mesh: Mesh, ndim: int) -> Sharding:
    """The sharding that puts a whole array on each device of a mesh."""
    found = named_like(mesh, [1] * ndim, np.zeros((mesh.size, ndim), np.int64), ndim)
    assert found is not None
    return found


def _handler(aval, where: Layout) -> Any:
    kind = physical(aval)
    try:
        return _jax.array_result_handler(kind, where.native, True, True)
    except TypeError:  # Newer versions of jaxlib have no parameter `_skip_checks`.
        return _jax.array_result_handler(kind, where.native, True)


def compile_partitioned(
    text: str,
    in_avals,
    out_avals,
    host_callbacks,
    options: xla_options.Options,
    devices: tuple,
    *,
    mesh,
    out_shardings,
    blob: bytes | None = None,
    partitioners: Sequence = (),
) -> PartitionedExecutable:
    """The executable of a StableHLO module for several devices, compiled or loaded.

    Args:
        text: the module.
        in_avals, out_avals: the types of its arguments and results.
        host_callbacks: the `HostCallback`s of the module, by index.
        options: the compiler options.
        devices: the devices, in the order of the program's partitions.
        mesh: the mesh of the shardings of results that are not given.
        out_shardings: the sharding of each result, or None to let the compiler choose.
        blob: the bytes that `serialize` returned, to be loaded instead of compiling.
        partitioners: the partitioners of operations whose division is decided in Python.

    Raises:
        RuntimeFailure: XLA refuses the program or its options.
    """
    functions: list[Callable] = [xla_callbacks.host_function(c) for c in host_callbacks]
    ensure_named_in(text)
    has_host_kernels = HOST_KERNEL in text
    if has_host_kernels:
        _host.ensure_host_kernels()
    chosen = [s is None for s in out_shardings] if mesh is not None else None
    while True:
        try:
            built = xla_options.build(
                options, np.array([[d.id for d in devices]]), devices[0].platform, chosen
            )
            with _answering(partitioners, devices, mesh):
                loaded = _load(text, functions, devices, built, blob)
            return PartitionedExecutable(
                loaded,
                in_avals,
                out_avals,
                devices,
                mesh,
                out_shardings,
                name=_name_of(text),
                functions=functions,
                has_host_kernels=has_host_kernels,
                is_from_bytes=blob is not None,
            )
        except RuntimeFailure as error:
            if not xla_options.drop_unknown(options, error):
                if (plain := unmarked(text)) == text:
                    raise explained(error) from None
                text = plain


def _answering(partitioners: Sequence, devices: tuple, mesh):
    """A context manager in which XLA can ask the partitioners."""
    if not partitioners:
        return contextlib.nullcontext()
    return xla_partitioning.answering(partitioners, devices, mesh)


def _load(text, functions, devices, built, blob):
    where = _jax.DeviceList(devices)
    if blob is not None:
        return devices[0].client.deserialize_executable(
            blob, where, built, xla_callbacks.held_weakly(functions)
        )
    return compile_and_load(text, where, built, functions)
