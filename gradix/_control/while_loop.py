"""`while_p`: a program that is repeated while another program returns true."""

from __future__ import annotations

import numpy as np

from gradix._control.inner_programs import (
    carried,
    dependent,
    evaluated,
    is_any_ordered,
    may_run,
    rearranged,
    retyped,
    row,
    split,
    work,
)
from gradix._control.scan import bind_scan
from gradix._control.while_adjoint import WhileBack, WhileCurved, WhileLinear, WhileSave
from gradix._core.aval import make_aval
from gradix._core.effects import io_effect
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, axis_names
from gradix._core.primitive import MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import instantiate, to_axis
from gradix._transforms.batch import batch_jaxpr
from gradix._transforms.dce import dce_closed
from gradix._transforms.jvp import jvp_jaxpr
from gradix._transforms.staging import eval_closed, stage_closed

# the number of iterations assumed for a loop of unknown length, where its cost is estimated
_GUESSED_TURNS = 16
_BOOL = np.dtype(bool)


class While(Primitive):
    """Takes the condition's constants, the body's constants, and the carry; returns the last carry.

    `vmap` makes a condition of shape (b, …). Each of its elements stands for one loop, and its axes
    are the leading axes of every carry. A loop that has ended keeps its carry until all have ended.
    """

    costly = True
    multiple_results = True
    mesh = MeshTraits(mixes=True, types_inside=True)
    effectful = True
    named = True
    save: Primitive  # this and the next three are the primitives that reverse mode uses
    linear: Primitive
    back: Primitive
    curved: Primitive

    def abstract(self, *avals, body_jaxpr, **_):
        return body_jaxpr.out_avals

    def effects(self, params):
        return params["cond_jaxpr"].effects | params["body_jaxpr"].effects

    def names(self, params):
        effects = self.effects(params)
        return axis_names(effects) if effects else ()

    def show(self, params):
        return {k: params[k] for k in ("body_jaxpr", "body_nconsts", "cond_jaxpr", "cond_nconsts")}

    def dependent(self, marks, params, smooth):
        cc, bc, carry = split(marks, params["cond_nconsts"], params["body_nconsts"])
        while True:
            if not smooth and any(dependent(params["cond_jaxpr"], (*cc, *carry))):
                return [True] * len(carry)
            joined = [a or b for a, b in zip(carry, dependent(params["body_jaxpr"], (*bc, *carry), smooth))]
            if joined == carry:
                return carry
            carry = joined

    def work(self, params):
        return _GUESSED_TURNS * (work(params["body_jaxpr"]) + work(params["cond_jaxpr"]))

    def run(self, args, params):
        """Iterate on the host until that costs more than compiling, then run the rest compiled."""
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        cc, bc, carry = split(args, params["cond_nconsts"], params["body_nconsts"])
        if cond.out_avals[0].shape or body.memo.get("hot"):
            return NotImplemented
        cost, spent = work(cond) + work(body), 0
        carry = [retyped(c, a) for c, a in zip(carry, body.out_avals)]
        while may_run(body, cost if not spent else 0) and spent <= 2000:
            (again,) = eval_closed(cond, *cc, *carry)
            if not again.host:
                return carry
            carry = evaluated(body, [*bc, *carry])
            spent += cost
        if not spent:
            return NotImplemented
        body.memo["hot"] = True
        return bind(self, [*cc, *bc, *carry], params)

    # -- transformations ---------------------------------------------------------------------------

    def jvp(self, primals, tangents, **params):
        operands, params, places, carry = self.tangent_loop(primals, tangents, params)
        outs = bind(self, operands, params)
        return [outs[p] for p in places], [outs[p + 1] if nz else None for p, nz in zip(places, carry)]

    def linearize(self, primals, tangents, **params):
        outs, ts = self.linearized(self, primals, tangents, params)
        return outs[: len(ts)], ts

    def linearized(self, plain, primals, tangents, params) -> tuple[list, list]:
        """The results of `save` (the last carry and the residuals), and the last carry's tangents.

        Where no tangent reaches the carry, the results are those of `plain`: this primitive or
        `save`.
        """
        nc, nb, body = params["cond_nconsts"], params["body_nconsts"], params["body_jaxpr"]
        nk = len(body.out_avals)
        marks = [t is not None for t in tangents[nc:]]
        marks[nb:] = carried(body, marks, nb, nk, smooth=True)
        if not any(marks[nb:]):
            return bind(plain, primals, params), [None] * nk
        outs = bind(self.save, primals, params)
        ts = [instantiate(t, p.aval) for t, p, m in zip(tangents[nc:], primals[nc:], marks) if m]
        found = iter(bind(self.linear, [*primals, *outs[nk:], *ts], {**params, "nonzero": tuple(marks)}))
        return outs, [next(found) if m else None for m in marks[nb:]]

    def tangent_loop(self, primals, tangents, params):
        """The loop whose carry holds each primal followed by its tangent, if that is nonzero.

        Returns:
            its operands, its parameters, the position of each primal in its carry, and for each
            primal whether it has a tangent.
        """
        nc, nb = params["cond_nconsts"], params["body_nconsts"]
        cc, bc, init = split(primals, nc, nb)
        _, tb, tk = split(tangents, nc, nb)
        nb_nz, carry = [t is not None for t in tb], [t is not None for t in tk]
        while True:
            both, out_nz = jvp_jaxpr(params["body_jaxpr"], (*nb_nz, *carry), tuple(carry))
            if list(out_nz) == carry:
                break
            carry = list(out_nz)
        n, nk = nb + len(init), len(init)
        t_in, t_out, state, places = {}, {}, [], []
        for i, nz in enumerate((*nb_nz, *carry)):
            if nz:
                t_in[i] = n + len(t_in)
        for i, nz in enumerate(carry):
            if nz:
                t_out[i] = nk + len(t_out)
        ins = [*range(nb), *[t_in[i] for i in range(nb) if nb_nz[i]]]
        outs, cond_ins = [], list(range(nc))
        for i, (x, t, nz) in enumerate(zip(init, tk, carry)):
            places.append(len(state))
            state.append(x)
            ins.append(nb + i)
            outs.append(i)
            cond_ins.append(nc + i)
            if nz:
                t = instantiate(t, x.aval)
                state.append(t)
                ins.append(t_in[nb + i])
                outs.append(t_out[i])
                cond_ins.append(t.aval)
        return (
            [*cc, *bc, *[t for t in tb if t is not None], *state],
            {
                **params,
                "body_jaxpr": rearranged(both, ins, outs),
                "body_nconsts": nb + sum(nb_nz),
                "cond_jaxpr": rearranged(params["cond_jaxpr"], cond_ins),
            },
            places,
            carry,
        )

    def batch(self, axis, args, axes, **params):
        whole, mapped, carry = self.mapped(axis, args, axes, params)
        effects = {*mapped["cond_jaxpr"].effects, *mapped["body_jaxpr"].effects}
        is_apart = io_effect in effects and bool(mapped["cond_jaxpr"].out_avals[0].shape)
        if is_apart and axis.name not in axis_names([*params["cond_jaxpr"].effects, *params["body_jaxpr"].effects]):
            return self._one_by_one(axis.size, args, axes, params)
        return bind(self, whole, mapped), carry

    def _one_by_one(self, size, args, axes, params):
        """The loops of the examples, one after another.

        In one loop for all of them, the effects of those that have ended would go on.
        """
        rows = [i for i, a in enumerate(axes) if a is not None]
        fixed = [i for i, a in enumerate(axes) if a is None]

        def alone(*values):
            given = dict(zip([*fixed, *rows], values))
            return bind(self, [given[i] for i in range(len(args))], params)

        avals = [args[i].aval for i in fixed]
        xs = [to_axis(size, args[i], axes[i], 0) for i in rows]
        jaxpr = stage_closed(alone, [*avals, *[row(x.aval) for x in xs]])
        outs = bind_scan(jaxpr, [args[i] for i in fixed], [], xs, size, False, unroll=1)
        return outs, [0] * len(outs)

    def mapped(self, axis, args, axes, params):
        """The operands and parameters of the batched loop, and the batch axis of each carry."""
        cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
        cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
        size, nc, nb = axis.size, cond_nconsts, body_nconsts
        cc, bc, carry = split(axes, nc, nb)
        nested = bool(cond_jaxpr.out_avals[0].shape)
        while True:
            forced = tuple(["any" if a is None else a for a in carry])
            body, out_axes = batch_jaxpr(body_jaxpr, axis, (*bc, *carry), forced)
            joined = [b if a is None and b is None else 0 if a is None else a for a, b in zip(carry, out_axes)]
            cond, (cond_axis,) = batch_jaxpr(cond_jaxpr, axis, (*cc, *joined), (("any",)))
            if cond_axis is not None or (nested and any(a is not None for a in joined)):
                joined = [0] * len(joined)
                cond, _ = batch_jaxpr(cond_jaxpr, axis, (*cc, *joined), (0,))
            if joined == carry:
                break
            carry = joined
        args = list(args)
        for i, a in enumerate(carry, nc + nb):
            if a is not None and axes[i] != a:
                args[i] = to_axis(size, args[i], axes[i], a)
        return (args, {"body_jaxpr": body, "body_nconsts": nb, "cond_jaxpr": cond, "cond_nconsts": nc}, carry)

    def dce(self, used, eqn):
        """The loop without the carries that no used result, condition or other kept carry reads."""
        p = eqn.params
        nc, nb, cond, body = p["cond_nconsts"], p["body_nconsts"], p["cond_jaxpr"], p["body_jaxpr"]
        read = dce_closed(cond, (True,))[1]
        carry = [a or b for a, b in zip(used, read[nc:])]
        while True:
            part, inputs = dce_closed(body, tuple(carry))
            joined = [a or b for a, b in zip(carry, inputs[nb:])]
            if joined == carry:
                break
            carry = joined
        if all(carry):
            return eqn
        consts = inputs[:nb]
        left = [i for i, k in enumerate([*consts, *carry]) if k]
        pruned = ClosedJaxpr(
            Jaxpr(
                part.jaxpr.constvars,
                [body.jaxpr.invars[i] for i in left],
                part.jaxpr.outvars,
                part.jaxpr.eqns,
                None,
                part.jaxpr.debug_info,
            ),
            part.consts,
        )
        kept = [*[True] * nc, *consts, *carry]
        cond_ins = [*range(nc), *[nc + i for i, k in enumerate(carry) if k]]
        return eqn.replace(
            invars=[v for v, k in zip(eqn.invars, kept) if k],
            outvars=[v for v, k in zip(eqn.outvars, carry) if k],
            params={
                "body_jaxpr": pruned,
                "body_nconsts": sum(consts),
                "cond_jaxpr": rearranged(cond, cond_ins),
                "cond_nconsts": nc,
            },
        )

    # -- lowering ----------------------------------------------------------------------------------

    def lower(self, em, outs, *args, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        cc, bc, init = split(args, cond_nconsts, body_nconsts)
        shape = cond_jaxpr.out_avals[0].shape

        def going(*carry):
            return em.inline(cond_jaxpr.jaxpr, cond_jaxpr.consts, [*cc, *carry])[0]

        ordered = is_any_ordered([*body_jaxpr.effects, *cond_jaxpr.effects])
        if cond_jaxpr.effects and (shape or ordered):
            # the effects of the condition happen once a turn, and where the token can be passed on
            def decided(on, *carry):
                new = em.inline(body_jaxpr.jaxpr, body_jaxpr.consts, [*bc, *carry])
                if shape:
                    new = _where_on(em, on, new, carry)
                return [going(*new), *new]

            start = [going(*init), *init]
            return em.while_loop(start, lambda on, *_: [_any(em, on)], decided, ordered=ordered)[1:]

        def condition(*carry):
            return [_any(em, going(*carry))]

        def turn(*carry):
            new = em.inline(body_jaxpr.jaxpr, body_jaxpr.consts, [*bc, *carry])
            if not shape:
                return new
            return _where_on(em, going(*carry), new, carry)

        return em.while_loop(init, condition, turn, ordered=ordered)


def _where_on(em, on, new, carry) -> list:
    """The new carry of the examples whose condition holds, and the old one of the others."""
    return [em.select(_spread(em, on, n.aval.shape), n, old) for n, old in zip(new, carry)]


def _any(em, pred):
    shape = pred.aval.shape
    if not shape:
        return pred
    scalar = make_aval((), _BOOL)
    return em.reduce([pred], [em.constant(False, scalar)], tuple(range(len(shape))), [scalar], "or")[0]


def _spread(em, pred, shape):
    """A condition over leading axes, broadcast to `shape`."""
    return em.broadcast_in_dim(pred, make_aval(shape, _BOOL), range(pred.aval.ndim))


while_p = While("while")
while_p.save = WhileSave("while_save", while_p)
while_p.linear = WhileLinear("while_linear", while_p)
while_p.back = WhileBack("while_back", while_p)
while_p.curved = WhileCurved("while_curved", while_p)


def bind_while(cond_jaxpr: ClosedJaxpr, cond_consts, body_jaxpr: ClosedJaxpr, body_consts, init) -> list:
    """Bind `while_p`, with carries that stay and that the condition ignores made constants."""
    nc, nb, nk = len(cond_consts), len(body_consts), len(init)
    invars, outvars = body_jaxpr.jaxpr.invars, body_jaxpr.jaxpr.outvars
    fixed = [k for k in range(nk) if outvars[k] is invars[nb + k]]
    if fixed:
        read = dce_closed(cond_jaxpr, (True,))[1][nc:]
        fixed = [k for k in fixed if not read[k]]
    if fixed:
        moving = [k for k in range(nk) if k not in fixed]
        body_jaxpr = rearranged(body_jaxpr, [*[nb + k for k in fixed], *range(nb), *[nb + k for k in moving]], moving)
        cond_jaxpr = rearranged(cond_jaxpr, [*range(nc), *[nc + k for k in moving]])
        body_consts = [*[init[k] for k in fixed], *body_consts]
        outs = dict(zip(moving, _bind(cond_jaxpr, cond_consts, body_jaxpr, body_consts, [init[k] for k in moving])))
        return [outs.get(k, init[k]) for k in range(nk)]
    return _bind(cond_jaxpr, cond_consts, body_jaxpr, body_consts, init)


def _bind(cond_jaxpr, cond_consts, body_jaxpr, body_consts, init) -> list:
    return bind(
        while_p,
        [*cond_consts, *body_consts, *init],
        {
            "body_jaxpr": body_jaxpr,
            "body_nconsts": len(body_consts),
            "cond_jaxpr": cond_jaxpr,
            "cond_nconsts": len(cond_consts),
        },
    )
