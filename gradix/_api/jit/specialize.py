"""`jit(f, specialize=True)`: Python may branch on traced values; paths are compiled."""

from __future__ import annotations

import reprlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.jit import donation
from gradix._api.jit.specialize_paths import Decision, Path, Paths
from gradix._api.jit.stats import TraceLog
from gradix._api.jit.traced import Traced
from gradix._api.refs import given_twice, overlapping
from gradix._base import source
from gradix._base.bounded import BoundedCache
from gradix._base.errors import ConcretizationTypeError, JAXTypeError
from gradix._control.program_interning import interned
from gradix._core.jaxpr import ClosedJaxpr, DebugInfo
from gradix._core.refs import AbstractRef, Ref
from gradix._core.trace import Tracer, new_level, state
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

    Attributes:
        cut: what was recorded.
        traced: its program; None where nothing is to be computed.
        kind, place: of the decision.
        above: the previous segment, and the key of its decision.
        origins: for each value carried into it, the number of the leaf that it is, or None.
        ways: maps each value that the decision has had to the segment that follows.
        out_tree: the structure of the function's result, if it ends here.
        writes: the mutable arrays whose last values follow the results, each by the number of the
            leaf or itself.
    """

    __slots__ = (
        "cut",
        "traced",
        "kind",
        "place",
        "ways",
        "above",
        "origins",
        "out_tree",
        "writes",
        "used",
        "calls",
        "take",
        "moves",
        "reads",
    )

    def __init__(self, cut: Cut, traced: Traced | None, decision: tuple, above, origins: list, end=None):
        self.cut, self.traced, (self.kind, self.place) = cut, traced, decision
        self.above: tuple[Segment, Any] | None = above
        self.origins, (self.out_tree, self.writes) = origins, end or (None, ())
        self.ways: dict[Any, Segment] = {}
        self.used = self.calls = 0
        self.take = cut.take
        # i stands for value i carried into the segment, ~i for result i of its program
        self.moves = [i if source == "in" else ~i for source, i in cut.give] if not end else None
        self.reads = any(isinstance(c, Ref) for c in cut.consts)

    def operands(self, values: list) -> list:
        """The operands of its program, for the values carried into it."""
        args = [values[i] for i in self.take]
        consts: list = self.cut.consts
        if self.reads:
            consts = [c.read() if isinstance(c, Ref) else c for c in consts]
        return consts + args if consts else args

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

    A call runs the compiled segments and reads the value of each decision. For a value not met
    before, Python runs the function again: the known segments are only traced, and the operations
    after the new decision are compiled and run. Mutable arrays are written at the end of a call.

    Args:
        function: `function(inside, operands)` calls the user's function, with refs `inside` for
            those leaves, by number, that are refs; it returns arrays and their structure.
        avals: the types of the leaves of the arguments.
        debug: the names of the function and its arguments.
        make: `make(closed, donated, names)` is the signature of a segment, and `make(closed,
            donated, names, sizes)` the one for these values of the dimensions it leaves open.
        log: counts traces.
        limit: the number of paths that are kept.
        donated: the numbers of the leaves that are donated.
        put: `put(arrays, out_tree)` moves arguments, where `out_tree` is None, or results, to where
            `jit` was asked to have them; None where it was not.
    """

    consts = ()
    refs = None
    is_direct = False
    warm = 1 << 30  # no code is generated for its calls

    def __init__(
        self,
        function: Callable,
        avals,
        debug: DebugInfo,
        make: Callable,
        log: TraceLog,
        *,
        limit: int,
        donated: tuple[int, ...] = (),
        put: Callable | None = None,
    ):
        self.function, self.avals, self.debug, self.make = function, avals, debug, make
        self.log, self.limit, self.donated, self.put = log, limit, donated, put
        self.lent = [i for i, a in enumerate(avals) if isinstance(a, AbstractRef)]
        self.arrays = [i for i in range(len(avals)) if i not in self.lent]
        self.programs: dict[tuple, Traced] = {}
        self.instances: BoundedCache[tuple, Traced] = BoundedCache(1024)
        self.root: Segment | None = None
        self.ends: list[Segment] = []
        self.clock, self.warned, self.captures, self.is_begun = 0, False, False, False

    def call(self, leaves: list, sizes: dict | None = None):
        """The function's result for these leaves of its arguments, which may be traced.

        Args:
            sizes: the values of the dimensions that the types of the arguments leave open.
        """
        values = leaves
        if self.lent:
            values = [leaves[i] for i in self.arrays] + [leaves[i].read() for i in self.lent]
        if self.put is not None:
            values = self.put(values, None)
        given, script, segment = values, [], self.root
        is_concrete = _is_concrete(values)
        while segment is not None:
            outs = self.execute(segment, values, is_concrete, sizes)
            if segment.out_tree is not None:
                self.clock = segment.used = self.clock + 1
                segment.calls += 1
                return self._result(segment, segment.carried(outs, values), leaves, given)
            value, key = segment.decide(outs, values)
            values = segment.carried(outs, values)
            script.append((segment, value))
            segment = segment.ways.get(key)
        end, outs = self._record(given, values, script, sizes)
        return self._result(end, outs, leaves, given)

    call_any = call

    def execute(self, segment: Segment, values: list, is_concrete: bool, sizes: dict | None):
        """The results of a segment; traced values are bound, not run."""
        traced = segment.traced
        if traced is None:
            return []
        args = segment.operands(values)
        if segment.reads or not is_concrete:
            is_concrete = _is_concrete(args)
        if sizes is not None:
            key = traced, *sizes.values()
            found = self.instances.get(key)
            if found is None:
                found = self.make(traced.jaxpr, traced.donated, traced.debug.arg_names, sizes)
                self.instances.keep(key, found)
            traced = found
        return traced.run(args) if is_concrete else traced.around(traced.inside)(args)

    def _result(self, end: Segment, outs: list, leaves: list, given: list):
        """The function's result, from the values at the end of a path; writes mutable arrays.

        Args:
            leaves, given: the leaves of the arguments, and the operands that they were moved to.
        """
        if end.writes:
            n = len(outs) - len(end.writes)
            refs = [leaves[r] if isinstance(r, int) else r for r in end.writes]
            used = [*refs, *[leaves[i] for i in self.lent if i not in end.writes]]
            pair = overlapping(used)
            if pair is not None:
                names = [f"{used[i].aval} made at {used[i]._place}" for i in pair]
                raise given_twice(self.debug.name, used[pair[0]], *names)
            for ref, value in zip(refs, outs[n:]):
                ref.write(value)
            outs = outs[:n]
        if self.put is not None:
            donation.follow(
                [leaves[i] for i in self.arrays if i in self.donated],
                [x for i, x in zip(self.arrays, given) if i in self.donated],
            )
            outs = self.put(outs, end.out_tree)
        return end.out_tree.unflatten(outs)

    def _record(self, given: list, values: list, script: list, sizes) -> tuple[Segment, list]:
        if script:
            segment, value = script[-1]
            self.log.another_way(f"{_ASKED[segment.kind]} asked for at {segment.place} is new: {reprlib.repr(value)}")
        elif self.is_begun:
            self.log.another_way("called within itself, or not kept")
        self.is_begun = True
        start, compiling = time.perf_counter(), self.log.seconds
        try:
            return Recording(self, values, script, sizes).run()
        except LostValue:  # the function took another path for the same values
            self.root, self.ends = None, []
            return Recording(self, given, [], sizes).run()
        finally:
            self.log.seconds = max(self.log.seconds, compiling + time.perf_counter() - start)

    def operand_avals(self) -> list:
        """The types of the operands: the leaves that are arrays, and the values of refs."""
        return [self.avals[i] for i in self.arrays] + [self.avals[i].inner_aval for i in self.lent]

    def program(self, cut: Cut, origins: list) -> tuple[ClosedJaxpr, Traced]:
        """The program of a segment; equal segments, such as steps of a loop, are compiled once.

        A donated argument is given to the last segment of a path that takes it. While the function
        runs, its arguments are carried on, so that no path is begun again without them.
        """
        assert cut.closed is not None
        closed, n = interned(cut.closed), len(cut.consts)
        later = {i for source, i in (*cut.give, cut.decision or ("", 0)) if source == "in"}
        donated = tuple([n + k for k, i in enumerate(cut.take) if origins[i] in self.donated and i not in later])
        key = closed, donated
        found = self.programs.get(key)
        if found is None:
            every = self.debug.arg_names
            taken = [origins[i] for i in cut.take]
            names = [f"constant {i}" for i in range(n)]
            names += [f"value {i}" if o is None else every[o] for i, o in enumerate(taken)]
            found = self.programs[key] = self.make(closed, donated, tuple(names))
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
        left = {s.traced for e in self.ends for s in (e, *_to_root(e))}
        self.programs = {key: traced for key, traced in self.programs.items() if traced in left}

    def paths(self) -> list[Path]:
        """The paths taken so far."""
        return [
            Path(tuple([Decision(s.kind, str(s.place), _shown(key, s.kind)) for s, key in _decisions(end)]), end.calls)
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


class Sized:
    """The paths of a function for some sizes of the axes that its signature leaves open."""

    consts = ()
    refs = None
    is_direct = False
    warm = 1 << 30

    def __init__(self, tree: Tree, sizes: dict):
        self.tree, self.sizes = tree, sizes

    def call(self, leaves: list):
        return self.tree.call(leaves, self.sizes)

    call_any = call


class Recording:
    """One run of the Python function, which adds a path to its tree.

    Args:
        values: the arguments, or the values that the known segments carry to the new decision.
        script: the known segments, each with the value of its decision.
        sizes: the values of the dimensions that the types of the arguments leave open.
    """

    def __init__(self, tree: Tree, values: list, script: list, sizes: dict | None):
        self.tree, self.values, self.script, self.sizes = tree, values, script, sizes
        self.step = 0
        self.new: list[Segment] = []
        last = script[-1] if script else None
        self.above = (last[0], _key(last[1], last[0].kind)) if last else None
        if last is None:
            self.origins: list = [*tree.arrays, *[None] * len(tree.lent)]
        else:
            self.origins = _after(last[0])
        # segments run in the trace around the recording
        self.stage = state.stage

    def run(self) -> tuple[Segment, list]:
        """The last segment of the path, and the values at its end."""
        tree = self.tree
        self.trace = trace = SegmentTrace(self.decide, tree.debug)
        inside = {i: Ref(tree.avals[i], None) for i in tree.lent}
        with new_level(trace, stage=True):
            tracers = [trace.new_arg(a) for a in tree.operand_avals()]
            for ref, tracer in zip(inside.values(), tracers[len(tree.arrays) :]):
                trace.lend(ref, tracer)
            outs, out_tree = tree.function(inside, tracers[: len(tree.arrays)])
            if self.step < len(self.script):
                raise LostValue
            written = [r for r in trace.refs.values() if r.is_written]
            cut = trace.end([*outs, *[r.value for r in written]])
        place = {id(r): i for i, r in inside.items()}
        writes = tuple([place.get(id(r.ref), r.ref) for r in written])
        segment = self._segment(cut, ("", None), (out_tree, writes))
        results = segment.carried(self._run(segment), self.values)
        if not tree.captures:
            tree.add(self.new)
        return segment, results

    def decide(self, tracer: SegmentTracer, kind: str):
        cut = self.trace.cut(tracer)
        if self.step < len(self.script):
            segment, value = self.script[self.step]
            self.step += 1
            if segment.kind != kind or segment.cut.recorded != cut.recorded:
                raise LostValue
            self.trace.resume(segment.cut.numbers)
            return value
        segment = self._segment(cut, (kind, source.current()))
        outs = self._outside(self._run, segment)
        value, key = self._outside(segment.decide, outs, self.values)
        self.values, self.above = segment.carried(outs, self.values), (segment, key)
        self.origins = _after(segment)
        self.trace.resume(cut.numbers)
        return value

    def _segment(self, cut: Cut, decision: tuple, end: tuple | None = None) -> Segment:
        traced = None
        if cut.closed is not None:
            closed, traced = self.tree.program(cut, self.origins)
            cut = cut._replace(closed=closed)
            self.tree.captures |= any(isinstance(c, Tracer) for c in cut.consts)
        segment = Segment(cut, traced, decision, self.above, self.origins, end)
        if self.new and self.above is not None:
            above, key = self.above
            above.ways[key] = segment
        self.new.append(segment)
        return segment

    def _run(self, segment: Segment) -> list:
        is_concrete = _is_concrete([*self.values, *segment.cut.consts])
        return self.tree.execute(segment, self.values, is_concrete, self.sizes)

    def _outside(self, function: Callable, *args):
        """Call a function in the trace around the recording, so that it is not recorded."""
        before = state.stage, state.place
        state.stage, state.place = self.stage, None
        try:
            return function(*args)
        finally:
            state.stage, state.place = before


def _after(segment: Segment) -> list:
    """The origins of the values that a segment carries to the next one."""
    moves = segment.moves or []
    return [segment.origins[i] if i >= 0 else None for i in moves]


def paths_of(trees) -> Paths:
    """The paths of several trees."""
    return Paths([path for tree in trees if type(tree) is Tree for path in tree.paths()])
