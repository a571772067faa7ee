"""Instantiation of programs with symbolic shapes: numbers replace the dimension variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import ShapedArray
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var

_counts = lazy_module("gradix._core.dimensions.counts")
DIMENSION_VALUE = "dim_as_value"


def instantiate(closed: ClosedJaxpr, values: dict[str, int]) -> ClosedJaxpr:
    """The program with numbers in place of dimensions.

    Args:
        closed: a program whose shapes and parameters hold symbolic dimensions.
        values: the value of each dimension variable in them.
    """
    return _Instance(values).closed(closed)


class _Instance:
    """Replaces dimension variables in programs, types and parameters.

    A shared program stays shared.
    """

    def __init__(self, values: dict[str, int]):
        self.values = dict(values)
        self.scope: Any = None  # of the new counts
        self._programs: dict[int, tuple] = {}

    def closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        return ClosedJaxpr(self.program(closed.jaxpr), closed.consts)

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        found = self._programs.get(id(jaxpr))
        if found is None:
            # The original is kept too, so that its id is not reused.
            found = self._programs[id(jaxpr)] = jaxpr, self._program(jaxpr)
        return found[1]

    def _program(self, jaxpr: Jaxpr) -> Jaxpr:
        env: dict = {}

        def new(v):
            env[v] = made = Var(self.aval(v.aval))
            return made

        def read(v):
            return v if type(v) is Literal else env[v]

        constvars, invars = [new(v) for v in jaxpr.constvars], [new(v) for v in jaxpr.invars]
        eqns = []
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == DIMENSION_VALUE and type(self.value(eqn.params["dim"])) is int:
                aval = eqn.outvars[0].aval
                env[eqn.outvars[0]] = Literal(self._number(eqn.params["dim"], aval), aval)
                continue
            ins = [read(v) for v in eqn.invars]
            outs = [new(v) for v in eqn.outvars]
            eqns.append(eqn.replace(invars=ins, outvars=outs, params={k: self.value(v) for k, v in eqn.params.items()}))
        return jaxpr.replace(constvars=constvars, invars=invars, outvars=[read(v) for v in jaxpr.outvars], eqns=eqns)

    def _number(self, dim: SymbolicDim, aval: ShapedArray):
        value = dim.evaluate(self.values)
        dtypes.check_python_int(value, aval.dtype)
        return np.asarray(value, aval.dtype)

    def _with_counts(self, x: SymbolicDim) -> dict:
        """The values of variables, and new counts in place of those in a size."""
        for d in _counts.counts_in(x):
            if str(d) not in self.values:
                count = x.scope.counted[str(d)]
                bound = self.value(count.bound)
                self.scope = self.scope or _counts.CountScope()
                self.values[str(d)] = _counts.fresh_count(bound, count.place, self.scope)
        return self.values

    def aval(self, aval):
        """A type with numbers for its dimensions."""
        shape = getattr(aval, "shape", ())
        return aval.update(shape=self.value(shape)) if SymbolicDim in map(type, shape) else aval

    def value(self, x):
        """A parameter with numbers for the dimensions in it."""
        kind = type(x)
        if kind is SymbolicDim:
            return x.evaluate(self._with_counts(x) if x.scope.counted else self.values)
        if kind is tuple:
            return tuple([self.value(v) for v in x])
        if kind is list:
            return [self.value(v) for v in x]
        if isinstance(x, tuple):  # a named tuple
            return kind(*[self.value(v) for v in x])
        if kind is dict:
            return {k: self.value(v) for k, v in x.items()}
        if kind is ClosedJaxpr:
            return self.closed(x)
        if kind is Jaxpr:
            return self.program(x)
        return self.aval(x) if kind is ShapedArray else x
