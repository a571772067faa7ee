"""The line of the first operation of a program that gives a NaN or an infinity."""

from __future__ import annotations

import linecache

from gradix._control.call import jit_p
from gradix._core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from gradix._core.trace import bind


def blame(closed: ClosedJaxpr, args: list, name: str) -> list:
    """Run a program one operation after another, which the options for NaNs check.

    Raises:
        FloatingPointError: an operation gives a value that the options refuse; the message has its
            line, its name and the types of its operands.
    """
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, closed.consts))
    env.update(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        ins = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        if eqn.primitive is jit_p:
            env.update(zip(eqn.outvars, blame(eqn.params["jaxpr"], ins, name)))
            continue
        try:
            out = bind(eqn.primitive, ins, eqn.params)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error} {_where(eqn, name)}") from None
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def _where(eqn: JaxprEqn, name: str) -> str:
    types = ", ".join([v.aval.str_short() for v in eqn.invars])
    told = f"It comes from {eqn.primitive.name} of {types} in the jit-compiled function {name}"
    if eqn.source is None:
        return f"{told}."
    text = linecache.getline(eqn.source.file, eqn.source.line).strip()
    return f"{told}, at {eqn.source.file}:{eqn.source.line}:\n    {text}"
