"""Programs with sizes that values decide: which counts they define and use, and their renaming."""

from __future__ import annotations

import re
from typing import Any

from gradix._core.aval import ShapedArray
from gradix._core.dimensions.counts import CountScope, counts_in, fresh_count, substituted
from gradix._core.dimensions.expression import SymbolicDim, has_counts
from gradix._core.dimensions.scope import tell_integer
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal, holds
from gradix._core.trace import state
from gradix._ops.counted import buffer, define, prefix, whole

NONE: frozenset = frozenset()


# -- what a program defines and uses ---------------------------------------------------------------


def defined(jaxpr: Jaxpr) -> frozenset:
    """The counts that equations of a program define, not those of inner programs."""
    found = jaxpr.memo.get("counts")
    if found is None:
        found = jaxpr.memo["counts"] = frozenset(_values(jaxpr.eqns))
    return found


def _values(eqns) -> dict:
    """For each count that equations define, the variable of its value."""
    return {e.params["dim"]: e.outvars[0] for e in eqns if e.primitive.defines_size}


def used(eqn) -> frozenset:
    """The counts that an equation uses: in the types of its values, and in its parameters."""
    found = NONE
    for v in (*eqn.invars, *eqn.outvars):
        shape = v.aval.shape
        if SymbolicDim in map(type, shape):
            found = found.union(*map(counts_in, shape))
    for value in eqn.params.values():
        found |= _in_parameter(value)
    return found


def _in_parameter(value) -> frozenset:
    kind = type(value)
    if kind is SymbolicDim:
        return counts_in(value)
    if kind is tuple or kind is list or isinstance(value, tuple):
        found = NONE
        for x in value:
            found |= _in_parameter(x)
        return found
    if kind is ClosedJaxpr:
        return free(value.jaxpr)
    if kind is Jaxpr:
        return free(value)
    if kind is ShapedArray:
        return _in_parameter(value.shape)
    return NONE


def in_types(variables) -> frozenset:
    """The counts in the types of variables."""
    return NONE.union(*[_in_parameter(v.aval.shape) for v in variables])


def free(jaxpr: Jaxpr) -> frozenset:
    """The counts that a program uses, and does not define."""
    found = jaxpr.memo.get("free counts")
    if found is None:
        found = NONE
        for v in (*jaxpr.constvars, *jaxpr.invars):
            found |= _in_parameter(v.aval.shape)
        for e in jaxpr.eqns:
            found |= used(e)
        found = jaxpr.memo["free counts"] = found - defined(jaxpr)
    return found


def defines_any(jaxpr: Jaxpr) -> bool:
    """Whether a program, or a program inside of it, defines a count."""
    return holds(jaxpr, defines_size)


def defines_size(eqn) -> bool:
    """Whether an equation itself defines a count."""
    return eqn.primitive.defines_size


# -- evaluation ------------------------------------------------------------------------------------


def for_evaluation(jaxpr: Jaxpr) -> Jaxpr:
    """A program to be evaluated within another one, with new variables for its own counts.

    A program may be evaluated several times in one, each time with other values of its counts.
    """
    own = defined(jaxpr)
    if not own:
        return jaxpr
    new: dict = {}
    names: dict = {}
    for scope in dict.fromkeys([d.scope for d in own]):
        for name, count in list(scope.counted.items()):  # a bound is made of counts before it
            if count.dim in own:
                bound = count.bound if type(count.bound) is int else substituted(count.bound, names)
                new[count.dim] = names[name] = fresh_count(bound, count.place, scope)
    return Renamed(new).program(jaxpr)


class Renamed:
    """Replaces counts in programs, types and parameters."""

    def __init__(self, new: dict):
        self.new = new
        self.names = {str(old): dim for old, dim in new.items()}
        self.scopes = {old.scope for old in new}
        self.programs: dict[int, tuple] = {}

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        found = self.programs.get(id(jaxpr))
        if found is None:
            found = self.programs[id(jaxpr)] = jaxpr, self._program(jaxpr)
        return found[1]

    def _program(self, jaxpr: Jaxpr) -> Jaxpr:
        env: dict = {}

        def new(v):
            if not has_counts(v.aval.shape):
                env[v] = v
                return v
            made = object.__new__(type(v))
            made.__init__(self.value(v.aval))
            env[v] = made
            return made

        def read(v):
            return v if type(v) is Literal else env[v]

        constvars, invars = [new(v) for v in jaxpr.constvars], [new(v) for v in jaxpr.invars]
        eqns = [
            e.replace(
                invars=[read(v) for v in e.invars],
                outvars=[new(v) for v in e.outvars],
                params={k: self.value(v) for k, v in e.params.items()},
            )
            for e in jaxpr.eqns
        ]
        return jaxpr.replace(constvars=constvars, invars=invars, outvars=[read(v) for v in jaxpr.outvars], eqns=eqns)

    def value(self, x):
        kind = type(x)
        if kind is SymbolicDim:
            return substituted(x, self.names) if x.scope in self.scopes else x
        if kind is tuple:
            return tuple([self.value(v) for v in x])
        if kind is list:
            return [self.value(v) for v in x]
        if isinstance(x, tuple):  # a named tuple
            return kind(*[self.value(v) for v in x])
        if kind is ClosedJaxpr:
            return ClosedJaxpr(self.program(x.jaxpr), x.consts) if not free(x.jaxpr).isdisjoint(self.new) else x
        if kind is Jaxpr:
            return self.program(x) if not free(x).isdisjoint(self.new) else x
        if kind is ShapedArray:
            return x.update(shape=self.value(x.shape)) if has_counts(x.shape) else x
        return x


# -- values that leave a program -------------------------------------------------------------------


class Closing:
    """The values of a program being traced, as they leave it: without the program's own counts.

    A value whose shape holds such a count leaves as a buffer of the greatest size, beside the
    values of all counts. `open` makes the first of the second, within another program.
    """

    def __init__(self, tracer_of):
        trace: Any = state.stage
        found = _values(trace.eqns)
        self.dims = list(found)
        self.values = [tracer_of(trace, v) for v in found.values()]

    def concerns(self, x) -> bool:
        return any(map(self.is_own, x.aval.shape))

    def is_own(self, d) -> bool:
        """Whether the program decides a size."""
        return type(d) is SymbolicDim and not counts_in(d).isdisjoint(self.dims)

    def close(self, x, is_filled: bool = True):
        """The buffer of a value, which `is_filled` with zeros, or holds anything after the elements."""
        for i, d in enumerate(x.aval.shape):
            if self.is_own(d):
                x = whole(x, i) if is_filled else buffer(x, i)
        return x

    def define(self, values) -> None:
        """Define the counts in the program being traced now."""
        for dim, n in zip(self.dims, values):
            define(n, None, dim)

    def open(self, x, shape):
        for i, d in enumerate(shape):
            if self.is_own(d):
                x = prefix(x, d, i)
        return x


# -- errors ----------------------------------------------------------------------------------------


def tell(error: BaseException) -> None:
    """Say in an error where the sizes in its message were decided."""
    scope = (getattr(state.stage, "captured", None) or {}).get(CountScope)
    message = error.args[0] if error.args and type(error.args[0]) is str else None
    if scope is None or message is None or "decided by values" in message:
        return
    counted = scope.counted
    tell_integer(error, "A size that values decide is known when the program runs")
    if error.args[0] is not message:
        message, names = error.args[0], list(counted)
    else:
        words = set(re.findall(r"[A-Za-z_]\w*", message))
        names = [n for n in counted if n in words]
    if names:
        lines = [f"\n  {scope.told(counted[n].dim)}." for n in names]
        error.args = (message + "".join(lines), *error.args[1:])
