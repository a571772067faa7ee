"""`jit(f, specialize=True)`: Python may branch on traced values; paths are compiled."""

from __future__ import annotations

import reprlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.jit.specialize_paths import Decision, Path, Paths
from gradix._api.jit.stats import TraceLog
from gradix._api.jit.traced import Traced
from gradix._base import source
from gradix._base.errors import ConcretizationTypeError, JAXTypeError
from gradix._control.call import jit_p
from gradix._control.program_interning import interned
from gradix._core.jaxpr import ClosedJaxpr, DebugInfo
from gradix._core.trace import Tracer, bind, new_level, state
from gradix._transforms.batch import BatchTracer
from gradix._transforms.segments import FETCH, Cut, LostValue, SegmentTrace, SegmentTracer, value_at

_ASKED = {
    "bool": "a truth value",
    "int": "an int",
    "index": "an int",
    "float": "a float",
    "complex": "a complex number",
    "array": "the numbers",
}


class Segment:
    """One compiled part of a function; it ends at a decision of Python or with the results.

    `ways` maps each value that the decision has had to the segment that follows.
    """

    __slots__ = (
        "cut",
        "traced",
        "kind",
        "place",
        "ways",
        "above",
        "out_tree",
        "used",
        "calls",
        "take",
        "moves",
    )

    def __init__(self, cut: Cut, traced: Traced | None, kind: str, place, above, out_tree=None):
        self.cut, self.traced, self.kind, self.place = cut, traced, kind, place
        # the previous segment, and the key of its decision
        self.above: tuple[Segment, Any] | None = above
        self.out_tree = out_tree
        self.ways: dict[Any, Segment] = {}
        self.used = self.calls = 0
        self.take = cut.take
        # i stands for value i carried into the segment, ~i for result i of its program
        self.moves = (
            [i if source == "in" else ~i for source, i in cut.give] if out_tree is None else None
        )

    def run(self, values: list, is_concrete: bool) -> list:
        """The results for the values carried into the segment; traced values are bound, not run."""
        traced = self.traced
        if traced is None:
            return []
        args = [values[i] for i in self.take]
        consts = self.cut.consts
        if is_concrete:
            return traced.run(consts + args if consts else args)
        return bind(jit_p, [*consts, *args], {"jaxpr": traced.jaxpr, "name": traced.name})

    def carried(self, outs: list, values: list) -> list:
        """The values carried to the next segment, or the results of the function."""
        if self.moves is None:
            return self.cut.carried(outs, values)
        return [values[i] if i >= 0 else outs[~i] for i in self.moves]

    def is_like(self, other: Segment) -> bool:
        """Whether both segments record the same operations and carry the same values on."""
        return (
            self.kind == other.kind
            and self.cut.recorded == other.cut.recorded
            and self.cut.numbers == other.cut.numbers
        )

    def decide(self, outs, values):
        """The value on which Python branches, and its key."""
        assert self.cut.decision is not None
        found = _fetch(value_at(self.cut.decision, outs, values), self.kind, self.place)
        return found, _key(found, self.kind)


def _is_concrete(values: list) -> bool:
    return state.stage is None and not any(isinstance(x, Tracer) for x in values)


def _fetch(x, kind: str, place):
    try:
        return FETCH[kind](x)
    except JAXTypeError:
        if not isinstance(x, Tracer):
            raise
        raise ConcretizationTypeError(
            x,
            f"Python asks for {_ASKED[kind]} of it at {place}, in a function jitted with "
            f"specialize=True. {_advice(x, kind)}",
        ) from None


def _advice(x, kind: str) -> str:
    if isinstance(x, BatchTracer):
        return (
            "Under vmap every example has its own value, and Python cannot take several branches at once: select "
            "with jnp.where or lax.cond, loop with lax.while_loop, or call the function in a Python loop over the "
            "examples."
        )
    if kind in ("float", "complex", "array"):
        return (
            "A Python number or NumPy array has no derivative, so it would be lost: compute with array "
            "functions, or ask for the value of lax.stop_gradient(x)."
        )
    return "The transformation around it has no values: pass specialize=True to the outermost jit."


def _key(value, kind: str):
    """A key that distinguishes decisions; floats and arrays are compared by their bits."""
    if kind == "float":
        return value.hex()
    if kind == "array":
        return value.shape, value.dtype.str, value.tobytes()
    return repr(value) if kind == "complex" else value


class Tree:
    """All paths that a function has taken for one signature.

    `run` runs the compiled segments and reads the value of each decision. For a value not met
    before, Python runs the function again: the known segments are only traced, and the operations
    after the new decision are compiled and run.
    """

    consts = ()
    has_refs = False
    warm = 1 << 30  # no code is generated for its calls

    def __init__(
        self, function: Callable, avals, debug: DebugInfo, make: Callable, log: TraceLog, limit: int
    ):
        self.function, self.avals, self.debug, self.make = function, avals, debug, make
        self.log, self.limit = log, limit
        self.programs: dict[ClosedJaxpr, Traced] = {}
        self.root: Segment | None = None
        self.ends: list[Segment] = []
        self.clock, self.warned, self.captures, self.is_begun = 0, False, False, False

    def run(self, leaves: list):
        values, script, segment = leaves, [], self.root
        is_concrete = _is_concrete(leaves)
        while segment is not None:
            outs = segment.run(values, is_concrete)
            if segment.out_tree is not None:
                self.clock = segment.used = self.clock + 1
                segment.calls += 1
                return segment.out_tree.unflatten(segment.carried(outs, values))
            value, key = segment.decide(outs, values)
            values = segment.carried(outs, values)
            script.append((segment, value))
            segment = segment.ways.get(key)
        return self._record(leaves, values, script)

    call = run

    def _record(self, leaves: list, values: list, script: list):
        if script:
            segment, value = script[-1]
            self.log.another_way(
                f"{_ASKED[segment.kind]} asked for at {segment.place} is new: {reprlib.repr(value)}"
            )
        elif self.is_begun:
            self.log.another_way("called within itself, or not kept")
        self.is_begun = True
        start, compiling = time.perf_counter(), self.log.seconds
        try:
            return Recording(self, values, script).run(self.avals)
        except LostValue:  # the function took another path for the same values
            self.root, self.ends = None, []
            return Recording(self, leaves, []).run(self.avals)
        finally:
            self.log.seconds = max(self.log.seconds, compiling + time.perf_counter() - start)

    def program(self, closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Traced]:
        """The program of a segment; equal segments, such as steps of a loop, are compiled once."""
        closed = interned(closed)
        found = self.programs.get(closed)
        if found is None:
            found = self.programs[closed] = self.make(closed)
        return closed, found

    def add(self, new: list[Segment]) -> None:
        """Add a new path, after the segments that it shares with paths added meanwhile."""
        end = new[-1]
        if self._joined(new):
            self.clock = end.used = self.clock + 1
            end.calls = 1
            self.ends.append(end)
        if len(self.ends) > self.limit:
            self._forget()

    def _joined(self, new: list[Segment]) -> bool:
        """Join the path to the tree. Returns False if a recursive call or a thread has added it."""
        for i, segment in enumerate(new):
            if segment.above is None:
                if self.root is None:
                    self.root = segment
                there = self.root
            else:
                above, key = segment.above
                there = above.ways.setdefault(key, segment)
            if there is segment:
                return True
            if there.out_tree is not None or not there.is_like(segment):
                return False
            new[i + 1].above = there, new[i + 1].above[1]  # type: ignore[index]
        return False

    def _forget(self) -> None:
        """Drop the least recently taken path."""
        end = min(self.ends, key=lambda e: e.used)
        self.ends.remove(end)
        if not self.warned:
            self.warned = True
            widest = max((s for e in self.ends for s in _to_root(e)), key=lambda s: len(s.ways))
            warnings.warn(
                f"{self.debug.name} was jitted with specialize=True and has taken more than max_paths="
                f"{self.limit} paths, so the least recently taken one is dropped, and compiled again if it "
                f"is taken again. {_ASKED[widest.kind].capitalize()} asked for at {widest.place} had "
                f"{len(widest.ways)} values. Branch on fewer values, keep the numbers in arrays, or raise "
                "max_paths.",
                stacklevel=6,
            )
        segment = end
        while segment.above is not None:
            above, key = segment.above
            above.ways.pop(key, None)
            if above.ways:
                break
            segment = above
        left = {s.cut.closed for e in self.ends for s in (e, *_to_root(e))}
        self.programs = {
            closed: traced for closed, traced in self.programs.items() if closed in left
        }

    def paths(self) -> list[Path]:
        """The paths taken so far."""
        return [
            Path(
                tuple(
                    [
                        Decision(s.kind, str(s.place), _shown(key, s.kind))
                        for s, key in _decisions(end)
                    ]
                ),
                end.calls,
            )
            for end in list(self.ends)
        ]


def _to_root(segment: Segment):
    while segment.above is not None:
        segment = segment.above[0]
        yield segment


def _decisions(end: Segment) -> list[tuple[Segment, Any]]:
    out, segment = [], end
    while segment.above is not None:
        out.append(segment.above)
        segment = segment.above[0]
    return out[::-1]


def _shown(key, kind: str):
    """The value of a decision, computed from its key."""
    if kind == "float":
        return float.fromhex(key)
    if kind == "array":
        shape, dtype, data = key
        return np.frombuffer(data, dtype).reshape(shape)
    return complex(key) if kind == "complex" else key


class Recording:
    """One run of the Python function, which adds a path to its tree.

    Args:
        values: the arguments, or the values that the known segments carry to the new decision.
        script: the known segments, each with the value of its decision.
    """

    def __init__(self, tree: Tree, values: list, script: list):
        self.tree, self.values, self.script = tree, values, script
        self.step = 0
        self.new: list[Segment] = []
        last = script[-1] if script else None
        self.above = (last[0], _key(last[1], last[0].kind)) if last else None
        # segments run in the trace around the recording
        self.stage = state.stage

    def run(self, avals):
        trace = SegmentTrace(self.decide, self.tree.debug)
        self.trace = trace
        with new_level(trace, stage=True):
            outs, out_tree = self.tree.function([trace.new_arg(a) for a in avals])
            if self.step < len(self.script):
                raise LostValue
            cut = trace.end(outs)
        segment = self._segment(cut, "", None, out_tree)
        results = segment.carried(self._run(segment), self.values)
        if not self.tree.captures:
            self.tree.add(self.new)
        return out_tree.unflatten(results)

    def decide(self, tracer: SegmentTracer, kind: str):
        cut = self.trace.cut(tracer)
        if self.step < len(self.script):
            segment, value = self.script[self.step]
            self.step += 1
            if segment.kind != kind or segment.cut.recorded != cut.recorded:
                raise LostValue
            self.trace.resume(segment.cut.numbers)
            return value
        segment = self._segment(cut, kind, source.current())
        outs = self._outside(self._run, segment)
        value, key = self._outside(segment.decide, outs, self.values)
        self.values, self.above = segment.carried(outs, self.values), (segment, key)
        self.trace.resume(cut.numbers)
        return value

    def _segment(self, cut: Cut, kind: str, place, out_tree=None) -> Segment:
        traced = None
        if cut.closed is not None:
            closed, traced = self.tree.program(cut.closed)
            cut = cut._replace(closed=closed)
            self.tree.captures |= any(isinstance(c, Tracer) for c in cut.consts)
        segment = Segment(cut, traced, kind, place, self.above, out_tree)
        if self.new and self.above is not None:
            above, key = self.above
            above.ways[key] = segment
        self.new.append(segment)
        return segment

    def _run(self, segment: Segment) -> list:
        return segment.run(self.values, _is_concrete([*self.values, *segment.cut.consts]))

    def _outside(self, function: Callable, *args):
        """Call a function in the trace around the recording, so that it is not recorded."""
        before = state.stage, state.place
        state.stage, state.place = self.stage, None
        try:
            return function(*args)
        finally:
            state.stage, state.place = before


def paths_of(trees) -> Paths:
    """The paths of several trees."""
    return Paths([path for tree in trees if type(tree) is Tree for path in tree.paths()])
