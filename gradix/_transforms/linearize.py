"""Reverse mode: record the linear part of a function while it runs, then transpose the record."""

from __future__ import annotations

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._base.source import current
from gradix._core.aval import make_aval, seen
from gradix._core.divisions import cotangent_aval
from gradix._core.jaxpr import ClosedJaxpr, JaxprEqn, Var, equation_holds, inherit
from gradix._core.primitive import Linear
from gradix._core.refs import Ref
from gradix._core.trace import Trace, Tracer, bind, cotangent_like, divided_like, new_level, state, typed_results
from gradix._ops.basis import add_any, instantiate, tangent_aval, zeros
from gradix._ops.cotangent_masks import Live
from gradix._transforms.dce import without_dead
from gradix._transforms.finite import is_suspect, mark
from gradix._transforms.jvp import JVPTrace, JVPTracer, LinearizeTrace, called
from gradix._transforms.masked_pull import Masks
from gradix._transforms.repeats import of_higher_order, share
from gradix._transforms.staging import StagingTracer, closed_over, eval_closed, stage, stage_with_refs

_BOOL = np.dtype(bool)
_counted = lazy_module("gradix._transforms.counted")


class TapeTracer(Tracer):
    """Stands for a tangent; `index` is its place on the tape."""

    __slots__ = ("index",)

    def __init__(self, trace, aval, index):
        self._trace, self.aval, self.index = trace, aval, index

    def _described(self) -> str:
        return f"LinearizeTracer({self.aval.str_short()})"


TapeTracer.__name__ = "LinearizeTracer"  # as it shows itself


class TapeEqn:
    """A recorded linear operation.

    `args` holds the residuals, and a `Linear` in the place of each tangent. `inputs` lists these
    tangents as (position in `args`, index on the tape).
    """

    __slots__ = ("primitive", "args", "params", "inputs", "first", "avals", "place")

    def __init__(self, primitive, args, params, inputs, first, avals):
        self.primitive, self.args, self.params = primitive, args, params
        self.inputs, self.first, self.avals = inputs, first, avals
        self.place = state.place or (current() if state.stage is not None else None)


class LinearProgram:
    """A recorded linear map: its equations, and the tape index of each output, None for zero.

    `named` marks the record of a user's function: the source places of its transpose say so.
    """

    __slots__ = ("in_avals", "eqns", "outs", "out_avals", "count", "named")

    def __init__(self, in_avals, eqns, outs, out_avals, count, named: bool = False):
        self.in_avals, self.eqns, self.outs, self.out_avals, self.count = (in_avals, eqns, outs, out_avals, count)
        self.named = named

    def apply(self, tangents, known=None) -> list:
        """The output tangents, None where zero.

        `known` maps the id of a residual to its replacement.
        """
        before = state.place
        try:
            env = self._push(list(tangents), known)
        finally:
            state.place = before
        return [None if i is None else env[i] for i in self.outs]

    def _push(self, env: list, known) -> list:
        """The values of all tape entries, each staged with the source place of its record."""
        staging = state.stage is not None
        for e in self.eqns:
            if staging:
                state.place = e.place
            args = list(e.args) if known is None else [known.get(id(a), a) for a in e.args]
            for position, index in e.inputs:
                args[position] = env[index]
            out = bind(e.primitive, args, e.params)
            if e.primitive.multiple_results:
                env.extend(out)
            else:
                env.append(out)
        return env

    def can_push(self) -> bool:
        """Whether all equations can be evaluated forward.

        Some primitives only have a transpose rule.
        """
        return not any(equation_holds(e, _is_only_backward) for e in self.eqns)

    def transpose(self, cts) -> list:
        """The cotangents of the inputs, given those of the outputs; None is zero, in and out."""
        return self.transpose_live(cts, None)[0]

    def transpose_live(self, cts, lives) -> tuple[list, list]:
        """As `transpose`, also taking and returning a mask of live elements for each cotangent.

        A mask of None says that all elements may be live. `lives` is None for a caller without
        masks; see `gradix._transforms.masked_pull`.
        """
        total, masks = [None] * self.count, Masks(self.eqns, given=lives is not None)
        for i, (index, ct) in enumerate(zip(self.outs, cts)):
            if index is not None and ct is not None:
                if seen.divisions and cotangent_aval(self.out_avals[i]) is not self.out_avals[i]:
                    ct = divided_like(ct, self.out_avals[i])
                masks.add(total, index, ct, lives[i] if lives else None)
        before = state.place
        try:
            self._pull(total, masks)
        finally:
            state.place = before
        n = len(self.in_avals)
        return total[:n], [masks.live.get(i) for i in range(n)]

    def _pull(self, total: list, masks: Masks) -> None:
        """Transpose the equations in reverse, each staged with the source place of its record."""
        staging, named = state.stage is not None, self.named
        for e in reversed(self.eqns):
            prim = e.primitive
            if staging:
                place = e.place
                state.place = place.transposed if named and place is not None else place
            if prim.multiple_results:
                ct = total[e.first : e.first + len(e.avals)]
                if all(c is None for c in ct):
                    continue
            else:
                ct = total[e.first]
                if ct is None:
                    continue
                total[e.first] = None
            if (masks.live or prim.selects) and masks.pull(e, ct, total):
                continue
            back = prim.transpose(ct, *e.args, **e.params)
            for position, index in e.inputs:
                c = back[position]
                if c is not None:
                    if seen.divisions:
                        c = divided_like(c, e.args[position].aval)
                    have = total[index]
                    total[index] = c if have is None else add_any(have, c)

    def residuals(self):
        """The residuals: all values but tangents that the map depends on."""
        seen: dict = {}
        for e in self.eqns:
            for a in e.args:
                if type(a) is not Linear:
                    seen.setdefault(id(a), a)
        return list(seen.values())

    def with_residuals(self, values: dict) -> LinearProgram:
        """The program with residuals replaced.

        `values` maps the id of a residual to the new value.
        """
        eqns = [
            TapeEqn(e.primitive, [values.get(id(a), a) for a in e.args], e.params, e.inputs, e.first, e.avals)
            for e in self.eqns
        ]
        return LinearProgram(self.in_avals, eqns, self.outs, self.out_avals, self.count, self.named)

    def restricted(self, wanted) -> LinearProgram:
        """The program of the inputs that are wanted: without equations that depend on none of them."""
        reached = {i for i, is_wanted in enumerate(wanted) if is_wanted}
        eqns = []
        for e in self.eqns:
            if not e.inputs or any(index in reached for _, index in e.inputs):
                eqns.append(e)
                reached.update(range(e.first, e.first + (len(e.avals) if e.primitive.multiple_results else 1)))
        outs = [index if index in reached else None for index in self.outs]
        return LinearProgram(self.in_avals, eqns, outs, self.out_avals, self.count, self.named)


def _is_only_backward(eqn) -> bool:
    return eqn.primitive.only_backward


_markers: BoundedCache = BoundedCache(4096)
_known_marker = _markers.get


class Tape(Trace):
    """Records the primitives applied to tangents; all others go to the surrounding trace."""

    def __init__(self):
        self.eqns: list[TapeEqn] = []
        self.in_avals: list = []
        self.count = 0

    def new_input(self, aval) -> TapeTracer:
        assert not self.eqns
        self.in_avals.append(aval)
        self.count += 1
        return TapeTracer(self, aval, self.count - 1)

    def process(self, prim, args, params):
        # the most frequent case, for which nothing else has to be asked
        if not prim.multiple_results and self.done is None:
            return self._record(prim, args, params)
        return self.interpret(prim, args, params)

    def interpret(self, prim, args, params):
        if not prim.multiple_results:
            return self._record(prim, args, params)
        if prim.inlining.on_tapes:
            return eval_closed(params["call_jaxpr"], *args)
        linear = self._linear(prim, args, params)
        return self._record(prim, args, params) if linear is None else self._parted(prim, args, params, linear)

    def _record(self, prim, args, params):
        avals = [a.aval for a in args]
        args, inputs = list(args), []
        for i, a in enumerate(args):
            if type(a) is TapeTracer and a._trace is self:
                inputs.append((i, a.index))
                aval = a.aval
                args[i] = _known_marker(aval) or _markers.keep(aval, Linear(aval))
        out = prim.abstract(*avals, **params)
        if seen.meshes and (seen.divisions or state.manual):
            out = typed_results(prim, avals, params, out)
        first = self.count
        if prim.multiple_results:
            self.count += len(out)
            self.eqns.append(TapeEqn(prim, args, params, inputs, first, out))
            return [TapeTracer(self, a, first + i) for i, a in enumerate(out)]
        self.count += 1
        self.eqns.append(TapeEqn(prim, args, params, inputs, first, (out,)))
        return TapeTracer(self, out, first)

    def _linear(self, prim, args, params):
        """For each result of a call, branch or loop, whether it depends on tangents.

        None says that all results may depend on them.
        """
        if prim.dependent is None:
            return None
        linear = prim.dependent(tuple([type(a) is TapeTracer and a._trace is self for a in args]), params, False)
        return None if all(linear) else linear

    def _parted(self, prim, args, params, linear):
        """Record the results that depend on tangents, and compute the others outside the record.

        The jvp of a call returns primals too, and these must not become part of the linear map.
        """
        places = {Var(a.aval): a for a in args}
        eqn = JaxprEqn(prim, list(places), [Var(a) for a in prim.abstract(*[a.aval for a in args], **params)], params)
        outs: dict = {}
        for wanted, run in (([not is_lin for is_lin in linear], bind), (linear, self._record)):
            if any(wanted):
                part = prim.dce(wanted, eqn)
                found = run(prim, [places[v] for v in part.invars], part.params)
                outs.update([(v, o) for v, o in zip(part.outvars, found) if v not in outs])
        return [outs[v] for v in eqn.outvars]

    def program(self, outs, out_avals) -> LinearProgram:
        """The recorded map to `outs`.

        An output that is not on the tape is zero as a linear result.
        """
        indices = [o.index if type(o) is TapeTracer and o._trace is self else None for o in outs]
        return LinearProgram(self.in_avals, self.eqns, indices, out_avals, self.count)


def linearize(function, primals, active, named: bool = False) -> tuple[list, LinearProgram]:
    """Outputs of a function on lists, and the linear program of its derivative by `active` inputs.

    `named` as for `jvp`.
    """
    tape, trace = Tape(), LinearizeTrace()
    trace.function = function
    share(primals, tape, trace)
    with new_level(tape), new_level(trace):
        args = [JVPTracer(trace, x, tape.new_input(tangent_aval(x.aval))) if a else x for x, a in zip(primals, active)]
        pairs = [trace.split(o) for o in called(function, args, "jvp", named)]
        ys = [p for p, _ in pairs]
        program = tape.program([t for _, t in pairs], [tangent_aval(y.aval) for y in ys])
        program.named = named
    return ys, program


def trace_for(tangents) -> JVPTrace:
    """The trace to carry these tangents: a LinearizeTrace where a tape records one of them."""
    return LinearizeTrace() if any(type(t) is TapeTracer for t in tangents) else JVPTrace()


def linear_program(function, avals) -> LinearProgram:
    """Record a function that is linear in its inputs."""
    tape = Tape()
    with new_level(tape):
        outs = function(*[tape.new_input(a) for a in avals])
        program = tape.program(outs, [o.aval for o in outs])
    return program


class Split:
    """A program split for reverse mode, by `linearize_jaxpr`.

    `known` takes the primals and returns the results and then the new residuals; `linear` takes all
    residuals and the tangents marked `nonzero`, and returns the tangents marked `out_nonzero`.
    `sources` tells, per residual of `linear`, whether it is ("in", i), an input of `known`, or
    ("out", i), one of its outputs.
    """

    __slots__ = ("known", "linear", "sources", "nonzero", "out_nonzero", "n_out")

    def __init__(self, known, linear, sources, nonzero, out_nonzero, n_out):
        self.known, self.linear, self.sources = known, linear, sources
        self.nonzero, self.out_nonzero, self.n_out = nonzero, out_nonzero, n_out

    def residuals(self, ins, outs) -> list:
        return [ins[i] if kind == "in" else outs[i] for kind, i in self.sources]


def linearize_jaxpr(closed: ClosedJaxpr, nonzero: tuple, instantiated=()) -> Split:
    """Split `closed` into its known part and the linear map of the tangents marked `nonzero`.

    `instantiated` marks results whose tangents are returned even if zero.
    """
    key = ("linearize", nonzero, instantiated)
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = _split(closed, nonzero, instantiated)
    return found


def _split(closed, nonzero, instantiated) -> Split:
    kept: dict = {}

    def known(*primals):
        inherit(primals, closed.jaxpr.invars)
        ys, program = linearize(lambda *xs: eval_closed(closed, *xs), primals, nonzero)
        places = {id(x): ("in", i) for i, x in enumerate(primals)}
        for i, y in enumerate(ys):
            places.setdefault(id(y), ("out", i))
        residuals = [r for r in program.residuals() if type(r) is StagingTracer]
        closing = _closing()
        if closing is not None:
            return _closed(ys, program, residuals, places, closing, kept)
        fresh = [r for r in residuals if id(r) not in places]
        places.update((id(r), ("out", len(ys) + i)) for i, r in enumerate(fresh))
        kept.update(program=program, residuals=residuals, places=places, n=len(ys))
        kept["suspects"] = [i for i, r in enumerate(residuals) if is_suspect(r)]
        kept["opened"] = None
        return [*ys, *fresh]

    jaxpr, consts = stage(known, closed.in_avals, closed.jaxpr.debug_info)
    program, residuals, opened = kept["program"], kept["residuals"], kept["opened"]
    force = instantiated or [False] * kept["n"]
    out_nonzero = tuple(i is not None or f for i, f in zip(program.outs, force))
    n_res = len(residuals)

    def linear(*args):
        values = args if opened is None else opened(args)
        known_by_id = {id(r): a for r, a in zip(residuals, values)}
        outs = program.apply(args[n_res:], known_by_id)
        return [instantiate(t, a) for t, a, nz in zip(outs, program.out_avals, out_nonzero) if nz]

    avals = [a.aval for a in kept.get("closed", residuals)] + program.in_avals
    lin_jaxpr, lin_consts = stage(linear, avals, closed.jaxpr.debug_info)
    for i in kept["suspects"]:
        mark(lin_jaxpr.invars[i])
    sources = [kept["places"][id(r)] for r in residuals]
    first = of_higher_order(ClosedJaxpr(jaxpr, consts), closed)
    second = of_higher_order(ClosedJaxpr(lin_jaxpr, lin_consts), closed)
    return Split(first, second, sources, nonzero, out_nonzero, kept["n"])


def _closing():
    """What closes residuals if the program being traced defines counts; else None."""
    if seen.counts is None:
        return None
    closing = _counted.Closing(StagingTracer)
    return closing if closing.dims else None


def _closed(ys, program, residuals, places, closing, kept: dict) -> list:
    """As the results of a known part, whose residuals leave it without the counts it defines."""
    own = {id(r): closing.close(r) for r in residuals if closing.concerns(r)}
    residuals = [*residuals, *[n for n in closing.values if all(n is not r for r in residuals)]]
    closed = [own.get(id(r), r) for r in residuals]
    fresh = [i for i, r in enumerate(residuals) if id(r) in own or id(r) not in places]
    places.update((id(residuals[i]), ("out", len(ys) + k)) for k, i in enumerate(fresh))
    kept.update(program=program, residuals=residuals, places=places, n=len(ys), closed=closed)
    kept["suspects"] = [i for i, r in enumerate(residuals) if is_suspect(r)]
    at = {id(r): i for i, r in enumerate(residuals)}

    def opened(args):
        closing.define([args[at[id(n)]] for n in closing.values])
        return [closing.open(a, r.aval.shape) if id(r) in own else a for r, a in zip(residuals, args)]

    kept["opened"] = opened
    return [*ys, *[closed[i] for i in fresh]]


def transpose_closed(closed: ClosedJaxpr, linear: tuple, args, cts, lives=None) -> tuple[list, list]:
    """Cotangents of the inputs marked `linear`, and their masks, as `LinearProgram.transpose_live`.

    `args` holds the values of the other inputs; its marked places are not read.
    """
    avals = [a for a, is_lin in zip(closed.in_avals, linear) if is_lin]

    def function(*tangents):
        given = iter(tangents)
        return eval_closed(closed, *[next(given) if is_lin else x for x, is_lin in zip(args, linear)])

    return linear_program(function, avals).transpose_live(cts, lives)


def transpose_jaxpr(closed: ClosedJaxpr, linear: tuple, ct_nonzero: tuple) -> tuple:
    """As `transpose_with_refs`, for programs whose rules write to no refs: without these.

    Raises:
        NotImplementedError: a rule writes to a ref, a mutable array.
    """
    back, live, refs = transpose_with_refs(closed, linear, ct_nonzero)
    return (closed_over(back, refs) if refs else back), live


def transpose_with_refs(
    closed: ClosedJaxpr, linear: tuple, ct_nonzero: tuple, lives=None
) -> tuple[ClosedJaxpr, list, list[tuple[Ref, bool]]]:
    """The transposed program, which of its cotangents are not always zero, and the refs it uses.

    It takes the values of the inputs not marked `linear`, then the cotangents marked `ct_nonzero`.

    It returns a cotangent for each input marked `linear`, with explicit zeros.

    With `lives`, a mask shape or None per cotangent, the program also takes these masks, and
    returns the masks of those results that have one. The second result is then a pair: the flags,
    and the mask shape or None of each result.

    A user's rule may use refs, mutable arrays. The program takes their values last, and returns
    last the values that it leaves in those that it writes to, which are marked.
    """
    key = ("transpose", linear, ct_nonzero, lives)
    found = closed.memo.get(key)
    if found is not None:
        return found
    known_avals = [a for a, is_lin in zip(closed.in_avals, linear) if not is_lin]
    lin_avals = [a for a, is_lin in zip(closed.in_avals, linear) if is_lin]
    live: list = []

    def back(*args):
        inherit(args, [v for v, is_lin in zip(closed.jaxpr.invars, linear) if not is_lin])
        known, given = iter(args[: len(known_avals)]), iter(args[len(known_avals) :])
        cts = [next(given) if nz else None for nz in ct_nonzero]
        before = lives and [None if s is None else Live.of(next(given)) for s in lives]
        out, after = transpose_closed(
            closed, linear, [None if is_lin else next(known) for is_lin in linear], cts, before
        )
        flags, cts = (
            [c is not None for c in out],
            [cotangent_like(zeros(a), a) if c is None else c for c, a in zip(out, lin_avals)],
        )
        if lives is None:
            live[:] = flags
            return cts
        live[:] = flags, [None if m is None else m.shape for m in after]
        return [*cts, *[m.mask() for m in after if m is not None]]

    ct_avals = [cotangent_aval(a) for a, nz in zip(closed.out_avals, ct_nonzero) if nz]
    mask_avals = [make_aval(s, _BOOL) for s in lives or () if s is not None]
    jaxpr, consts, refs = stage_with_refs(back, known_avals + ct_avals + mask_avals, closed.jaxpr.debug_info)
    found = closed.memo[key] = (
        of_higher_order(without_dead(ClosedJaxpr(jaxpr, consts)), closed),
        list(live),
        [(r.ref, r.is_written) for r in refs],
    )
    return found
