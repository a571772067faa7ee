"""Finds the values of dimension variables from a call's arguments, and checks the constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradix._core.dimensions.bounds import bounds
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.polynomials import Operation, multiplied

_HELP = (
    "Pass arrays whose sizes fit the symbolic shapes the program was traced with, or trace it with shapes that "
    "allow these sizes."
)


class Size(NamedTuple):
    """One dimension of an argument: its name, such as `args[0].shape[1]`, and its symbolic size."""

    name: str
    dim: SymbolicDim


def sizes_of(avals: Iterable, names: Iterable[str]) -> list[Size]:
    """The symbolic dimensions of arguments."""
    return [
        Size(f"{name}.shape[{i}]", d)
        for a, name in zip(avals, names)
        for i, d in enumerate(a.shape)
        if type(d) is SymbolicDim
    ]


class Solver:
    """Finds the variables of symbolic shapes, one equation `dimension = size` after the other.

    An equation gives the value of a variable if it is the last unknown one of a polynomial that
    grows, or falls, with it. The other equations, and the constraints of the scope, are checked.

    Args:
        avals: the types of the arguments.
        names: the names of the arguments, for messages.
        known: variables whose values are given with the call.
    """

    def __init__(self, avals, names, known: Iterable[str] = ()):
        self.avals, self.names = list(avals), list(names)
        self.sizes = sizes_of(self.avals, self.names)
        # the name of each variable, and the number of the size that gives its value
        self.steps: list[tuple[str, int]] = []
        found = set(known)
        self.unsolved = self._plan(found)
        self.scope = self.sizes[0].dim.scope if self.sizes else None

    def _plan(self, found: set) -> frozenset:
        everything = set().union(*[s.dim.variables() for s in self.sizes]) if self.sizes else set()
        progress = True
        while progress:
            progress = False
            for i, size in enumerate(self.sizes):
                left = size.dim.variables() - found
                if len(left) == 1 and _is_monotonic(size.dim, name := next(iter(left))):
                    self.steps.append((name, i))
                    found.add(name)
                    progress = True
        return frozenset(everything - found)

    def require_solvable(self) -> None:
        """Check that the sizes of the arguments determine all variables in them.

        Raises:
            ValueError: they do not; the message names the variables, and the dimensions not used.
        """
        if not self.unsolved:
            return
        names = "{" + ", ".join([repr(n) for n in sorted(self.unsolved)]) + "}"
        left = ", ".join(
            [f"'{s.dim}' for dimension size {s.name}" for s in self.sizes if s.dim.variables() & self.unsolved]
        )
        raise ValueError(
            f"Cannot solve for values of dimension variables {names}: the sizes of the arguments "
            "determine a variable only if it is the last unknown one of a polynomial that grows with "
            f"it. {self.specifications()} Unprocessed "
            f"specifications: {left}. Add an argument with that dimension, for example an empty array of "
            "shape (0, n), or leave the variable out of the arguments and give its value with bind_dims."
        )

    def solve(self, shapes, given: dict[str, int] | None = None) -> dict[str, int]:
        """The value of each variable, for the shapes of the arguments of a call.

        Raises:
            ValueError: the sizes contradict each other or a constraint.
        """
        values = dict(given or {})
        explanations: list[str] = []
        actual = [n for a, shape in zip(self.avals, shapes) for d, n in zip(a.shape, shape) if type(d) is SymbolicDim]
        for name, i in self.steps:
            dim, n = self.sizes[i].dim, actual[i]
            values[name] = self._find(name, dim, n, values, explanations)
            explanations.append(
                f"'{name}' = {values[name]} from specification '{dim}' for dimension {self.sizes[i].name} (= {n})"
            )
            if bounds(values[name])[0] < 1:
                raise self._error(f"Expected value >= 1 for dimension variable '{name}'.", explanations)
        for size, n in zip(self.sizes, actual):
            if _differs(expected := size.dim.evaluate(values), n):
                raise self._error(
                    f"Found inconsistency between dimension size {size.name} (= {n}) and the "
                    f"specification '{size.dim}' (= {expected}).",
                    explanations,
                )
        self._check_fixed(shapes, explanations)
        if self.scope is not None:
            check_constraints(self.scope, values, lambda why: self._error(why, explanations))
        return values

    def _check_fixed(self, shapes, explanations) -> None:
        for a, shape, name in zip(self.avals, shapes, self.names):
            for i, (d, n) in enumerate(zip(a.shape, shape)):
                if type(d) is int and _differs(d, n):
                    raise self._error(
                        f"Found inconsistency between dimension size {name}.shape[{i}] (= {n}) and the "
                        f"specification '{d}'.",
                        explanations,
                    )

    def _find(self, name: str, dim: SymbolicDim, n: int, values: dict, explanations) -> int:
        """The value of a variable for which a dimension is `n`."""
        coefficients = _in_one_variable(dim, name, values)
        if len(coefficients) == 2:
            constant, c = coefficients
            value, rest = divmod(n - constant, c)
            if type(rest) is int and rest:
                raise self._error(f"Division had remainder {rest} when computing the value of '{name}'.", explanations)
            return value
        if type(n) is SymbolicDim or SymbolicDim in map(type, coefficients):
            raise NotImplementedError(
                f"the value of '{name}' is a root of '{dim}' = {n}, which has symbolic coefficients. "
                "Call the function with fixed sizes, or export the whole program from its source."
            )
        value = _root(coefficients, n)
        if value is None:
            raise self._error(f"No value of '{name}' makes '{dim}' equal to {n}.", explanations)
        return value

    def specifications(self) -> str:
        """The symbolic shapes as a sentence."""
        shown = ", ".join(
            [
                f"{name}.shape = {_shape_text(a.shape)}"
                for a, name in zip(self.avals, self.names)
                if SymbolicDim in map(type, a.shape)
            ]
        )
        return f"Using the following polymorphic shapes specifications: {shown}."

    def _error(self, why: str, explanations: list[str]) -> ValueError:
        obtained = f" Obtained dimension variables: {', '.join(explanations)}." if explanations else ""
        return ValueError(
            f"Input shapes do not match the polymorphic shapes specification. {why} "
            f"{self.specifications()}{obtained} {_HELP}"
        )


def check_constraints(
    scope, values: dict[str, int], error: Callable[[str], ValueError], count: int | None = None
) -> None:
    """Raise `error(why)` if values of variables violate one of the first `count` constraints.

    Constraints that symbolic values leave undecided are left to the program, which checks them,
    too.
    """
    assumed = dict(scope.assumptions)
    for text, (left, relation, right) in scope.constraints[:count]:
        names = {n for side in (left, right) if type(side) is SymbolicDim for n in side.variables()}
        if not names <= values.keys():
            continue
        x, y = (scope.evaluated(side, values) for side in (left, right))
        if not _may_hold(x, relation, y):
            asked = f", which was assumed when it was traced, at {assumed[text]}" if text in assumed else ""
            raise error(
                f"The values {', '.join([f'{n} = {values[n]}' for n in sorted(names)])} do not satisfy the "
                f"constraint {text}{asked}."
            )


def _differs(x, y) -> bool:
    """Whether sizes differ, or differ for some values of the variables in them."""
    return x != y if type(x) is int and type(y) is int else bounds(x - y) != (0, 0)


def _may_hold(x, relation: str, y) -> bool:
    if type(x) is int and type(y) is int:
        return {">=": x >= y, "<=": x <= y, "==": x == y}[relation]
    low, high = bounds(x - y)
    return {">=": high >= 0, "<=": low <= 0, "==": low <= 0 <= high}[relation]


def _shape_text(shape) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _is_monotonic(dim: SymbolicDim, name: str) -> bool:
    """Whether a polynomial surely grows, or falls, with a variable: its terms have one sign."""
    signs = set()
    for monomial, c in dim.terms:
        for atom, _ in monomial:
            if type(atom) is Operation:
                if name in _names_of(atom):
                    return False
            elif atom == name:
                signs.add(c > 0)
        if any(type(atom) is Operation for atom, _ in monomial) and any(atom == name for atom, _ in monomial):
            return False
    return len(signs) == 1


def _names_of(op: Operation) -> set:
    return set().union(*[x.variables() for x in op.operands if type(x) is SymbolicDim])


def _in_one_variable(dim: SymbolicDim, name: str, values: dict) -> list[int]:
    """The coefficients of a polynomial in its last unknown variable, by degree."""
    out: dict[int, int] = {}
    for monomial, c in dim.terms:
        degree = dict(monomial).get(name, 0)
        rest = dim.scope.made(multiplied([((), c)], [(tuple([(a, n) for a, n in monomial if a != name]), 1)]))
        out[degree] = out.get(degree, 0) + dim.scope.evaluated(rest, values)
    return [out.get(i, 0) for i in range(max(out) + 1)]


def _root(coefficients: list[int], n: int) -> int | None:
    """The positive integer at which a monotonic polynomial is `n`, by bisection."""

    def at(x: int) -> int:
        total = 0
        for c in reversed(coefficients):
            total = total * x + c
        return total

    sign = 1 if at(2) > at(1) else -1
    low, high = 0, 1
    while sign * at(high) < sign * n and high < 1 << 63:
        high *= 2
    while low < high:
        middle = (low + high) // 2
        if sign * at(middle) < sign * n:
            low = middle + 1
        else:
            high = middle
    return low if at(low) == n else None
