"""Programs: jaxprs that are compiled for one device and called with arrays."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base import events
from gradix._base.lazy import lazy_module
from gradix._base.recursion_room import FOR_PROGRAMS
from gradix._core.array import ArrayImpl, OnlyType
from gradix._core.dtypes import float0
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.operators import Array
from gradix._runtime import (
    disk_cache,  # noqa: F401  (defines options)
    pending,
    tuning,
    xla,
)

if TYPE_CHECKING:
    from gradix._runtime.compilation import Saved
    from gradix._stablehlo.module import LoweredModule

_module = lazy_module("gradix._stablehlo.module")
_compilation = lazy_module("gradix._runtime.compilation")

_trace_expand: list[Callable] = []


def install_tracer(function) -> None:
    """Set the function `(function, avals, params) -> ClosedJaxpr` that traces `expand` rules."""
    _trace_expand[:] = [function]


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
            else xla.put_sharded(host, array.aval, place.sharding)
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


def lower(closed: ClosedJaxpr, name: str, **options) -> LoweredModule:
    """Lower a program to StableHLO, by default for the platform of the first device.

    The platform's rewrites are used, unless `rewrites=None`.
    """
    platform = options.setdefault("platform", xla.default_platform())
    options.setdefault("rewrites", tuning.rewrites_of(platform))
    options.setdefault("named", True)
    start = time.perf_counter()
    with FOR_PROGRAMS:
        module = _module.lower_jaxpr(
            closed, name, trace_expand=_trace_expand[0] if _trace_expand else None, **options
        )
    events.tell_detail("lower", name, time.perf_counter() - start)
    return module


class Program:
    """A compiled program; it is called with a list of arrays, and returns a list of arrays."""

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
    )

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        *,
        donated=(),
        keep_unused: bool = False,
        compiler_options: dict | None = None,
        is_quick: bool = False,
        lowered: LoweredModule | None = None,
        saved: Saved | None = None,
    ):
        if lowered is None:
            lowered = lower(closed, name, donated=donated, keep_unused=keep_unused)
        if saved is not None:
            self.executable = xla.deserialize(
                saved.code, lowered.in_avals, lowered.out_avals, (), saved.options
            )
            self.is_loaded = True
        else:
            options = tuning.options_for(lowered, compiler_options, is_quick=is_quick)
            self.executable, self.is_loaded = _compilation.obtain(lowered, name, options)
        tuning.tuned(self.executable, lowered)
        self.consts = [pending.real(to_device(c)) for c in lowered.const_args]
        self.out_avals = lowered.out_avals
        self.lowered = lowered
        self.donated = tuple([i for i in donated if i not in lowered.unusable_donations])
        self.run, later = tuning.runners(self.executable, lowered, bool(self.donated))
        whole = lowered.kept == tuple(range(len(closed.jaxpr.invars)))
        self.kept: tuple[int, ...] | None = None if whole else lowered.kept
        self.call = _caller(self.run, later, self.consts, self.kept, self.out_avals)

    def __call__(self, args: list[Any]) -> list[Array]:
        return self.call(args)


def _caller(run, later, consts: list, kept, out_avals) -> Callable[[list], list]:
    """A function that runs a program on arrays.

    The usual program, without captured constants and unused arguments, has a faster function.

    Args:
        run, later: functions that run it on buffers; `later` takes pending ones, which `run` may
            refuse with a TypeError.
        consts: the buffers of constants.
        kept: the numbers of the arguments that the program uses; None for all.
        out_avals: the types of its results.
    """
    empty = [i for i, a in enumerate(out_avals) if a.dtype == float0]
    if not consts and kept is None and not empty:
        if len(out_avals) == 1:
            (aval,) = out_avals

            def call_one(args):
                try:
                    (out,) = run(
                        [a._buffer if a._buffer is not None else to_device(a) for a in args]
                    )
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

    def call(args):
        if kept is not None:
            args = [args[i] for i in kept]
        try:
            outs = run(
                consts + [a._buffer if a._buffer is not None else to_device(a) for a in args]
            )
        except TypeError:
            is_left = pending.settle(args)
            outs = (later if is_left else run)(consts + [a._buffer for a in args])
        arrays = [ArrayImpl(None, aval, b) for aval, b in zip(out_avals, outs)]
        # Results of dtype float0 have no bytes and no buffer, so they are NumPy arrays.
        for i in empty:
            arrays[i] = np.zeros(out_avals[i].shape, float0)
        return arrays

    return call
