"""Pairs of loops, the second of which computes again what the first would stack for it.

A loop of a forward pass stacks, for each iteration, what the loop of its backward pass reads. Here
it stacks the carries alone, where these are smaller, and the backward loop computes the rest from
them, one iteration at a time, as if the body were within a `checkpoint`.
"""

from __future__ import annotations

from gradix._api.costs.recompute import again, nbytes_of
from gradix._control.inner_programs import stacked
from gradix._control.scan import scan_p
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._transforms.cse import simplify
from gradix._transforms.dce import dce_jaxpr


def with_lean_loops(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without calls, in which pairs of loops compute rows again; or the program itself."""
    jaxpr = closed.jaxpr
    eqns = list(jaxpr.eqns)
    for k, eqn in enumerate(eqns):
        if eqn.primitive is scan_p:
            for j in range(k):
                if eqns[j].primitive is scan_p:
                    made = _leaner(eqns[j], eqns[k], _read_elsewhere(jaxpr, eqns, k))
                    if made is not None:
                        eqns[j], eqns[k] = made
    if all(a is b for a, b in zip(eqns, jaxpr.eqns)):
        return closed
    return simplify(ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts))


def _read_elsewhere(jaxpr: Jaxpr, eqns: list[JaxprEqn], k: int) -> set[Var]:
    """What is read by other equations than number `k`, or is a result."""
    found = {v for v in jaxpr.outvars if type(v) is not Literal}
    for i, eqn in enumerate(eqns):
        if i != k:
            found.update([v for v in eqn.invars if type(v) is not Literal])
    return found


class _Loop:
    """The parts of a scan's equation."""

    def __init__(self, eqn: JaxprEqn):
        p = eqn.params
        self.eqn, self.body = eqn, p["jaxpr"]
        self.nc, self.nk, self.length = p["num_consts"], p["num_carry"], p["length"]
        self.first_row = self.nc + self.nk
        self.rows = eqn.invars[self.first_row :]
        self.stacked = eqn.outvars[self.nk :]


def _leaner(first: JaxprEqn, second: JaxprEqn, elsewhere: set[Var]):
    """Both equations with fewer rows between them; None if there is nothing to gain."""
    a, b = _Loop(first), _Loop(second)
    if a.length != b.length or a.body.consts or b.body.consts or first.effects:
        return None
    inner = a.body.jaxpr
    made = dict(zip(a.stacked, inner.outvars[a.nk :]))
    saved = [v for v in dict.fromkeys(b.rows) if v in made and v not in elsewhere and _is_computed(made[v], inner)]
    if not saved:
        return None
    part, used = dce_jaxpr(inner.replace(outvars=[made[v] for v in saved]))
    needed = [i for i, is_used in enumerate(used) if is_used]
    # the rows of carries: those that are stacked already, and new ones
    rows = {
        i: next((v for v, w in made.items() if w is inner.invars[i]), None) for i in needed if a.nc <= i < a.first_row
    }
    fresh = {i: Var(stacked(a.length, inner.invars[i].aval)) for i, v in rows.items() if v is None}
    if sum(map(nbytes_of, fresh.values())) >= sum(map(nbytes_of, saved)):
        return None
    rows |= fresh
    outer = [rows.get(i) or first.invars[i] for i in needed]
    is_row = [i >= a.nc for i in needed]
    return _stacking(a, list(fresh), list(fresh.values())), _computing(b, part, saved, outer, is_row)


def _is_computed(v, body: Jaxpr) -> bool:
    return type(v) is not Literal and v not in body.invars


def _stacking(loop: _Loop, carries: list[int], rows: list[Var]) -> JaxprEqn:
    """The equation of a loop that stacks these carries too."""
    body = loop.body.jaxpr
    more = body.replace(outvars=[*body.outvars, *[body.invars[i] for i in carries]])
    return loop.eqn.replace(
        outvars=[*loop.eqn.outvars, *rows], params={**loop.eqn.params, "jaxpr": ClosedJaxpr(more, ())}
    )


def _computing(loop: _Loop, part: Jaxpr, saved: list[Var], outer: list, is_row: list) -> JaxprEqn:
    """The equation of a loop that computes the rows `saved` by the program `part`.

    Args:
        outer: what the equation reads for the inputs of `part`.
        is_row: for each of these, whether an iteration gets a row of it; else it is a constant.
    """
    body = loop.body.jaxpr
    consts, carry = body.invars[: loop.nc], body.invars[loop.nc : loop.first_row]
    within = {v: Var(v.aval) for v in part.invars}
    kept = [(v, w) for v, w in zip(loop.rows, body.invars[loop.first_row :]) if v not in saved]
    kept += [(v, within[w]) for v, w, r in zip(outer, part.invars, is_row) if r]
    held = [(v, within[w]) for v, w, r in zip(outer, part.invars, is_row) if not r]
    eqns = []
    for eqn in part.eqns:
        within.update((v, Var(v.aval)) for v in eqn.outvars)
        eqns.append(_renamed(eqn, within).replace(source=again(eqn.source)))
    computed = dict(zip(saved, part.outvars))
    inside = {w: within[computed[v]] for v, w in zip(loop.rows, body.invars[loop.first_row :]) if v in computed}
    made = Jaxpr(
        [],
        [*consts, *[w for _, w in held], *carry, *[w for _, w in kept]],
        [_read(v, inside) for v in body.outvars],
        [*eqns, *[_renamed(e, inside) for e in body.eqns]],
        debug_info=body.debug_info,
    )
    outer_carry = loop.eqn.invars[loop.nc : loop.first_row]
    return loop.eqn.replace(
        invars=[*loop.eqn.invars[: loop.nc], *[v for v, _ in held], *outer_carry, *[v for v, _ in kept]],
        params={**loop.eqn.params, "jaxpr": ClosedJaxpr(made, ()), "num_consts": loop.nc + len(held)},
    )


def _renamed(eqn: JaxprEqn, names: dict) -> JaxprEqn:
    return eqn.replace(invars=[_read(v, names) for v in eqn.invars], outvars=[_read(v, names) for v in eqn.outvars])


def _read(v, names: dict):
    return v if type(v) is Literal else names.get(v, v)
