"""`cond_p`: one of several programs, chosen by an index."""

from __future__ import annotations

import numpy as np

from gradix._control.inner_programs import dependent, evaluated, is_any_ordered, may_run, rearranged, with_inputs, work
from gradix._control.masked_branches import is_costly, run_where_taken
from gradix._core.aval import joined, seen
from gradix._core.effects import IOEffect, OrderedIOEffect
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Var, axis_names, join_effects
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import Tracer, bind, state, varying_over
from gradix._ops.basis import is_differentiable, to_axis, zeros
from gradix._ops.comparison import eq
from gradix._ops.markers import stop_gradient_p
from gradix._ops.select import select_n_p
from gradix._transforms.batch import batch, batch_jaxpr
from gradix._transforms.dce import dce_closed
from gradix._transforms.jvp import jvp_jaxpr
from gradix._transforms.linearize import linearize_jaxpr, transpose_with_refs
from gradix._transforms.staging import eval_closed, stage_closed, take_back

INDEX = np.dtype("int32")


class Cond(Primitive):
    """Runs one program of `branches`: the first operand, an int32 scalar, is its index."""

    multiple_results = True
    mesh = MeshTraits(mixes=True, types_inside=True)
    effectful = True
    named = True

    def abstract(self, index, *avals, branches):
        return branches[0].out_avals

    def effects(self, params):
        return join_effects([b.jaxpr for b in params["branches"]])

    def names(self, params):
        effects = self.effects(params)
        return axis_names(effects) if effects else ()

    def dependent(self, marks, params, smooth):
        if marks[0] and not smooth:
            return [True] * len(params["branches"][0].out_avals)
        return _any_of([dependent(b, marks[1:], smooth) for b in params["branches"]])

    def work(self, params):
        return max(map(work, params["branches"]))

    def run(self, args, params):
        branches = params["branches"]
        chosen = branches[min(max(int(args[0].host), 0), len(branches) - 1)]
        if not may_run(chosen, work(chosen)):
            return NotImplemented
        return evaluated(chosen, args[1:])

    # -- transformations ---------------------------------------------------------------------------

    def jvp(self, primals, tangents, *, branches):
        nz = tuple([t is not None for t in tangents[1:]])
        out_nz = tuple(_any_of([jvp_jaxpr(b, nz)[1] for b in branches]))
        both = alike([jvp_jaxpr(b, nz, out_nz)[0] for b in branches])
        outs = bind(self, [*primals, *[t for t in tangents[1:] if t is not None]], {"branches": both})
        n = len(out_nz)
        given = iter(outs[n:])
        return outs[:n], [next(given) if f else None for f in out_nz]

    def linearize(self, primals, tangents, *, branches):
        nz, n = tuple([t is not None for t in tangents[1:]]), len(branches[0].out_avals)
        out_nz = tuple(_any_of([dependent(b, nz, smooth=True) for b in branches]))
        if not any(out_nz):
            return bind(self, primals, {"branches": branches}), [None] * n
        cuts = [linearize_jaxpr(b, nz, out_nz) for b in branches]
        known, linear, sources = _joined(cuts, nz)
        outs = bind(self, primals, {"branches": known})
        residuals = [primals[1 + i] if kind == "in" else outs[i] for kind, i in sources]
        ts = bind(self, [primals[0], *residuals, *[t for t in tangents if t is not None]], {"branches": linear})
        given = iter(ts)
        return outs[:n], [next(given) if f else None for f in out_nz]

    def transpose(self, cts, index, *args, branches):
        linear = tuple([type(a) is Linear for a in args])
        nz = tuple([c is not None for c in cts])
        found = [transpose_with_refs(b, linear, nz) for b in branches]
        live = _any_of([f[1] for f in found])
        kept = [i for i, alive in enumerate(live) if alive]
        operands = [*[a for a, is_lin in zip(args, linear) if not is_lin], *[c for c in cts if c is not None]]
        refs = _all_refs([f[2] for f in found])
        backs = alike([_with_all_refs(f, refs, len(operands), kept) for f in found])
        values = [ref.read() for ref, _ in refs]
        outs = take_back(refs, bind(self, [index, *operands, *values], {"branches": backs}))
        at = dict(zip(kept, outs))
        given = iter([at.get(i) for i in range(len(live))])
        return [None, *[next(given) if is_lin else None for is_lin in linear]]

    def batch(self, axis, args, axes, *, branches):
        if axes[0] is not None:
            return self._selected(axis, args, axes, branches)
        in_axes = tuple(axes[1:])
        out = _any_of([[a is not None for a in batch_jaxpr(b, axis, in_axes)[1]] for b in branches])
        forced = tuple([0 if o else "any" for o in out])
        mapped = alike([batch_jaxpr(b, axis, in_axes, forced)[0] for b in branches])
        return bind(self, args, {"branches": mapped}), [0 if o else None for o in out]

    def _selected(self, axis, args, axes, branches):
        """Run every branch for every example, and select the results by each example's index.

        A branch gets operands without a derivative for examples that do not take it, so a NaN
        derivative there does not reach the result.
        """
        bad = [e for e in self.effects({"branches": branches}) if isinstance(e, (IOEffect, OrderedIOEffect))]
        if bad:
            raise NotImplementedError(
                f"vmap of cond with a batched predicate runs every branch, so its effect "
                f"{bad[0]} is not supported. Use lax.map instead of vmap, or move the operation "
                "with the effect out of the branch."
            )
        index, operands, in_axes = to_axis(axis.size, args[0], axes[0], 0), args[1:], axes[1:]
        apart = [k for k, b in enumerate(branches) if axis.size and is_costly(b) and not b.jaxpr.effects]
        results = {
            k: run_where_taken(self, axis, branches[k], eq(index, np.int32(k)), operands, in_axes) for k in apart
        }
        ready = [r for k in apart for r in results[k]]

        def every(i, *xs):
            given, xs = iter(xs[: len(ready)]), xs[len(ready) :]
            cases = [
                [next(given) for _ in b.out_avals]
                if k in results
                else eval_closed(b, *[_guarded(eq(i, np.int32(k)), x) for x in xs])
                for k, b in enumerate(branches)
            ]
            return [bind(select_n_p, [i, *column], {}) for column in zip(*cases)]

        outs, out_axes = map(list, batch(every, axis, [index, *ready, *operands], [0, *[0] * len(ready), *in_axes]))
        for place, operand in _handed_on(branches):
            # every branch returns this operand, so the result needs no batch axis either
            if in_axes[operand] is None:
                outs[place], out_axes[place] = operands[operand], None
        return outs, out_axes

    def dce(self, used, eqn):
        used = tuple(used)
        parts = [dce_closed(b, used) for b in eqn.params["branches"]]
        kept = _any_of([p[1] for p in parts])
        branches = []
        for whole, (part, inputs) in zip(eqn.params["branches"], parts):
            left = iter(part.jaxpr.invars)
            own = [next(left) if u else None for u in inputs]
            invars = [v or Var(old.aval) for v, old, k in zip(own, whole.jaxpr.invars, kept) if k]
            branches.append(_with_invars(part, invars))
        return eqn.replace(
            invars=[eqn.invars[0], *[v for v, k in zip(eqn.invars[1:], kept) if k]],
            outvars=[v for v, u in zip(eqn.outvars, used) if u],
            params={"branches": tuple(branches)},
        )

    def lower(self, em, outs, index, *args, branches):
        def written(branch):
            return lambda: em.inline(branch.jaxpr, branch.consts, args)

        # the index is known when lowering for a platform, whose compiler must not see the others
        if index.known is not None:
            return written(branches[index.known])()
        ordered = is_any_ordered(self.effects({"branches": branches}))
        return em.case(index, [written(b) for b in branches], outs, ordered=ordered)


cond_p = Cond("cond")


def alike(branches) -> tuple:
    """The branches, with results that vary over the same mesh axes: zeros of one vary over none."""
    if not (seen.meshes and state.manual):
        return tuple(branches)
    vmas = tuple([joined([a.vma for a in column]) for column in zip(*[b.out_avals for b in branches])])
    return tuple([_varying(b, vmas) for b in branches])


def _varying(closed: ClosedJaxpr, vmas: tuple) -> ClosedJaxpr:
    if all(a.vma == v for a, v in zip(closed.out_avals, vmas)):
        return closed
    found = closed.memo.get(("varying", vmas))
    if found is None:

        def varying(*args):
            return [varying_over(o, v) for o, v in zip(eval_closed(closed, *args), vmas)]

        found = stage_closed(varying, closed.in_avals, closed.jaxpr.debug_info)
        closed.memo["varying", vmas] = found
    return found


def _handed_on(branches) -> list[tuple[int, int]]:
    """The positions (result, operand) where every branch returns the operand unchanged."""
    found = []
    for place, column in enumerate(zip(*[b.jaxpr.outvars for b in branches])):
        places = {next((i for i, v in enumerate(b.jaxpr.invars) if v is out), -1) for b, out in zip(branches, column)}
        if len(places) == 1 and -1 not in places:
            found.append((place, places.pop()))
    return found


def _any_of(rows) -> list[bool]:
    return [any(column) for column in zip(*rows)]


def _with_invars(closed: ClosedJaxpr, invars, outvars=None) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    return ClosedJaxpr(
        Jaxpr(
            jaxpr.constvars,
            invars,
            jaxpr.outvars if outvars is None else outvars,
            jaxpr.eqns,
            jaxpr.effects,
            jaxpr.debug_info,
        ),
        closed.consts,
    )


def _guarded(taken, x):
    """The operand `x` of a branch, without derivative for examples that do not take it."""
    if not is_differentiable(x.aval):
        return x
    return bind(select_n_p, [taken, bind(stop_gradient_p, [x], {}), x], {})


def bind_cond(index, branches, operands) -> list:
    """Run branch number `index`: eagerly if the index is known and nothing is being staged."""
    if state.stage is None and not isinstance(index, Tracer):
        chosen = branches[min(max(int(index.host), 0), len(branches) - 1)]
        if any(isinstance(x, Tracer) for x in operands):
            return eval_closed(chosen, *operands)
    return bind(cond_p, [index, *operands], {"branches": tuple(branches)})


# -- transposed branches, whose rules may use refs -------------------------------------------------


def _all_refs(lists) -> list:
    """The refs of some branches, each once, and whether one of these branches writes to it."""
    found: dict = {}
    for ref, is_written in (pair for refs in lists for pair in refs):
        found[ref] = found.get(ref, False) or is_written
    return list(found.items())


def _with_all_refs(transposed, refs, n: int, kept) -> ClosedJaxpr:
    """A transposed branch with the results `kept` that takes and returns refs as all branches do.

    Its first `n` operands are no values of refs.
    """
    back, live, own = transposed
    at = {ref: n + i for i, (ref, _) in enumerate(own)}
    ins = [*range(n), *[at.get(ref, ref.aval.inner_aval) for ref, _ in refs]]
    whole = with_inputs(rearranged(back, ins), [n + j for j in range(len(refs))])
    last = {r: len(live) + i for i, r in enumerate([r for r, is_written in own if is_written])}
    given = len(back.out_avals)
    outs = [last.get(ref, given + j) for j, (ref, is_written) in enumerate(refs) if is_written]
    return rearranged(whole, range(n + len(refs)), [*kept, *outs])


# -- linearized branches ---------------------------------------------------------------------------


def _joined(cuts, nz):
    """Give all branches one common list of residuals.

    Residuals of equal type that different branches make share a slot of the list.

    Returns:
        the known branches, which return the list; the linear branches, which take it; and for each
        residual its source, an operand or a result of the known branches.
    """
    key = ("cond_linear", *[id(c) for c in cuts[1:]])
    found = cuts[0].known.memo.get(key)
    if found is None:
        found = cuts[0].known.memo[key] = (*_join(cuts), cuts)
    return found[:3]


def _join(cuts):
    n = cuts[0].n_out
    slots: list = []  # the types of the common slots for computed residuals
    places = [_slots_of(c, slots) for c in cuts]  # for each branch: its output -> slot
    sources: list = []
    for cut, own in zip(cuts, places):
        for kind, i in cut.sources:
            source = (kind, n + own[i]) if kind == "out" and i >= n else (kind, i)
            if source not in sources:
                sources.append(source)
    known = alike([_filled(c, own, slots) for c, own in zip(cuts, places)])
    avals = [cuts[0].known.in_avals[i] if kind == "in" else known[0].out_avals[i] for kind, i in sources]
    linear = alike([_taking(c, own, sources, avals) for c, own in zip(cuts, places)])
    return known, linear, sources


def _slots_of(cut, slots) -> dict:
    taken: set = set()
    own = {}
    avals = cut.known.out_avals
    for i in range(cut.n_out, len(avals)):
        aval = avals[i].strip_weak_type()
        at = next((k for k, a in enumerate(slots) if a == aval and k not in taken), None)
        if at is None:
            at = len(slots)
            slots.append(aval)
        taken.add(at)
        own[i] = at
    return own


def _filled(cut, own: dict, slots) -> ClosedJaxpr:
    """A known branch that returns its residuals in the common slots, and zeros in others."""
    by_slot, jaxpr = {slot: i for i, slot in own.items()}, cut.known.jaxpr
    missing = [k for k in range(len(slots)) if k not in by_slot]
    fill = stage_closed(lambda: [zeros(slots[k]) for k in missing], [])
    filling = dict(zip(missing, fill.jaxpr.outvars))
    outvars = [
        *jaxpr.outvars[: cut.n_out],
        *[jaxpr.outvars[by_slot[k]] if k in by_slot else filling[k] for k in range(len(slots))],
    ]
    whole = Jaxpr(
        [*jaxpr.constvars, *fill.jaxpr.constvars],
        jaxpr.invars,
        outvars,
        [*jaxpr.eqns, *fill.jaxpr.eqns],
        jaxpr.effects,
        jaxpr.debug_info,
    )
    return ClosedJaxpr(whole, [*cut.known.consts, *fill.consts])


def _taking(cut, own: dict, sources, avals) -> ClosedJaxpr:
    """A linear branch that takes the residuals of all branches, then the tangents."""
    n = cut.n_out
    mine = {}
    for position, (kind, i) in enumerate(cut.sources):
        mine[(kind, n + own[i]) if kind == "out" and i >= n else (kind, i)] = position
    n_res = len(cut.sources)
    ins = [mine.get(s, a) for s, a in zip(sources, avals)]
    return rearranged(cut.linear, [*ins, *range(n_res, len(cut.linear.in_avals))])
