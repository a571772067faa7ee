"""Counts: dimension variables from 0 to a bound, whose values a program computes as it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradix._base.source import current
from gradix._core.dimensions.bounds import upper
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.scope import SymbolicScope
from gradix._core.trace import state


class Count(NamedTuple):
    """What is known of a count: its variable, the greatest size it has, and where it was made."""

    dim: SymbolicDim
    bound: Any
    place: str


def fresh_count(bound, place: str | None = None, scope=None) -> SymbolicDim:
    """A new dimension variable for a size from 0 to `bound`.

    It belongs to the scope of its bound, if this is symbolic, else to `scope`, by default that of
    all counts of the outermost program that is being traced.
    """
    scope = bound.scope if type(bound) is SymbolicDim else scope or _scope()
    name, i = _name(scope, 0), 0
    while name in scope.counted:
        i += 1
        name = _name(scope, len(scope.counted) + i - 1)
    return named_count(name, bound, scope, place or _place())


def named_count(name: str, bound, scope, place: str = "") -> SymbolicDim:
    """As `fresh_count`, with a name that the scope does not have."""
    if not scope.counted:
        scope.counted = {}
    dim = scope.variable(name)
    scope.counted[name] = Count(dim, bound, place)
    # The bounds of expressions look at the ranges of variables where there is a fact.
    scope._add_fact(bound - dim if type(bound) is SymbolicDim else dim)
    return dim


def _name(scope, i: int) -> str:
    name = "k" if type(scope) is CountScope else "_k"
    return f"{name}{i}" if i else name


def _place() -> str:
    place = current()
    return f"{place.file}:{place.line}"


class CountScope(SymbolicScope):
    """The scope of the counts of one program."""


def _scope() -> SymbolicScope:
    """The scope for the outermost program being traced, which all programs inside of it share."""
    shared = getattr(state.stage, "captured", None)
    if shared is None:
        return CountScope()
    found = shared.get(CountScope)
    if found is None:
        found = shared[CountScope] = CountScope()
    return found


def counts_in(d) -> frozenset:
    """The variables in a size that are counts."""
    if type(d) is not SymbolicDim or not d.scope.counted:
        return _NONE
    found = d.scope.counts_of.get(d)
    if found is None:
        counted = d.scope.counted
        found = frozenset([counted[n].dim for n in d.variables() if n in counted])
        d.scope.counts_of[d] = found
    return found


_NONE: frozenset = frozenset()


def bound_of(d):
    """The greatest size that a dimension can have: a number, or an expression without counts."""
    if type(d) is not SymbolicDim:
        return d
    most = upper(d)
    if most != float("inf"):
        return int(most)
    counted = d.scope.counted
    names = [n for n in d.variables() if n in counted]
    return d.evaluate(_Bounds(d.scope, {n: bound_of(counted[n].bound) for n in names}))


class _Bounds(dict):
    """Sizes for the variables of a scope; a variable without one stands for itself."""

    def __init__(self, scope, sizes):
        super().__init__(sizes)
        self._scope = scope

    def __missing__(self, name: str):
        return self._scope.variable(name)


def substituted(d: SymbolicDim, values: dict):
    """A size with other sizes in place of some of its variables, by their names."""
    return d.evaluate(_Bounds(d.scope, values))
