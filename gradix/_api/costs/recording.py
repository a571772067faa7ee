"""What is recorded while a profile is taken: operations of compiled programs, and eager ones."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from gradix._api.costs.lines import Lined, described, lined, phase
from gradix._api.costs.runs import Counted, Run, runs_of
from gradix._api.devices import live_arrays
from gradix._api.jit.jitted_function import JitFunction, jitted_functions, kept
from gradix._api.jit.traced import Traced
from gradix._base import events, source
from gradix._core import seams
from gradix._core.array import ArrayImpl
from gradix._runtime import pending, xla_profiler
from gradix._runtime.hlo.module import Instruction, Module, Place
from gradix._stablehlo.emitter import identifier

STAGES_OF_COMPILATION = ("trace", "lower", "compile", "load")
# the recording that is going on
_recording: list[Recording] = []


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """What one line did in one operation of a compiled program, or one eager operation."""

    place: Place | None
    phase: str
    scope: str
    operation: str
    calls: int
    seconds: float
    nbytes: float
    flops: float


class Recording:
    """Everything that happened while a profile was taken; a context manager."""

    def __init__(self) -> None:
        self.compiler: list[events.Event] = []
        self.ended: list[float] = []  # when each event of the compiler ended, since the beginning
        self.runs: list[Run] = []
        self.eager: dict[tuple, list[float]] = {}  # count, seconds, bytes
        self.programs: dict[tuple[str, int], Lined] = {}
        self.signatures: dict[tuple[str, int], tuple[Traced, tuple]] = {}  # of the programs, with types
        self.seconds = 0.0
        self._is_inside = False
        self.functions: list[JitFunction] = []  # those that are made meanwhile

    def __enter__(self) -> Recording:
        if _recording or xla_profiler.sessions:
            raise RuntimeError(
                "gradix.profile: another profile is being recorded, and XLA records one at a time. End "
                "it first: leave its block, or call gradix.profiler.stop_trace()."
            )
        _recording.append(self)
        self._evaluate = seams.evaluate
        seams.evaluate = self._evaluated
        kept.append(self.functions)
        events.listeners.append(self._noted)
        events.details.append(self._noted)
        self._start = time.perf_counter()
        options = xla_profiler.ProfileOptions()
        options.host_tracer_level, options.python_tracer_level = 2, 0
        try:
            self._session = xla_profiler.new_session(options)
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            pending.finish()
            for array in live_arrays():
                if not array.is_deleted():
                    array.block_until_ready()
        finally:
            self.seconds = time.perf_counter() - self._start
            self._undo()
        self.runs = runs_of(xla_profiler.data_class("ProfileData"), self._session.stop())

    def _undo(self) -> None:
        _recording.clear()
        seams.evaluate = self._evaluate
        kept[:] = [held for held in kept if held is not self.functions]
        events.listeners.remove(self._noted)
        events.details.remove(self._noted)

    def _noted(self, event: events.Event) -> None:
        self.compiler.append(event)
        self.ended.append(time.perf_counter() - self._start)

    def _evaluated(self, primitive, arrays, params):
        """An eager operation, which is waited for so that its time is that of its line."""
        if self._is_inside:  # an operation of a program that an eager one holds
            return self._evaluate(primitive, arrays, params)
        at, start, known = source.current(2), time.perf_counter(), len(self.compiler)
        self._is_inside = True
        try:
            found = self._evaluate(primitive, arrays, params)
        finally:
            self._is_inside = False
        outs = found if isinstance(found, (list, tuple)) else [found]
        for out in outs:
            if type(out) is ArrayImpl and out._buffer is not None:
                out.block_until_ready()
        key = at, primitive.name
        counted = self.eager.setdefault(key, [0, 0.0, 0.0])
        counted[0] += 1
        # The time of its compilation is that of a stage.
        made = sum([event.seconds for event in self.compiler[known:] if event.kind in STAGES_OF_COMPILATION])
        counted[1] += max(time.perf_counter() - start - made, 0.0)
        moved = [*[a for a in arrays if type(a) is ArrayImpl], *outs]
        counted[2] += sum([getattr(x, "nbytes", 0) for x in moved])
        return found

    def counted(self) -> dict[tuple[str, int], dict[str, Counted]]:
        """How often each operation of each program ran, and how long, by name."""
        found: dict[tuple[str, int], dict[str, Counted]] = {}
        for run in self.runs:
            of = found.setdefault((run.program, run.number), {})
            calls, seconds = of.get(run.name, (0, 0.0))
            of[run.name] = Counted(calls + (not run.is_part), seconds + run.own)
        return found

    def work(self) -> list[Work]:
        """What each line did, apart for each operation; programs are compiled again with lines."""
        found = []
        for (name, number), counted in self.counted().items():
            signature = _signature_of(name, number, set(counted))
            if signature is None:  # one of an eager operation, whose time is counted as such
                continue
            program = self.programs[name, number] = lined(*signature)
            self.signatures[name, number] = signature
            for operation, (calls, seconds) in counted.items():
                instruction = program.module.by_name.get(operation)
                if instruction is not None:
                    found += _shared(program.module, instruction, calls, seconds)
        for (at, operation), (count, seconds, nbytes) in self.eager.items():
            place = Place(at.file, at.line)
            found.append(Work(place, "", "eager", operation, int(count), seconds, nbytes, 0.0))
        return found


def _shared(module: Module, whole: Instruction, calls: int, seconds: float) -> list[Work]:
    """What an instruction did, shared among the lines whose operations are fused into it."""
    found: dict[tuple, Work] = {}
    nbytes = module.bytes_moved(whole)
    for inner, part in module.shares(whole):
        origin = module.origin(inner if inner.place is not None else whole)
        key = origin.place, phase(origin), origin.scope
        before = found.get(key)
        # The cost of a loop is that of the operations in it, which are counted on their own.
        flops = 0.0 if whole.opcode in ("while", "conditional") else calls * module.flops(inner)
        more = part * seconds, part * calls * nbytes, flops
        if before is not None:
            more = before.seconds + more[0], before.nbytes + more[1], before.flops + more[2]
        name = origin.scope.rpartition("/")[2] or whole.opcode
        found[key] = Work(*key, name, calls, *more)
    return list(found.values())


def _signature_of(name: str, number: int, operations: set[str]) -> tuple[Traced, tuple] | None:
    """The signature of a jitted function whose program has this name and these operations, with types."""
    fits = []
    for function in jitted_functions():
        if identifier(function._name) != name:
            continue
        for traced in list(function._cache.values()):
            for avals, program in _compiled(traced):
                module = described(program)
                if operations <= module.by_name.keys():
                    fits.append((module.id == number, traced, avals))
    if not fits:
        return None
    _, traced, avals = max(fits, key=lambda fit: fit[0])
    return traced, avals


def _compiled(traced) -> list[tuple[tuple, Any]]:
    """The compiled programs of a signature, each with the types of its arguments and their places.

    A signature of a specialized function is a tree of programs, which is not looked into.
    """
    if not isinstance(traced, Traced):
        return []
    found: list[tuple[tuple, Any]] = [((), traced.program)] if traced.program is not None else []
    if traced.placing is not None:
        found += [(k, p) for k, p in traced.placing.programs.items() if hasattr(p, "executable")]
    return found
