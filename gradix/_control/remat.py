"""`remat_p`: a call whose intermediate values are recomputed in the backward pass, not kept."""

from __future__ import annotations

import operator

from gradix._base.name_stack import EMPTY
from gradix._control.call import Call
from gradix._control.remat_policies import Resuming, Saving, evaluate, without_dead_inside
from gradix._core.effects import IOEffect, OrderedIOEffect
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from gradix._core.key_flow import accounted
from gradix._core.primitive import Inlining
from gradix._core.trace import bind
from gradix._ops.basis import instantiate
from gradix._transforms.dce import without_dead
from gradix._transforms.jvp import JVPTracer, LinearizeTrace, jvp
from gradix._transforms.staging import eval_closed, stage


class Remat(Call):
    """A call of `jaxpr`; `policy(primitive, *avals, **params)` says which results are kept."""

    live = None  # its equations stay together, because they are recomputed together
    selects = False  # type: ignore[assignment]
    inlining = Inlining()

    def run(self, args, params):
        return eval_closed(params["jaxpr"], *args)

    def linearize(self, primals, tangents, *, jaxpr, policy, **params):
        effects = [e for e in jaxpr.effects if isinstance(e, (IOEffect, OrderedIOEffect))]
        if effects:
            raise NotImplementedError(
                f"checkpoint would repeat the effect {effects[0]} of its function, such as that of an "
                "io_callback, in the backward pass. Move the operation with the effect out of the "
                "function, or use debug.callback, which may be repeated."
            )
        nonzero = tuple([t is not None for t in tangents])
        # recomputing uses the same random keys again on purpose
        run = accounted if params["differentiated"] else operator.call
        outs, saved = run(_run_saving, jaxpr, policy, primals)
        program, out_nonzero = tangent_program(jaxpr, nonzero, policy, [s.aval for s in saved])
        if not any(out_nonzero):
            return outs, [None] * len(outs)
        params = {**params, "jaxpr": program, "policy": policy, "differentiated": True}
        given = iter(bind(self, [*primals, *saved, *(t for t in tangents if t is not None)], params))
        return outs, [next(given) if nz else None for nz in out_nonzero]

    def transpose(self, cts, *args, **params):
        return super().transpose(cts, *args, **{**params, "differentiated": True})

    def lower(self, em, outs, *args, jaxpr, prevent_cse, differentiated, **_):
        # the barrier keeps XLA from merging the recomputation with the forward pass
        if differentiated and prevent_cse and args:
            args = em.optimization_barrier(args)
        return em.inline(jaxpr.jaxpr, jaxpr.consts, args, "checkpoint")

    def show(self, params):
        return {k: params[k] for k in ("differentiated", "jaxpr", "policy", "prevent_cse")}


remat_p = Remat("remat2")


def _run_saving(closed: ClosedJaxpr, policy, args):
    """The results of a program, and the inner values that the policy keeps."""
    if policy is None:
        return eval_closed(closed, *args), []
    saved: list = []
    return evaluate(closed, policy, args, Saving(saved)), saved


def tangent_program(closed: ClosedJaxpr, nonzero: tuple, policy, saved_avals) -> tuple[ClosedJaxpr, tuple]:
    """The program that computes tangents from primals, kept values and the `nonzero` tangents.

    It recomputes what was not kept. The second result says which results have a tangent.
    """
    key = ("tangent_program", nonzero, policy)
    found = closed.memo.get(key)
    if found is not None:
        return found
    n, n_saved, out_nonzero = len(nonzero), len(saved_avals), []

    def function(*args):
        primals, kept, given = args[:n], iter(args[n : n + n_saved]), iter(args[n + n_saved :])
        tangents = [next(given) if nz else None for nz in nonzero]
        # this trace splits inner loops into a part that can be transposed and the rest
        trace = LinearizeTrace()

        keeper = Resuming(kept, lambda o, saved: _with_primal(trace, o, saved))
        ys, ts = jvp(lambda *xs: evaluate(closed, policy, xs, keeper), primals, tangents, trace)
        out_nonzero[:] = [t is not None for t in ts]
        return [instantiate(t, y.aval) for y, t in zip(ys, ts) if t is not None]

    avals = closed.in_avals
    jaxpr, consts = stage(
        function, [*avals, *saved_avals, *(a for a, nz in zip(avals, nonzero) if nz)], closed.jaxpr.debug_info
    )
    if policy is not None:
        jaxpr = without_dead_inside(jaxpr)
    program = without_dead(ClosedJaxpr(_marked(jaxpr, n + n_saved), consts))
    found = closed.memo[key] = program, tuple(out_nonzero)
    return found


_AGAIN = EMPTY.extend("rematted_computation")


def _marked(jaxpr: Jaxpr, n_primal: int) -> Jaxpr:
    """The program with a name scope on what is recomputed: all that depends on no tangent input."""
    tangents, eqns = set(jaxpr.invars[n_primal:]), []
    for eqn in jaxpr.eqns:
        if any(type(v) is not Literal and v in tangents for v in eqn.invars):
            tangents.update(eqn.outvars)
        elif eqn.source is not None:
            eqn = eqn.replace(source=eqn.source.within(_AGAIN))
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def _with_primal(trace, value, primal):
    """`value` with the kept primal; the equations that recompute the primal are then dead."""
    _, tangent = trace.split(value)
    return primal if tangent is None else JVPTracer(trace, primal, tangent)
