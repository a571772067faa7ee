"""Common subexpressions: equal equations are computed once."""

from __future__ import annotations

from gradix._base.recursion_room import FOR_PROGRAMS
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from gradix._core.keys import exact_items
from gradix._transforms.dce import dce_jaxpr


def cse_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program with each equation that repeats an earlier one replaced by its results.

    Equations with effects, random state or unhashable parameters are kept as they are.
    """
    replaced: dict = {}
    seen: dict = {}
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if replaced:
            invars = [replaced.get(v, v) if type(v) is not Literal else v for v in eqn.invars]
            if any(a is not b for a, b in zip(invars, eqn.invars)):
                eqn = eqn.replace(invars=invars)
        if eqn.effects or eqn.primitive.name == "optimization_barrier":
            found = eqn
        else:
            try:
                found = seen.setdefault(_key(eqn), eqn)
            except TypeError:  # a parameter is not hashable
                found = eqn
        if found is eqn:
            eqns.append(eqn)
        else:
            replaced.update(zip(eqn.outvars, found.outvars))
    if not replaced:
        return jaxpr
    outvars = [replaced.get(v, v) if type(v) is not Literal else v for v in jaxpr.outvars]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, eqns, debug_info=jaxpr.debug_info)


def _key(eqn: JaxprEqn) -> tuple:
    """A key that is equal for equations with equal results."""
    operands = tuple([_literal(v) if type(v) is Literal else v for v in eqn.invars])
    return eqn.primitive, operands, exact_items(eqn.params)


def _literal(v: Literal):
    """A literal's bits, which tell 0.0 from -0.0."""
    val = v.val
    return v.aval, val.host.tobytes() if isinstance(val, ArrayImpl) else repr(val)


def simplify(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without dead code and common subexpressions, with all its inputs."""
    with FOR_PROGRAMS:
        pruned, _ = dce_jaxpr(closed.jaxpr, keep_inputs=True)
        return ClosedJaxpr(cse_jaxpr(pruned), closed.consts)
