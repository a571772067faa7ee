"""Programs for arguments on a chosen device, or divided over several devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradix._base import config
from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl
from gradix._core.aval import located
from gradix._core.divisions import entries, explicit_part, sums
from gradix._core.dtypes import float0
from gradix._core.effects import MeshEffect
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.mesh import Mesh
from gradix._core.named_sharding import (
    NamedSharding,
    assignment_of,
    mesh_of_parts,
    named_as,
    parts_of,
)
from gradix._core.sharding import PartitionSpec, Placement, Sharding, SingleDeviceSharding
from gradix._runtime import pending, tuning, xla
from gradix._runtime.program import lower

transfers = lazy_module("gradix._base.transfers")

if TYPE_CHECKING:
    from gradix._runtime.compilation import Saved
    from gradix._stablehlo.module import LoweredModule

_compilation = lazy_module("gradix._runtime.compilation")

independent_parts = lazy_module("gradix._runtime.independent_parts")
_options = config.state
_placements: BoundedCache[Sharding, Placement] = BoundedCache(4096)


def committed(sharding: Sharding) -> Placement:
    """The placement of arrays that are committed to a sharding."""
    return _placements.get(sharding) or _placements.keep(sharding, Placement(sharding))


def sharding_of(array) -> Sharding:
    """The sharding of a concrete array; for one without a place, the first device."""
    place = array.aval.place
    return place.sharding if place is not None else SingleDeviceSharding(xla.local_devices()[0])


class Home(NamedTuple):
    """The devices that a program runs on, in order, and the mesh of its results' shardings."""

    devices: tuple
    mesh: Mesh | None


def home_of(named: Sequence[tuple[str, Sharding]], effects, name: str) -> Home | None:
    """The devices on which all shardings and the program's effects agree; None if there are none.

    Args:
        named: pairs of a text that names a sharding in errors, and the sharding.
        effects: the effects of the program.
        name: the name of the program, for errors.

    Raises:
        ValueError: two of them need different devices.
    """
    asked = [
        (what, assignment_of(s), getattr(s, "mesh", None))
        for what, s in named
        if isinstance(getattr(s, "mesh", None), Mesh) or not hasattr(s, "spec")
    ]
    asked += [
        (f"a sharding or shard_map inside of {name}", e.mesh._flat_devices_tuple, e.mesh)
        for e in effects
        if isinstance(e, MeshEffect) and isinstance(e.mesh, Mesh)
    ]
    context = _options.gradix_mesh
    if not asked:
        return (
            Home(context._flat_devices_tuple, context)
            if isinstance(context, Mesh) and not context.empty
            else None
        )
    what, first, _ = asked[0]
    for other, devices, _ in asked[1:]:
        if devices != first and set(devices) != set(first):
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got {_on(what, first)} and "
                f"{_on(other, devices)}. Put them on the same devices with device_put first."
            )
    mesh = next((m for _, _, m in asked if isinstance(m, Mesh)), None)
    if (
        mesh is None
        and isinstance(context, Mesh)
        and set(context._flat_devices_tuple) == set(first)
    ):
        mesh = context
    if mesh is None and len(first) > 1:
        mesh = mesh_of_parts(next(s for _, s in named if assignment_of(s) == first))
    return Home(mesh._flat_devices_tuple if mesh is not None else first, mesh)


def _on(what: str, devices) -> str:
    return f"{what} with device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"


class PlacedProgram:
    """A program compiled for the devices of a home, and for arguments with given places.

    Args:
        closed: the program.
        name: the name of the function.
        home: the devices.
        avals: the types of the arguments, with their places.
        in_shardings, out_shardings: for each argument and result the user's sharding, or None.
        donated: the numbers of donated arguments.
        keep_unused: whether to keep arguments that the program does not use.
        compiler_options: the user's options for XLA.
        lowered: the lowered module, if the program has been lowered already.
        saved: the serialized executable, if it is to be loaded instead of compiled.
    """

    __slots__ = (
        "executable",
        "takes",
        "consts",
        "kept",
        "out_avals",
        "lowered",
        "donated",
        "is_loaded",
        "call",
        "in_shardings",
        "home",
        "closed",
    )

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        home: Home,
        avals,
        in_shardings=(),
        out_shardings=(),
        *,
        donated=(),
        keep_unused: bool = False,
        compiler_options: dict | None = None,
        lowered: LoweredModule | None = None,
        saved: Saved | None = None,
    ):
        self.home, self.closed, mesh = home, closed, home.mesh
        ins = [
            w if w is not None else _own(a, home)
            for w, a in zip(in_shardings or [None] * len(avals), avals)
        ]
        outs = list(out_shardings or [None] * len(closed.out_avals))
        if mesh is None:
            outs = [
                SingleDeviceSharding(home.devices[0]) if len(home.devices) == 1 else o for o in outs
            ]
        elif mesh.are_all_axes_explicit:
            outs = [
                o if o is not None else NamedSharding(mesh, _spec_of(a))
                for o, a in zip(outs, closed.out_avals)
            ]
        if lowered is None:
            lowered = lower_placed(closed, name, home, ins, outs, donated, keep_unused=keep_unused)
        self.lowered, self.kept = lowered, lowered.kept
        if saved is not None:
            self.executable, self.is_loaded = (
                xla.compile_partitioned(
                    lowered.text,
                    lowered.in_avals,
                    lowered.out_avals,
                    (),
                    saved.options,
                    home.devices,
                    mesh=mesh,
                    out_shardings=outs,
                    blob=saved.code,
                ),
                True,
            )
        else:
            options = tuning.options_for(lowered, compiler_options, is_alone=len(home.devices) == 1)
            self.executable, self.is_loaded = _compilation.obtain_partitioned(
                lowered, name, options, home.devices, mesh, outs
            )
        tuning.tuned(self.executable, lowered)
        self.donated = tuple([i for i in donated if i not in lowered.unusable_donations])
        first = _first(avals, in_shardings, self.kept)
        places = [
            committed(s if w is not None else _as_given(s, a.ndim, first))
            for s, w, a in zip(self.executable.out_shardings, outs, lowered.out_avals)
        ]
        self.out_avals = [
            located(a.plain, p, division=explicit_part(p.sharding, a.ndim))
            for a, p in zip(lowered.out_avals, places)
        ]
        everywhere = whole_on(home)
        self.in_shardings = [s if s is not None else everywhere for s in ins]
        self.consts = [put_on(c, everywhere) for c in lowered.const_args]
        self.takes = [_taker(avals[i], self.in_shardings[i]) for i in self.kept]
        self.call = _caller(self, closed)

    def __call__(self, args: list[Any]) -> list:
        return self.call(args)

    def uncommit(self) -> None:
        """Make the results uncommitted, as results on the default device are."""
        self.out_avals = [
            located(a.plain, Placement(a.place.sharding, False), division=a.division)
            for a in self.out_avals
        ]
        self.call = _caller(self, self.closed)


def _spec_of(aval) -> PartitionSpec:
    left = sums(aval)
    return PartitionSpec(*entries(aval), unreduced=left.unreduced, reduced=left.reduced)


def _first(avals, in_shardings, kept) -> tuple[Any, int]:
    """The sharding of the first argument, if the user committed it, and its number of axes."""
    if not kept or (in_shardings and in_shardings[kept[0]] is not None):
        return None, 0
    aval = avals[kept[0]]
    place = aval.place
    return (place.sharding if place is not None and place.is_committed else None), aval.ndim


def _as_given(chosen: Sharding, ndim: int, first: tuple[Any, int]) -> Sharding:
    """The sharding that the compiler chose for a result, as the user expressed it if possible.

    If it divides as the sharding of the first argument does, that sharding is returned instead.
    """
    given, given_ndim = first
    if given_ndim != ndim or not isinstance(given, NamedSharding):
        return chosen
    return given if parts_of(given, ndim) == parts_of(chosen, ndim) else chosen


def lower_placed(
    closed: ClosedJaxpr,
    name: str,
    home: Home,
    ins,
    outs,
    donated=(),
    *,
    keep_unused: bool = False,
    places: bool = False,
) -> LoweredModule:
    """Lower a program for the devices of a home."""
    common = {
        "donated": donated,
        "keep_unused": keep_unused,
        "places": places,
        "platform": xla.platform_of(home.devices[0]),
    }
    if home.mesh is None:
        return lower(closed, name, **common)
    whole = whole_on(home)
    return lower(
        closed,
        name,
        **common,
        devices=home.devices,
        mesh=home.mesh,
        in_shardings=[_with_spec(s) or whole for s in ins],
        out_shardings=[_with_spec(s) for s in outs],
    )


@functools.lru_cache(None)
def whole_on(home: Home) -> Sharding:
    """The sharding that puts the whole array on each device."""
    return (
        NamedSharding(home.mesh, PartitionSpec())
        if home.mesh is not None
        else SingleDeviceSharding(home.devices[0])
    )


xla.on_renewal(whole_on.cache_clear)
xla.on_renewal(_placements.clear)
xla.on_renewal(parts_of.cache_clear)


def _with_spec(sharding):
    """The sharding if it has a spec, so that a module's text can express it; else None."""
    return sharding if getattr(sharding, "spec", None) is not None else None


def _own(aval, home: Home):
    """The sharding of a committed argument, if the program can take it in this form; else None."""
    place = aval.place
    if place is None or not place.is_committed:
        return None
    if home.mesh is not None and getattr(place.sharding, "spec", None) is None:
        return named_as(place.sharding, home.mesh, aval.shape) if len(home.devices) > 1 else None
    return place.sharding


def _taker(aval, wanted: Sharding) -> Callable:
    """A function that returns the buffer of an argument, moved if its sharding is not as wanted."""
    place = aval.place
    if (
        place is not None
        and parts_of(place.sharding, aval.ndim) == parts_of(wanted, aval.ndim)
        and (assignment_of(place.sharding) == assignment_of(wanted))
    ):
        return _ready

    def moved(x):
        check_move(x, wanted)
        return put_on(x, wanted)

    return moved


def check_move(x: ArrayImpl, sharding: Sharding) -> None:
    """Apply the option `transfer_guard_device_to_device` to an array that is moved implicitly."""
    if _options.jax_transfer_guard_device_to_device is None:
        return
    is_number = not x.aval.ndim and x.aval.place is None
    if not is_number and getattr(x, "_extra", None) is not transfers.FROM_HOST:
        what = f"aval={x.aval.str_short()}, dst_sharding={sharding}"
        transfers.check("device_to_device", what)


def _ready(array):
    return array._buffer if array._buffer is not None else buffer_of(array)


def buffer_of(array: ArrayImpl):
    """Make the buffer of an array that has only its host value, on the devices of its type."""
    place = array.aval.place
    buffer = array._buffer = xla.put_sharded(array.host, array.aval, place.sharding)
    return buffer


def put_on(array: ArrayImpl, sharding: Sharding):
    """A buffer with an array's value, divided over devices by a sharding."""
    aval = array.aval
    host = array._host
    if host is None:
        place = aval.place
        if place is not None and place.device is not None and sharding.num_devices == 1:
            return xla.move(array._buffer, aval, sharding)
        host = array.host
    return xla.put_sharded(host, aval, sharding)


def _caller(program: PlacedProgram, closed: ClosedJaxpr) -> Callable[[list], list]:
    run, later = program.executable.run, pending.waiting(program.executable.run)
    if len(program.home.devices) == 1:
        run, later = tuning.runners(program.executable, program.lowered, bool(program.donated))
    consts, kept, takes, out_avals = (
        program.consts,
        program.kept,
        program.takes,
        program.out_avals,
    )
    empty = [i for i, a in enumerate(out_avals) if a.dtype == float0]

    left = independent_parts.CALLS_BEFORE

    def call(args):
        nonlocal run, left
        left -= 1
        if not left:
            run = independent_parts.runner(program, closed) or run
        try:
            outs = run(consts + [take(args[i]) for i, take in zip(kept, takes)])
        except TypeError:
            is_left = pending.settle([args[i] for i in kept])
            outs = (later if is_left else run)(
                consts + [take(args[i]) for i, take in zip(kept, takes)]
            )
        arrays = [ArrayImpl(None, aval, b) for aval, b in zip(out_avals, outs)]
        for i in empty:
            arrays[i] = np.zeros(out_avals[i].shape, float0)  # type: ignore[call-overload]
        return arrays

    return call
