"""Dead code elimination: drop equations and inputs that nothing needs."""

from __future__ import annotations

from gradix._base.lazy import lazy_module
from gradix._core.aval import seen
from gradix._core.effects import is_kept
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal

_counted = lazy_module("gradix._transforms.counted")


def dce_jaxpr(jaxpr: Jaxpr, used_outputs=None, keep_inputs: bool = False) -> tuple[Jaxpr, list[bool]]:
    """The program with only what its used outputs need, and for each input whether it is kept.

    Constvars are never dropped here (their values are kept elsewhere); `keep_inputs` keeps all
    inputs.
    """
    outvars = jaxpr.outvars if used_outputs is None else [v for v, u in zip(jaxpr.outvars, used_outputs) if u]
    live = {v for v in outvars if type(v) is not Literal}
    if seen.counts is not None and _counted.defined(jaxpr):
        live.update(_live_counts(jaxpr, outvars))
    eqns, changed = [], False
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars) or (eqn.effects and is_kept(eqn.effects)):
            rule = eqn.primitive.dce
            if rule is not None and any(v not in live for v in eqn.outvars):
                before, eqn = eqn, rule([v in live for v in eqn.outvars], eqn)
                changed = changed or eqn is not before
            eqns.append(eqn)
            live.update([v for v in eqn.invars if type(v) is not Literal])
    eqns.reverse()
    used_inputs = [keep_inputs or v in live for v in jaxpr.invars]
    if not changed and len(eqns) == len(jaxpr.eqns) and all(used_inputs) and len(outvars) == len(jaxpr.outvars):
        return jaxpr, used_inputs
    invars = [v for v, u in zip(jaxpr.invars, used_inputs) if u]
    return Jaxpr(jaxpr.constvars, invars, outvars, eqns, debug_info=jaxpr.debug_info), used_inputs


def _live_counts(jaxpr: Jaxpr, outvars) -> set:
    """The values of the counts that types and parameters of live equations mention."""
    live = {v for v in outvars if type(v) is not Literal}
    counts = _counted.in_types(outvars)
    values = set()
    for eqn in reversed(jaxpr.eqns):
        is_needed = eqn.primitive.defines_size and eqn.params["dim"] in counts
        if is_needed:
            values.add(eqn.outvars[0])
        if is_needed or not live.isdisjoint(eqn.outvars) or is_kept(eqn.effects):
            counts |= _counted.used(eqn)
            live.update([v for v in eqn.invars if type(v) is not Literal])
    return values


def without_dead(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without dead code; all inputs stay."""
    return ClosedJaxpr(dce_jaxpr(closed.jaxpr, keep_inputs=True)[0], closed.consts)


def dce_closed(closed: ClosedJaxpr, used_outputs: tuple) -> tuple[ClosedJaxpr, list[bool]]:
    """As `dce_jaxpr`, memoised on the program."""
    key = ("dce", used_outputs)
    found = closed.memo.get(key)
    if found is None:
        jaxpr, used = dce_jaxpr(closed.jaxpr, used_outputs)
        found = closed.memo[key] = (ClosedJaxpr(jaxpr, closed.consts), used)
    return found
