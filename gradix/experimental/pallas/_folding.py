"""Programs of a kernel for known indices in the grid: what follows from these is computed at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._control.cond import cond_p
from gradix._core.array import as_array
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._core.trace import bind, outside
from gradix._transforms.dce import dce_jaxpr

_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def specialised(program: ClosedJaxpr, known: dict[int, Any]) -> ClosedJaxpr:
    """The program for known values of some inputs; its inputs stay.

    Args:
        known: from the place of an input, an int32 scalar, to its value, or to a `range` in which
            the value lies.
    """
    jaxpr = program.jaxpr
    folding = _Folding()
    env: dict = {v: v for v in (*jaxpr.constvars, *jaxpr.invars)}
    for place, value in known.items():
        var = jaxpr.invars[place]
        if isinstance(value, range):
            folding.ranges[var] = value
        else:
            env[var] = literal(np.int32(value), var.aval)
    outs = folding.run(jaxpr.eqns, env, jaxpr.outvars)
    folded = Jaxpr(jaxpr.constvars, jaxpr.invars, outs, folding.eqns, debug_info=jaxpr.debug_info)
    return ClosedJaxpr(dce_jaxpr(folded, keep_inputs=True)[0], program.consts)


def literal(value, aval) -> Literal:
    """A known value of a type, for an equation."""
    with outside():
        return Literal(as_array(np.asarray(value, aval.dtype)), aval)


class _Folding:
    """Collects the equations that are left of a program."""

    def __init__(self):
        self.eqns: list = []
        self.ranges: dict = {}

    def run(self, eqns, env: dict, outvars) -> list:
        """Go through equations, and return what their program returns."""

        def atom(a):
            return a if type(a) is Literal else env[a]

        for eqn in eqns:
            args = [atom(a) for a in eqn.invars]
            found = self._result(eqn, args)
            if found is None:
                new = [Var(v.aval) for v in eqn.outvars]
                self.eqns.append(JaxprEqn(eqn.primitive, args, new, eqn.params, eqn.effects, eqn.source))
                found = new
            env.update(zip(eqn.outvars, found))
        return [atom(v) for v in outvars]

    def _result(self, eqn: JaxprEqn, args) -> list | None:
        """What an equation gives, if that is known or it is a branch that is; else None."""
        if eqn.primitive is cond_p and type(args[0]) is Literal:
            branches = eqn.params["branches"]
            chosen = branches[min(max(int(np.asarray(args[0].val)), 0), len(branches) - 1)]
            if chosen.consts:
                return None
            return self.run(chosen.jaxpr.eqns, dict(zip(chosen.jaxpr.invars, args[1:])), chosen.jaxpr.outvars)
        if len(eqn.outvars) != 1 or eqn.effects or eqn.outvars[0].aval.shape:
            return None
        aval = eqn.outvars[0].aval
        truth = self._compared(eqn.primitive.name, args)
        if truth is not None:
            return [literal(truth, aval)]
        if eqn.primitive.host is None or not all(type(a) is Literal for a in args) or not args:
            return None
        with outside():
            value = bind(eqn.primitive, [a.val for a in args], eqn.params)
        return [Literal(value, aval)]

    def _compared(self, name: str, args) -> bool | None:
        """The result of comparing a number of a known range with a known number."""
        if name not in _MIRRORED or len(args) != 2:
            return None
        a, b = args
        if type(a) is Literal and type(b) is not Literal:
            name, a, b = _MIRRORED[name], b, a
        span = self.ranges.get(a) if type(a) is not Literal else None
        if span is None or type(b) is not Literal or b.aval.shape or not span:
            return None
        n = int(np.asarray(b.val))
        low, high = span[0], span[-1]
        truths = {
            "lt": (high < n, low >= n),
            "le": (high <= n, low > n),
            "gt": (low > n, high <= n),
            "ge": (low >= n, high < n),
            "eq": (low == high == n, n < low or n > high),
            "ne": (n < low or n > high, low == high == n),
        }
        yes, no = truths[name]
        return True if yes else False if no else None


def reads(program: ClosedJaxpr, own) -> list[bool]:
    """For each input, whether a result depends on it.

    Result i belongs to input `own[i]`; a result that is its input unchanged is no use of it.
    """
    jaxpr = dce_jaxpr(program.jaxpr, keep_inputs=True)[0]
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
    for place, v in zip(own, jaxpr.outvars):
        if type(v) is not Literal and v is not jaxpr.invars[place]:
            used.add(v)
    return [v in used for v in jaxpr.invars]
