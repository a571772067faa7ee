"""Programs: jaxprs that are compiled for one or several devices and called with arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base import config as _config, events
from gradix._base.lazy import lazy_module
from gradix._base.recursion_room import with_room
from gradix._core import seams
from gradix._core.array import ArrayImpl, OnlyType
from gradix._core.array_layouts import AutoLayout
from gradix._core.aval import located, seen
from gradix._core.dtypes import float0
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.operators import Array
from gradix._core.sharding import Placement
from gradix._runtime import (
    disk_cache,  # noqa: F401  (defines options)
    pending,
    placement,
    tuning,
    xla,
)
from gradix._runtime.placement import Orders

if TYPE_CHECKING:
    from gradix._runtime.compilation import Saved
    from gradix._runtime.placement import Home, Sides
    from gradix._stablehlo.module import LoweredModule

_module = lazy_module("gradix._stablehlo.module")
_compilation = lazy_module("gradix._runtime.compilation")
independent_parts = lazy_module("gradix._runtime.independent_parts")


def to_device(array: ArrayImpl):
    """The device buffer of an array, which is made when it is first needed."""
    buffer = array._buffer
    if buffer is None:
        host = array._host
        if host is None:
            raise _deleted(array)
        place = array.aval.place
        buffer = array._buffer = (
            xla.put(host, array.aval, owned=True)
            if place is None
            else placement.put_on(array, place.sharding, place.order)
        )
    return buffer


def fetch(array: ArrayImpl):
    """Copy the value of an array from its devices to the host."""
    if array._buffer is None:
        raise _deleted(array)
    place = array.aval.place
    if place is None:
        return xla.get(array._buffer)
    if not place.is_readable:
        raise RuntimeError(
            f"Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible: "
            f"{array.aval.str_short()} lies on {place.sharding}. You can use `multihost_utils.process_allgather` to "
            "print the global array or use `.addressable_shards` method of jax.Array to inspect the addressable "
            "(process local) shards."
        )
    if place.device is not None:
        return xla.get(array._buffer)
    unreduced = getattr(getattr(place.sharding, "spec", None), "unreduced", None)
    if unreduced:
        raise NotImplementedError(
            f"The value of {array.aval.str_short()} has not been summed over the mesh axes {sorted(unreduced)} yet: "
            "each device holds a summand. Call gradix.sharding.reshard(x, PartitionSpec(...)) first."
        )
    return xla.gather(array._buffer, array.aval, place.sharding)


class Donation:
    """The call to which an array was donated; the array keeps it for the error of a later use."""

    __slots__ = ("debug", "name", "place")

    def __init__(self, debug, name: str, place):
        self.debug, self.name, self.place = debug, name, place

    def message(self, index: int) -> str:
        """What an error says of the argument of this number."""
        names = self.debug.arg_names
        which = f"argument {names[index]}" if index < len(names) else "an argument"
        return (
            f"It was donated as {which} of {self.name} at {self.place}, and a result uses its memory now. Use what "
            "that function returned, or pass it a copy (x.copy())."
        )


def _deleted(array: ArrayImpl) -> Exception:
    found = getattr(array, "_extra", None)
    if type(found) is OnlyType:
        return TypeError(
            "A ShapeDtypeStruct does not have a value and cannot be used as a constant in a function "
            f"that is run, got one of type {array.aval.str_short()}. It stands for an array in eval_shape, "
            "make_jaxpr and lower. Pass an array to run the function."
        )
    how = "Its method delete() was called. Keep a copy of values that are needed later."
    if type(found) is tuple and type(found[0]) is Donation:
        how = found[0].message(found[1])
    return RuntimeError(f"Array has been deleted with shape={array.aval.str_short()}. {how}")


def lower(
    closed: ClosedJaxpr, name: str, home: Home | None = None, sides: Sides | None = None, **options
) -> LoweredModule:
    """Lower a program to StableHLO.

    The platform's rewrites are used, unless `rewrites=None`.

    Args:
        closed: the program.
        name: the name of the function.
        home: the devices that it is for; by default the first one.
        sides: the shardings of its arguments and results on several devices.
        options: as for `lower_jaxpr`.
    """
    if "platform" not in options:
        options["platform"] = xla.default_platform() if home is None else xla.platform_of(home.devices[0])
    platform = options["platform"]
    options.setdefault("rewrites", tuning.rewrites_of(platform))
    options.setdefault("named", True)
    if home is not None and sides is not None:
        options.update(placement.divisions_of(home, sides))
        if sides.orders is not None:
            options["arg_attrs"], options["result_attrs"] = map(xla.layout_modes, sides.orders)
    key = None if sides is None or closed.effects else _key_on_any_devices(name, home, sides, options)
    found = None if key is None else closed.memo.get(key)
    if found is not None:
        return found
    given, start = closed, time.perf_counter()
    if seen.counts is not None:
        closed = seen.counts.masked(closed)
    module = with_room(_module.lower_jaxpr, closed, name, trace_expand=seams.trace_expand, **options)
    events.tell_detail("lower", name, time.perf_counter() - start)
    if key is not None and not (module.host_callbacks or module.partitioners):
        given.memo[key] = module
    return module


def _key_on_any_devices(name: str, home: Home | None, sides: Sides, options: dict) -> tuple | None:
    """A key that is equal where only the devices of a program differ, on which its text does not depend.

    It is None if a sharding is on another mesh than that of the program.
    """
    mesh = None if home is None else home.mesh
    rows: list = []
    if sides.orders is not None:
        return None
    for s in (*sides.ins, *sides.outs):
        if s is not None and (getattr(s, "mesh", None) != mesh or (mesh is None and s.num_devices != 1)):
            return None
        rows.append(None if s is None else (getattr(s, "spec", None), s.memory_kind))
    shape = None if mesh is None else (mesh.shape_tuple, mesh.axis_types)
    given = [(k, options[k]) for k in ("donated", "keep_unused", "platform", "named", "places") if k in options]
    if len(given) + len(_FROM_HOME.intersection(options)) < len(options):
        return None
    rewrites = options["rewrites"]
    if rewrites is not None and rewrites is not tuning.rewrites_of(options["platform"]):
        return None
    selection = None if rewrites is None else _config.state.gradix_rewrites
    return "lowered", name, shape, tuple(rows), len(sides.ins), tuple(given), selection, _config.trace_context()


_FROM_HOME = frozenset(["rewrites", "devices", "mesh", "in_shardings", "out_shardings"])


class Program:
    """A compiled program; it is called with a list of arrays, and returns a list of arrays.

    Args:
        closed: the program.
        name: the name of the function.
        home: the devices that it runs on; None is the first one, for arguments without a place.
        avals: the types of the arguments with their places, where there is a home.
        in_shardings, out_shardings: for each argument and result the user's sharding, or None.
        orders: the orders of their axes in memory; by default arguments come in their own, and results are row-major.
        donated: the numbers of donated arguments.
        keep_unused: whether to keep arguments that the program does not use.
        compiler_options: the user's options for XLA.
        is_quick: whether to compile in the shortest time.
        lowered: the lowered module, if the program has been lowered already.
        saved: the serialized executable, if it is to be loaded instead of compiled.
    """

    __slots__ = (
        "executable",
        "run",
        "call",
        "consts",
        "kept",
        "out_avals",
        "lowered",
        "donated",
        "is_loaded",
        "home",
        "in_shardings",
        "orders",
        "_movers",
        "_later",
        "_parts",
    )

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        home: Home | None = None,
        avals=(),
        in_shardings=(),
        out_shardings=(),
        *,
        orders: Orders | None = None,
        donated=(),
        keep_unused: bool = False,
        compiler_options: dict | None = None,
        is_quick: bool = False,
        lowered: LoweredModule | None = None,
        saved: Saved | None = None,
    ):
        if seen.counts is not None and saved is None:
            closed = seen.counts.masked(closed)
        self.home, sides, on = home, None, xla.HERE
        if home is not None:
            placement.check_has_devices(home, name)
            avals = placement.types_on(home, avals)
            sides = placement.sides_of(closed, home, avals, in_shardings, out_shardings, orders)
            on = xla.On(home.devices, home.mesh, sides.outs)
        if lowered is None:
            lowered = lower(closed, name, home, sides, donated=donated, keep_unused=keep_unused)
        if saved is not None:
            self.executable, self.is_loaded = _compilation.loaded(lowered, saved, on), True
        else:
            options = tuning.options_for(lowered, compiler_options, is_alone=len(on.devices) < 2, is_quick=is_quick)
            self.executable, self.is_loaded = _compilation.obtain(lowered, name, options, on)
        tuning.tuned(self.executable, lowered)
        self.lowered = lowered
        self.donated = tuple([i for i in donated if i not in lowered.unusable_donations])
        whole = lowered.kept == tuple(range(len(closed.jaxpr.invars)))
        self.kept: tuple[int, ...] | None = None if whole else lowered.kept
        self.out_avals: Sequence = lowered.out_avals
        self.in_shardings: list = []
        self.orders = Orders([None] * len(closed.jaxpr.invars), [None] * len(self.out_avals))
        self._movers: list | None = None
        self._parts: Callable | None = None
        if home is None or sides is None:
            self.consts = [pending.real(to_device(c)) for c in lowered.const_args]
        else:
            first = placement.first_of(avals, in_shardings, lowered.kept)
            if sides.orders is not None:
                self.orders = self._chosen(sides.orders)
            self.out_avals = placement.located_results(
                lowered.out_avals, self.executable.out_shardings, sides, first, self.orders.outs
            )
            everywhere = placement.whole_on(home)
            self.in_shardings = [s if s is not None else everywhere for s in sides.ins]
            self.consts = [placement.put_on(c, everywhere) for c in lowered.const_args]
            movers = [placement.mover(avals[i], self.in_shardings[i], self.orders.ins[i]) for i in lowered.kept]
            self._movers = movers if any(movers) else None
            if len(home.devices) > 1:
                self._parts = lambda: independent_parts.runner(self, closed, home)
        if len(on.devices) > 1:
            self.run, self._later = self.executable.run, pending.waiting(self.executable.run)
        else:
            self.run, self._later = tuning.runners(self.executable, lowered, bool(self.donated))
        self.call = _caller(self)

    def __call__(self, args: list[Any]) -> list[Array]:
        return self.call(args)

    @property
    def is_plain(self) -> bool:
        """Whether it runs on one device, and takes the buffers of its arguments as they are."""
        return self._movers is self._parts is None

    def uncommit(self) -> None:
        """Make the results uncommitted, as results on the default device are."""
        self.out_avals = [
            located(a.plain, Placement(a.place.sharding, False, a.place.order), division=a.division)
            for a in self.out_avals
        ]
        self.call = _caller(self)

    def _chosen(self, orders: Orders) -> Orders:
        """The orders of axes, with those that XLA chose."""
        ins, outs = xla.orders_of(self.executable)
        chosen = dict(zip(self.lowered.kept, ins[len(self.lowered.const_args) :]))
        return Orders(
            [chosen.get(i) if isinstance(o, AutoLayout) else o for i, o in enumerate(orders.ins)],
            [found if isinstance(o, AutoLayout) else o for o, found in zip(orders.outs, outs)],
        )


def _caller(program: Program) -> Callable[[list], list]:
    """A function that runs a program on arrays.

    The usual program, without captured constants, unused arguments and arguments to be moved, has a
    faster function. Later calls of one over several devices may run its parts one after another.
    """
    run, later, out_avals = program.run, program._later, program.out_avals
    consts, kept, movers, parts = program.consts, program.kept, program._movers, program._parts
    empty = [i for i, a in enumerate(out_avals) if a.dtype == float0]
    if not consts and kept is None and movers is None and parts is None and not empty:
        if len(out_avals) == 1:
            (aval,) = out_avals

            def call_one(args):
                try:
                    (out,) = run([a._buffer if a._buffer is not None else to_device(a) for a in args])
                except TypeError:
                    (out,) = (later if pending.settle(args) else run)([a._buffer for a in args])
                return [ArrayImpl(None, aval, out)]

            return call_one

        def call_plain(args):
            try:
                outs = run([a._buffer if a._buffer is not None else to_device(a) for a in args])
            except TypeError:
                outs = (later if pending.settle(args) else run)([a._buffer for a in args])
            return [ArrayImpl(None, aval, b) for aval, b in zip(out_avals, outs)]

        return call_plain

    left = independent_parts.CALLS_BEFORE if parts is not None else 0

    def taken(args) -> list:
        if movers is None:
            return consts + [a._buffer if a._buffer is not None else to_device(a) for a in args]
        return consts + [to_device(a) if m is None else m(a) for m, a in zip(movers, args)]

    def call(args):
        nonlocal run, left
        if left:
            left -= 1
            if not left:
                run = parts() or run
        if kept is not None:
            args = [args[i] for i in kept]
        try:
            outs = run(taken(args))
        except TypeError:
            outs = (later if pending.settle(args) else run)(taken(args))
        arrays = [ArrayImpl(None, aval, b) for aval, b in zip(out_avals, outs)]
        # Results of dtype float0 have no bytes and no buffer, so they are NumPy arrays.
        for i in empty:
            arrays[i] = np.zeros(out_avals[i].shape, float0)
        return arrays

    return call
