"""`scan_p`: a program folded over the leading axis of arrays."""

from __future__ import annotations

import numpy as np

from gradix._control.inner_programs import (
    carried,
    dependent,
    evaluated,
    may_run,
    rearranged,
    retyped,
    row,
    split,
    stacked,
    with_inputs,
    work,
)
from gradix._control.scan_linear import invariants, linear_body, transposed_body
from gradix._control.scan_lowering import Loop
from gradix._core.array import ArrayImpl
from gradix._core.dtypes import physical_dtype
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, axis_names
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind, cotangent_like
from gradix._ops.basis import instantiate, move_axis, tangent_aval, to_axis, zeros
from gradix._transforms.batch import batch_jaxpr
from gradix._transforms.dce import dce_closed
from gradix._transforms.jvp import jvp_jaxpr
from gradix._transforms.linearize import linearize_jaxpr


class Scan(Primitive):
    """Takes constants, the initial carry and stacked rows; returns the last carry and stacked rows.

    In each step `jaxpr` takes the constants, the carry and one row of each array, and returns the
    next carry and one row of each stacked result.
    """

    costly = True
    multiple_results = True
    mesh = MeshTraits(mixes=True, types_inside=True)
    effectful = True
    named = True

    def abstract(self, *avals, jaxpr, length, num_carry, **_):
        outs = jaxpr.out_avals
        return [*outs[:num_carry], *[stacked(length, a) for a in outs[num_carry:]]]

    def effects(self, params):
        return params["jaxpr"].effects

    def names(self, params):
        effects = params["jaxpr"].effects
        return axis_names(effects) if effects else ()

    def show(self, params):
        return {k: params[k] for k in ("jaxpr", "length", "num_carry", "num_consts", "reverse", "unroll")}

    def dependent(self, marks, params, smooth):
        nc, nk, closed = params["num_consts"], params["num_carry"], params["jaxpr"]
        carry = carried(closed, marks, nc, nk, smooth)
        outs = dependent(closed, (*marks[:nc], *carry, *marks[nc + nk :]), smooth)
        return [*carry, *outs[nk:]]

    def work(self, params):
        return params["length"] * work(params["jaxpr"])

    # -- evaluation --------------------------------------------------------------------------------

    def run(self, args, params):
        closed, length, nc, nk = (params["jaxpr"], params["length"], params["num_consts"], params["num_carry"])
        if not may_run(closed, length * work(closed)):
            return NotImplemented
        consts, carry, xs = split(args, nc, nk)
        rows, avals = [x.host for x in xs], [row(x.aval) for x in xs]
        out_avals, ys = closed.out_avals, []
        carry = [retyped(c, a) for c, a in zip(carry, out_avals)]
        for i in range(length - 1, -1, -1) if params["reverse"] else range(length):
            at = [ArrayImpl(h[i, ...], a) for h, a in zip(rows, avals)]
            outs = evaluated(closed, [*consts, *carry, *at])
            carry = outs[:nk]
            ys.append(outs[nk:])
        if params["reverse"]:
            ys.reverse()
        return [
            *carry,
            *[
                _stack(column, stacked(length, a))
                for column, a in zip(zip(*ys) if ys else [()] * len(out_avals[nk:]), out_avals[nk:])
            ],
        ]

    # -- transformations ---------------------------------------------------------------------------

    def jvp(self, primals, tangents, *, jaxpr, num_consts, num_carry, **params):
        nc, nk = num_consts, num_carry
        nz = carried_tangents(jaxpr, tangents, nc, nk)
        both, out_nz = jvp_jaxpr(jaxpr, nz, (*nz[nc : nc + nk], *[False] * (len(jaxpr.out_avals) - nk)))
        n, m = len(nz), len(out_nz)
        assert out_nz[:nk] == nz[nc : nc + nk]
        t_in, t_out = _places(nz, n), _places(out_nz, m)
        ins = _interleaved(n, t_in, nc, nk)
        outs = [
            *range(nk),
            *[t_out[i] for i in range(nk) if i in t_out],
            *range(nk, m),
            *[t_out[i] for i in range(nk, m) if i in t_out],
        ]
        ts = [instantiate(t, p.aval) if f else None for p, t, f in zip(primals, tangents, nz)]
        every = [*primals, *[t for t in ts if t is not None]]
        results = bind(
            self,
            [every[i] for i in ins],
            {
                "jaxpr": rearranged(both, ins, outs),
                "num_consts": nc + sum(nz[:nc]),
                "num_carry": nk + sum(nz[nc : nc + nk]),
                **params,
            },
        )
        at = {j: results[i] for i, j in enumerate(outs)}
        return [at[i] for i in range(m)], [at[t_out[i]] if i in t_out else None for i in range(m)]

    def linearize(self, primals, tangents, *, jaxpr, num_consts, num_carry, **params):
        nc, nk, n_out = num_consts, num_carry, len(jaxpr.out_avals)
        nz = carried_tangents(jaxpr, tangents, nc, nk)
        if not any(nz):
            return bind(self, primals, {"jaxpr": jaxpr, "num_consts": nc, "num_carry": nk, **params}), [None] * n_out
        cut = linearize_jaxpr(jaxpr, nz, (*nz[nc : nc + nk], *[False] * (n_out - nk)))
        known, hoisted, plan = linear_body(cut, nc, nk)
        fixed = invariants(hoisted, primals[:nc])
        consts = [primals[i] if kind == "in" else fixed[i] for kind, i in plan.known_consts]
        outs = bind(
            self, [*consts, *primals[nc:]], {"jaxpr": known, "num_consts": len(consts), "num_carry": nk, **params}
        )
        ts = [instantiate(t, p.aval) if f else None for p, t, f in zip(primals, tangents, nz)]
        tc, tk, tx = ([t for t in part if t is not None] for part in split(ts, nc, nk))
        sources = {"in": primals, "out": outs, "fixed": fixed}
        fixed_res, row_res = ([sources[kind][i] for kind, i in part] for part in (plan.fixed, plan.rows))
        results = bind(
            self,
            [*fixed_res, *tc, *tk, *row_res, *tx],
            {"jaxpr": plan.body, "num_consts": len(fixed_res) + len(tc), "num_carry": len(tk), **params},
        )
        given = iter(results)
        return outs[:n_out], [next(given) if f else None for f in cut.out_nonzero]

    def transpose(self, cts, *args, jaxpr, num_consts, num_carry, length, reverse, **params):
        nc, nk = num_consts, num_carry
        marks = [type(a) is Linear for a in args]
        lin_k = carried(jaxpr, marks, nc, nk)
        linear = (*marks[:nc], *lin_k, *marks[nc + nk :])
        ct_nz = (*lin_k, *[c is not None for c in cts[nk:]])
        known = self._known_carries(args, linear, jaxpr, nc, nk, length, reverse=reverse, params=params)
        body, live, refs = transposed_body(jaxpr, linear, ct_nz, nc, nk)
        c, _, x = split(args, nc, nk)
        in_avals = jaxpr.in_avals
        acc = [
            cotangent_like(zeros(tangent_aval(a)), a)
            for a, is_lin, alive in zip(in_avals, linear[:nc], live[:nc])
            if is_lin and alive
        ]
        start = [cotangent_like(instantiate(ct, a), a) for ct, a, is_lin in zip(cts, in_avals[nc:], lin_k) if is_lin]
        res_c = [a for a in c if type(a) is not Linear]
        res_x = [a for a in x if type(a) is not Linear]
        outs = bind(
            self,
            [
                *res_c,
                *[ref.read() for ref, _ in refs],
                *acc,
                *start,
                *known,
                *res_x,
                *[ct for ct in cts[nk:] if ct is not None],
            ],
            {
                "jaxpr": body,
                "num_consts": len(res_c),
                "num_carry": len(refs) + len(acc) + len(start),
                "length": length,
                "reverse": not reverse,
                **params,
            },
        )
        for (ref, is_written), value in zip(refs, outs):
            if is_written:
                ref.write(value)
        given = iter(outs[len(refs) :])
        back = [next(given) if is_lin and alive else None for is_lin, alive in zip(linear, live)]
        return [b if m else None for b, m in zip(back, marks)]

    def _known_carries(self, args, linear, jaxpr, nc, nk, length, *, reverse, params) -> list:
        """The stacked values of the carries that are not linear; a forward scan computes them."""
        wanted = [i for i in range(nk) if not linear[nc + i]]
        if not wanted:
            return []
        rows = with_inputs(jaxpr, [nc + i for i in wanted])
        n = len(jaxpr.out_avals)
        part = _pruned(rows, [*[i in wanted for i in range(nk)], *[False] * (n - nk), *[True] * len(wanted)], nc, nk)
        operands = [a for a, kept in zip(args, part.inputs) if kept]
        assert not any(type(a) is Linear for a in operands)
        outs = bind(
            self,
            operands,
            {
                "jaxpr": part.jaxpr,
                "num_consts": sum(part.inputs[:nc]),
                "length": length,
                "num_carry": len(wanted),
                "reverse": reverse,
                **params,
            },
        )
        return outs[len(wanted) :]

    def batch(self, axis, args, axes, *, jaxpr, num_consts, num_carry, **params):
        nc, nk, size = num_consts, num_carry, axis.size
        args = list(args)
        row_axes = [None if a is None else max(a - 1, 0) for a in axes[nc + nk :]]
        carry = [
            0 if m and a is None else a
            for a, m in zip(axes[nc : nc + nk], carried(jaxpr, [a is not None for a in axes], nc, nk))
        ]
        while True:
            forced = (*["any" if a is None else a for a in carry], *["any"] * (len(jaxpr.out_avals) - nk))
            mapped, out_axes = batch_jaxpr(jaxpr, axis, (*axes[:nc], *carry, *row_axes), forced)
            missed = [i for i in range(nk) if carry[i] is None and out_axes[i] is not None]
            if not missed:
                break
            for i in missed:  # the body added the batch axis, by an operation on its name
                carry[i] = 0
        for i, a in enumerate(carry, nc):
            if a is not None and axes[i] is None:
                args[i] = to_axis(size, args[i], None, a)
        for i in range(nc + nk, len(args)):  # the axis that the scan steps over stays first
            if axes[i] == 0:
                args[i] = move_axis(args[i], 0, 1)
        outs = bind(self, args, {"jaxpr": mapped, "num_consts": nc, "num_carry": nk, **params})
        return outs, [*carry, *[None if a is None else a + 1 for a in out_axes[nk:]]]

    def dce(self, used, eqn):
        """The loop without unused stacked results, and without carries that nothing used reads."""
        p = eqn.params
        nc, nk = p["num_consts"], p["num_carry"]
        part = _pruned(p["jaxpr"], used, nc, nk)
        return eqn.replace(
            invars=[v for v, k in zip(eqn.invars, part.inputs) if k],
            outvars=[v for v, k in zip(eqn.outvars, part.outputs) if k],
            params={
                **p,
                "jaxpr": part.jaxpr,
                "num_consts": sum(part.inputs[:nc]),
                "num_carry": sum(part.inputs[nc : nc + nk]),
            },
        )

    # -- lowering ----------------------------------------------------------------------------------

    def lower(self, em, outs, *args, jaxpr, length, reverse, num_consts, num_carry, unroll, **_):
        consts, carry, xs = split(args, num_consts, num_carry)
        loop = Loop(em, jaxpr, consts, xs, length, reverse, num_carry=num_carry)
        unroll = max(1, unroll)
        if type(length) is not int:
            return loop.rolled(carry, outs[num_carry:], 1)
        if unroll >= length:
            return loop.straight(carry, outs[num_carry:])
        return loop.rolled(carry, outs[num_carry:], unroll)


scan_p = Scan("scan")


def carried_tangents(jaxpr, tangents, nc, nk) -> tuple:
    """Which inputs of the body have a tangent in any step, tangents of the carry included."""
    nz = [t is not None for t in tangents]
    return (*nz[:nc], *carried(jaxpr, nz, nc, nk, smooth=True), *nz[nc + nk :])


def _places(nonzero, start: int) -> dict:
    """A map from the position of a primal to the position of its tangent in a jvp program."""
    out: dict = {}
    for i, nz in enumerate(nonzero):
        if nz:
            out[i] = start + len(out)
    return out


def _interleaved(n, tangents: dict, nc, nk) -> list[int]:
    """The order of inputs: constants, their tangents, carry, its tangents, rows, their tangents."""
    order: list[int] = []
    for part in (range(nc), range(nc, nc + nk), range(nc + nk, n)):
        order += [*part, *[tangents[i] for i in part if i in tangents]]
    return order


def _stack(rows, aval) -> ArrayImpl:
    out = np.empty(aval.shape, physical_dtype(aval.dtype))
    for i, r in enumerate(rows):
        out[i] = r.host
    return ArrayImpl(out, aval)


class _Pruned:
    """A body without dead equations, and flags of the inputs and outputs that it kept."""

    __slots__ = ("jaxpr", "inputs", "outputs")

    def __init__(self, jaxpr, inputs, outputs):
        self.jaxpr, self.inputs, self.outputs = jaxpr, inputs, outputs


def _pruned(closed: ClosedJaxpr, used, nc: int, nk: int) -> _Pruned:
    used = list(used)
    while True:
        part, inputs = dce_closed(closed, tuple(used))
        joined = [a or b for a, b in zip(used[:nk], inputs[nc : nc + nk])]
        if joined == used[:nk]:
            break
        used[:nk] = joined
    kept = [*inputs[:nc], *joined, *inputs[nc + nk :]]
    key = ("pruned", tuple(used), nc, nk)
    found = closed.memo.get(key)
    if found is None:
        invars = [v for v, k in zip(closed.jaxpr.invars, kept) if k]
        found = closed.memo[key] = ClosedJaxpr(
            Jaxpr(part.jaxpr.constvars, invars, part.jaxpr.outvars, part.jaxpr.eqns, None, part.jaxpr.debug_info),
            part.consts,
        )
    return _Pruned(found, kept, used)


def bind_scan(jaxpr: ClosedJaxpr, consts, init, xs, length: int, reverse: bool, *, unroll: int) -> list:
    """Bind `scan_p` in a smaller form.

    A carry that never changes becomes a constant, and a stacked result that only copies rows of an
    operand is that operand.
    """
    nc, nk = len(consts), len(init)
    invars, outvars = jaxpr.jaxpr.invars, jaxpr.jaxpr.outvars
    fixed = [k for k in range(nk) if outvars[k] is invars[nc + k]]
    places = {v: i for i, v in enumerate(invars)}
    passed = {j: places[v] - nc - nk for j, v in enumerate(outvars) if j >= nk and places.get(v, -1) >= nc + nk}
    if not fixed and not passed:
        return bind(scan_p, [*consts, *init, *xs], _params(jaxpr, length, reverse, unroll, nc, nk))
    moving = [k for k in range(nk) if k not in fixed]
    rest = [j for j in range(nk, len(outvars)) if j not in passed]
    ins = [*range(nc), *[nc + k for k in fixed], *[nc + k for k in moving], *range(nc + nk, len(invars))]
    body = rearranged(jaxpr, ins, [*moving, *rest])
    operands = [*consts, *init, *xs]
    outs = bind(
        scan_p, [operands[i] for i in ins], _params(body, length, reverse, unroll, nc + len(fixed), len(moving))
    )
    at = dict(zip([*moving, *rest], outs))
    return [init[j] if j in fixed else xs[passed[j]] if j in passed else at[j] for j in range(len(outvars))]


def _params(jaxpr, length, reverse, unroll, nc, nk) -> dict:
    return {"jaxpr": jaxpr, "length": length, "num_carry": nk, "num_consts": nc, "reverse": reverse, "unroll": unroll}
