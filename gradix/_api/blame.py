"""The line of the first operation of a program that gives a NaN or an infinity."""

from __future__ import annotations

import linecache

from gradix._base.lazy import lazy_module
from gradix._base.source import located
from gradix._control.call import jit_p
from gradix._core.aval import seen
from gradix._core.jaxpr import ClosedJaxpr, JaxprEqn, fold
from gradix._core.trace import bind_equation

_results = lazy_module("gradix._api.counted.results")


def blame(closed: ClosedJaxpr, args: list, name: str) -> list:
    """Run a program one operation after another, which the options for NaNs check.

    Raises:
        FloatingPointError: an operation gives a value that the options refuse; the message has its
            line, its name and the types of its operands.
    """

    numbers = None if seen.counts is None else _results.Numbers()

    def apply(eqn, operands):
        return evaluated(eqn, operands) if numbers is None else numbers.apply(eqn, operands, evaluated)

    def evaluated(eqn, operands):
        if eqn.primitive is jit_p:
            return blame(eqn.params["jaxpr"], operands, name)
        try:
            return bind_equation(eqn, operands)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error} {_where(eqn, name)}") from None

    return fold(closed.jaxpr, closed.consts, args, apply)


def _where(eqn: JaxprEqn, name: str) -> str:
    types = ", ".join([v.aval.str_short() for v in eqn.invars])
    told = f"It comes from {eqn.primitive.name} of {types} in the jit-compiled function {name}"
    if eqn.source is None:
        return f"{told}."
    text = linecache.getline(eqn.source.file, eqn.source.line).strip()
    return f"{told}, at {located(eqn.source.file, eqn.source.line)}:\n    {text}"
