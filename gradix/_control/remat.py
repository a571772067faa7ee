"""`remat_p`: a call whose intermediate values are recomputed in the backward pass, not kept."""

from __future__ import annotations

import operator

from gradix._base.name_stack import EMPTY
from gradix._control.call import Call
from gradix._control.remat_policies import Resuming, Saving, evaluate, saving_program, without_dead_inside
from gradix._core.effects import IOEffect, OrderedIOEffect
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from gradix._core.key_flow import accounted
from gradix._core.primitive import Inlining, Linear
from gradix._core.trace import bind
from gradix._ops.basis import instantiate
from gradix._transforms.dce import dce_jaxpr, without_dead
from gradix._transforms.jvp import LinearizeTrace, jvp
from gradix._transforms.linearize import linearize_jaxpr
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
        run, n = accounted if params["differentiated"] else operator.call, len(jaxpr.out_avals)
        if policy is None:
            forward, (program, out_nonzero) = jaxpr, tangent_program(jaxpr, nonzero)
        else:
            forward, program, out_nonzero = _split(jaxpr, nonzero, policy)
        outs = run(eval_closed, forward, *primals)
        outs, saved = outs[:n], outs[n:]
        if not any(out_nonzero):
            return outs, [None] * len(outs)
        params = {**params, "jaxpr": program, "policy": policy, "differentiated": True}
        given = iter(bind(self, [*primals, *saved, *(t for t in tangents if t is not None)], params))
        return outs, [next(given) if nz else None for nz in out_nonzero]

    def transpose(self, cts, *args, prevent_cse, **params):
        kept = _of_those(prevent_cse, [type(a) is not Linear for a in args])
        return super().transpose(cts, *args, **{**params, "prevent_cse": kept, "differentiated": True})

    def transpose_live(self, cts, lives, *args, prevent_cse, **params):
        kept = _of_those(prevent_cse, [type(a) is not Linear for a in args])
        return super().transpose_live(cts, lives, *args, **{**params, "prevent_cse": kept})

    def dce(self, used, eqn):
        found = super().dce(used, eqn)
        left = set(found.invars)
        kept = _of_those(eqn.params["prevent_cse"], [v in left for v in eqn.invars])
        return found.replace(params={**found.params, "prevent_cse": kept})

    def lower(self, em, outs, *args, jaxpr, prevent_cse, differentiated, **_):
        # the barrier keeps XLA from merging the recomputation with the forward pass
        if differentiated and prevent_cse and args:
            apart = [True] * len(args)
            if type(prevent_cse) is tuple:
                apart[: len(prevent_cse)] = prevent_cse[: len(args)]
            behind = iter(em.optimization_barrier([a for a, f in zip(args, apart) if f]) if any(apart) else ())
            args = [next(behind) if f else a for a, f in zip(args, apart)]
        return em.inline(jaxpr.jaxpr, jaxpr.consts, args, "checkpoint")

    def show(self, params):
        return {k: params[k] for k in ("differentiated", "jaxpr", "policy", "prevent_cse")}


def _of_those(prevent_cse, kept: list):
    """The parameter for the operands that are kept; a tuple has a flag for each of the first operands."""
    if type(prevent_cse) is not tuple:
        return prevent_cse
    return tuple([f for f, k in zip(prevent_cse, kept) if k])


remat_p = Remat("remat2")


def tangent_program(closed: ClosedJaxpr, nonzero: tuple) -> tuple[ClosedJaxpr, tuple]:
    """The program that computes tangents from primals and the `nonzero` tangents.

    It computes again what it needs of the primal program. The second result says which results have
    a tangent.
    """
    key = ("tangent_program", nonzero)
    found = closed.memo.get(key)
    if found is not None:
        return found
    n, out_nonzero = len(nonzero), []

    def function(*args):
        primals, given = args[:n], iter(args[n:])
        tangents = [next(given) if nz else None for nz in nonzero]
        # this trace splits inner loops into a part that can be transposed and the rest
        ys, ts = jvp(lambda *xs: evaluate(closed, None, xs, Saving([])), primals, tangents, LinearizeTrace())
        out_nonzero[:] = [t is not None for t in ts]
        return [instantiate(t, y.aval) for y, t in zip(ys, ts) if t is not None]

    avals = closed.in_avals
    given = [*avals, *(a for a, nz in zip(avals, nonzero) if nz)]
    jaxpr, consts = stage(function, given, closed.jaxpr.debug_info)
    program = without_dead(ClosedJaxpr(_marked(jaxpr, n), consts))
    found = closed.memo[key] = program, tuple(out_nonzero)
    return found


def _split(closed: ClosedJaxpr, nonzero: tuple, policy) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple]:
    """The primal program, which also returns what it keeps, and the program that computes tangents.

    The policy is asked about all that reverse mode computes before it knows tangents, such as the
    cosine in the derivative of a sine. Of what it keeps only that is returned which the second
    program reads, after the primals. The third result says which results have a tangent.
    """
    key = ("split", nonzero, policy)
    found = closed.memo.get(key)
    if found is not None:
        return found
    split, n = linearize_jaxpr(closed, nonzero), len(nonzero)
    saving, kinds = saving_program(split.known, policy)
    n_known = len(split.known.out_avals)

    def tangents(*args):
        primals, kept, given = args[:n], iter(args[n : n + len(kinds)]), args[n + len(kinds) :]
        outs = evaluate(split.known, policy, primals, Resuming(kept))
        return eval_closed(split.linear, *split.residuals(primals, outs), *given)

    avals = closed.in_avals
    given = [*avals, *kinds, *(a for a, nz in zip(avals, nonzero) if nz)]
    jaxpr, consts = stage(tangents, given, closed.jaxpr.debug_info)
    jaxpr = without_dead(ClosedJaxpr(_marked(without_dead_inside(jaxpr), n + len(kinds)), consts)).jaxpr
    read = {v for e in jaxpr.eqns for v in e.invars if type(v) is not Literal}
    read.update([v for v in jaxpr.outvars if type(v) is not Literal])
    kept = [i for i in range(len(kinds)) if jaxpr.invars[n + i] in read]
    invars = [*jaxpr.invars[:n], *[jaxpr.invars[n + i] for i in kept], *jaxpr.invars[n + len(kinds) :]]
    back = ClosedJaxpr(jaxpr.replace(invars=invars), consts)
    wanted = saving.jaxpr.outvars
    outvars = [*wanted[: split.n_out], *[wanted[n_known + i] for i in kept]]
    forward = dce_jaxpr(saving.jaxpr.replace(outvars=outvars), keep_inputs=True)[0]
    found = closed.memo[key] = ClosedJaxpr(forward, saving.consts), back, split.out_nonzero
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
