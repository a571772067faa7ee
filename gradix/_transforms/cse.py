"""Common subexpressions: equal equations are computed once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gradix._base.recursion_room import with_room
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._core.keys import exact_items
from gradix._transforms.dce import dce_jaxpr


def cse_jaxpr(jaxpr: Jaxpr, same: Mapping[Var, Var] = MappingProxyType({})) -> Jaxpr:
    """The program with each equation that repeats an earlier one replaced by its results.

    Equations with effects, random state or unhashable parameters are kept as they are.

    Args:
        jaxpr: a program.
        same: inputs, and for each another one that has its value.
    """
    replaced: dict = dict(same)
    # the first equation of each primitive and operands, and all with equal ones by parameters too
    seen: dict = {}
    exactly: dict = {}
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if replaced:
            invars = [replaced.get(v, v) if type(v) is not Literal else v for v in eqn.invars]
            if any(a is not b for a, b in zip(invars, eqn.invars)):
                eqn = eqn.replace(invars=invars)
        found = eqn
        if not eqn.effects and eqn.primitive.name != "optimization_barrier":
            operands = tuple([_literal(v) if type(v) is Literal else v for v in eqn.invars])
            key = eqn.primitive, operands
            first = seen.setdefault(key, eqn)
            if first is not eqn:
                found = _equal(first, eqn, key, exactly)
        if found is eqn:
            eqns.append(eqn)
        else:
            replaced.update(zip(eqn.outvars, found.outvars))
    if not replaced:
        return jaxpr
    outvars = [replaced.get(v, v) if type(v) is not Literal else v for v in jaxpr.outvars]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, eqns, debug_info=jaxpr.debug_info)


def _equal(first: JaxprEqn, eqn: JaxprEqn, key: tuple, exactly: dict) -> JaxprEqn:
    """The earlier equation with the results of `eqn`, or `eqn`, which is then remembered.

    Args:
        first: the first equation with this primitive and operands, which are the `key`.
        exactly: such equations by key and parameters.
    """
    try:
        exactly.setdefault((key, exact_items(first.params)), first)
    except TypeError:  # a parameter is not hashable
        pass
    try:
        return exactly.setdefault((key, exact_items(eqn.params)), eqn)
    except TypeError:
        return eqn


def _literal(v: Literal):
    """A literal's bits, which tell 0.0 from -0.0."""
    val = v.val
    return v.aval, val.host.tobytes() if isinstance(val, ArrayImpl) else repr(val)


def simplify(closed: ClosedJaxpr, same: Mapping[Var, Var] = MappingProxyType({})) -> ClosedJaxpr:
    """The program without dead code and common subexpressions, with all its inputs.

    Args:
        closed: a program.
        same: inputs, and for each another one that has its value.
    """
    return with_room(_simplified, closed, same)


def _simplified(closed: ClosedJaxpr, same) -> ClosedJaxpr:
    pruned, _ = dce_jaxpr(closed.jaxpr, keep_inputs=True)
    return ClosedJaxpr(cse_jaxpr(pruned, same), closed.consts)
