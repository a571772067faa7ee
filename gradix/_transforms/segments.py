"""Staging in segments: a program is recorded until Python asks for a value, run, and continued."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._base import source
from gradix._core.array import ArrayImpl
from gradix._core.effects import no_effects
from gradix._core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, no_debug
from gradix._core.refs import LocalRef, Ref
from gradix._core.trace import Tracer, state
from gradix._transforms.dce import dce_jaxpr
from gradix._transforms.staging import StagingTrace, StagingTracer, hoist


class SegmentTracer(StagingTracer):
    """Stands for a value of the program being recorded.

    Reading it runs the program recorded so far.
    """

    __slots__ = ("_number",)
    _decides = True

    def __init__(self, trace, var, number: int):
        self._trace, self._var, self.aval, self._number = trace, var, var.aval, number

    def _known(self, kind: str, otherwise: str):
        trace = self._trace
        if type(trace) is SegmentTrace:
            return trace.decide(self, kind)
        return getattr(Tracer, otherwise)(self)  # leaked: raise what any tracer raises

    def __bool__(self):
        return self._known("bool", "__bool__")

    def __int__(self):
        return self._known("int", "__int__")

    def __index__(self):
        return self._known("index", "__index__")

    def __float__(self):
        return self._known("float", "__float__")

    def __complex__(self):
        return self._known("complex", "__complex__")

    def __array__(self, dtype=None, copy=None):
        return self._array().__array__(dtype, copy)

    def item(self, *args):
        return self._array().item(*args)

    def tolist(self):
        return self._array().tolist()

    def tobytes(self, order="C"):
        return self._array().tobytes(order)

    def _array(self) -> Any:
        return _array_of(self._known("array", "__array__"), self.aval)


class Cut(NamedTuple):
    """A recorded segment: what was recorded since the last cut, and which values are needed later.

    Attributes:
        closed: the program, its leading inputs the values of `consts`; None where nothing is to be
            computed.
        consts: the captured values that it needs; a mutable array stands for its value.
        take: the positions of the carried values that it needs.
        give: the source of each value carried to the next segment: ("out", i) is result i,
            ("in", i) the carried value i, ("number", a) the scalar a.
        decision: the source of the value that Python asked for; None in the last segment.
        numbers: the number of each tracer carried to the next segment. They are the same each time
            the function takes this path.
        recorded: the primitives of all equations, needed or not; also the same each time.
    """

    closed: ClosedJaxpr | None
    consts: list
    take: tuple[int, ...]
    give: tuple[tuple[str, Any], ...]
    decision: tuple[str, Any] | None
    numbers: tuple[int, ...]
    recorded: tuple

    def carried(self, outs, values) -> list:
        """The values after the segment, from its results and the values before it."""
        return [value_at(where, outs, values) for where in self.give]


def value_at(where: tuple[str, Any], outs, values):
    """The value with the source `where`, an entry of `Cut.give`."""
    source, i = where
    if source == "out":
        return outs[i]
    return values[i] if source == "in" else ArrayImpl(i.host, i.aval)


class LostValue(BaseException):
    """The function uses a value that its earlier run did not carry over a decision.

    It is a BaseException so that no `except Exception` of a user stops it.
    """


class SegmentTrace(StagingTrace):
    """A StagingTrace whose `decide` ends a segment; all live tracers become inputs of the next one.

    A tracer that no Python object refers to cannot be used again. So the live tracers are exactly
    the values that later segments may need, whichever branch Python takes.
    """

    def __init__(self, on_decision: Callable[[SegmentTracer, str], Any], debug: DebugInfo = no_debug):
        super().__init__(debug)
        self.on_decision = on_decision
        self.made: list[weakref.ref] = []
        self.refs: dict[Ref, LocalRef] = {}
        self.count = 0
        self.known: dict[tuple[int, str], Any] = {}
        # variable of a carried value -> its position
        self.carried_at: dict[Var, int] = {}

    def tracer(self, var) -> SegmentTracer:
        t = SegmentTracer(self, var, self.count)
        self.count += 1
        self.made.append(weakref.ref(t))
        return t

    def new_arg(self, aval) -> SegmentTracer:
        var = Var(aval)
        self.carried_at[var] = len(self.invars)
        self.invars.append(var)
        return self.tracer(var)

    def lend(self, ref: Ref, tracer: SegmentTracer) -> None:
        """Let an argument be the value of a mutable array."""
        self.refs[ref] = LocalRef(ref, tracer._var, tracer)

    def local(self, ref: Ref) -> LocalRef:
        """The local ref for a mutable array from outside.

        Its value is a constant of the segment that uses it first, and is read at each call.
        """
        found = self.refs.get(ref)
        if found is None:
            if not ref.has_one_type:
                raise NotImplementedError(
                    f"{ref._name()} is the content of a value above arrays, and is used in "
                    f"{self.debug.name or 'a function'}, jitted with specialize=True, which may run "
                    "in pieces. Take the value as an argument, and return the new one."
                )
            var = Var(ref.aval.inner_aval)
            self.consts[id(ref)] = var, ref  # type: ignore[assignment]
            found = self.refs[ref] = LocalRef(ref, var, self.tracer(var))
        return found

    def operand(self, a):
        if type(a) is SegmentTracer and a._trace is self:
            if a._var is None:
                raise LostValue
            return a._var
        return super().operand(a)

    def process(self, prim, args, params):
        invars = [self.operand(a) for a in args]
        out = prim.abstract(*[v.aval for v in invars], **params)
        effects = prim.effects(params) if prim.effectful else no_effects
        place = state.place or source.current()
        outvars = [Var(a) for a in (out if prim.multiple_results else [out])]
        self.eqns.append(JaxprEqn(prim, invars, outvars, params, effects, place))
        outs = [self.tracer(v) for v in outvars]
        return outs if prim.multiple_results else outs[0]

    def decide(self, tracer: SegmentTracer, kind: str):
        """The value of a tracer; the same value each time it is asked for."""
        key = tracer._number, kind
        if key not in self.known:
            array = self.known.get((tracer._number, "array"))
            if array is None:
                self.known[key] = self.on_decision(tracer, kind)
            else:
                self.known[key] = FETCH[kind](_array_of(array, tracer.aval))
        return self.known[key]

    def cut(self, tracer: SegmentTracer) -> Cut:
        """End the segment, because Python asks for the value of `tracer`."""
        alive = [t for t in [r() for r in self.made] if t is not None and t._var is not None]
        found = self._segment([self.operand(tracer), *[t._var for t in alive]])
        where, numbers = found.pop("where"), tuple([t._number for t in alive])
        return Cut(give=tuple(where[1:]), decision=where[0], numbers=numbers, **found)

    def end(self, outs) -> Cut:
        """The last segment, whose results are the function's."""
        found = self._segment([self.operand(o) for o in outs])
        return Cut(give=tuple(found.pop("where")), decision=None, numbers=(), **found)

    def _segment(self, wanted: list) -> dict[str, Any]:
        """The program of the `wanted` values that are not carried, and the source of each."""
        results: dict = {}
        recorded = tuple([e.primitive for e in self.eqns])
        where = [self._where(v, results) for v in wanted]
        if not results and not any(e.effects for e in self.eqns):
            return {"closed": None, "consts": [], "take": (), "where": where, "recorded": recorded}
        constvars, values = ([v for v, _ in self.consts.values()], [c for _, c in self.consts.values()])
        opened, consts = hoist(Jaxpr(constvars, self.invars, list(results), self.eqns, debug_info=self.debug), values)
        pruned, used = dce_jaxpr(opened.jaxpr)
        n = len(consts)
        return {
            "closed": ClosedJaxpr(pruned, ()),
            "consts": [c for c, u in zip(consts, used) if u],
            "take": tuple([i for i, u in enumerate(used[n:]) if u]),
            "where": where,
            "recorded": recorded,
        }

    def _where(self, v, results: dict) -> tuple[str, Any]:
        if type(v) is Literal:
            return "number", v.val
        position = self.carried_at.get(v)
        return ("in", position) if position is not None else ("out", results.setdefault(v, len(results)))

    def resume(self, numbers: tuple[int, ...]) -> None:
        """Begin the next segment, into which the tracers with these numbers are carried."""
        alive = {t._number: t for t in [r() for r in self.made] if t is not None}
        self.made = [weakref.ref(t) for t in alive.values()]
        self.eqns, self.consts, self.invars, self.carried_at = [], {}, [], {}
        for t in alive.values():
            t._var = None
        for position, number in enumerate(numbers):
            t = alive.get(number)
            var = Var(t.aval) if t is not None else Var(None)
            self.invars.append(var)
            self.carried_at[var] = position
            if t is not None:
                t._var = var

    def describe(self, tracer) -> str:
        return f"This value became traced while tracing the function {self.debug.name} at {self.debug.place}."


def _array_of(value, aval) -> ArrayImpl:
    """A value as an array; its sizes take the place of those that the type leaves open."""
    return ArrayImpl(value, aval if aval.shape == value.shape else aval.update(shape=value.shape))


FETCH: dict[str, Callable] = {
    "bool": bool,
    "int": int,
    "index": operator.index,
    "float": float,
    "complex": complex,
    "array": lambda x: x.__array__(),
}
