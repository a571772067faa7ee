"""How a module with symbolic shapes computes and checks its dimension variables."""

from __future__ import annotations

from typing import NamedTuple

from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.solving import Solver
from gradix._stablehlo.attributes import string
from gradix._stablehlo.dimensions import SIZE

_DIRECTION = {">=": "GE", "<=": "LE", "==": "EQ"}


class Place(NamedTuple):
    """An axis of an argument."""

    argument: int
    axis: int


class OpenDimensions:
    """The dimension variables of a module.

    A variable is computed from an axis whose size is linear in it, c·v + k. All others are in
    `given` and become arguments of the module: roots of polynomials, and variables of no axis.

    Args:
        avals: the types of all arguments.
        solver: solves the sizes of the arguments for the variables.
        variables: all variables of the program.
    """

    def __init__(self, avals, solver: Solver, variables):
        places = [Place(i, d) for i, a in enumerate(avals) for d, n in enumerate(a.shape) if type(n) is SymbolicDim]
        self.solver = solver
        # variable, axis, its dimension, coefficient
        self.steps: list[tuple[str, Place, SymbolicDim, int]] = []
        for name, i in solver.steps:
            dim = solver.sizes[i].dim
            if dim.variables() == {name} and (c := _slope(dim, name)) is not None:
                self.steps.append((name, places[i], dim, c))
        found = {name for name, *_ in self.steps}
        self.given = tuple(sorted(set(variables) - found))
        self.places = [place for _, place, *_ in self.steps]

    def define(self, em, given, args: dict) -> None:
        """Compute the variables from the module's arguments, and assert what their shapes promise.

        Args:
            given: the values of the variables in `self.given`.
            args: the module's arguments by number.
        """
        values = dict(zip(self.given, given))
        sizes = {}
        for name, place, dim, c in self.steps:
            size = em.op("get_dimension_size", SIZE, args[place.argument], attrs=f"dimension = {place.axis} : i64")
            sizes[place] = size
            rest = size
            if constant := dict(dim.terms).get((), 0):
                rest = em.op("subtract", SIZE, size, em.constant(constant, SIZE))
            if c != 1:
                left = em.op("remainder", SIZE, rest, em.constant(c, SIZE))
                _assert(
                    em,
                    em.compare(left, em.constant(0, SIZE), "EQ"),
                    self._message(f"Division had remainder {{0}} when computing the value of '{name}'."),
                    left,
                )
                rest = em.op("divide", SIZE, rest, em.constant(c, SIZE))
            values[name] = rest
            _assert(
                em,
                em.compare(rest, em.constant(1, SIZE), "GE"),
                self._message(f"Expected value >= 1 for dimension variable '{name}', got {{0}}."),
                rest,
            )
        em.variables = dict(sorted(values.items()))
        self._check_others(em, args, sizes)
        for text, (left, relation, right) in self.solver.scope.constraints if self.solver.scope is not None else ():
            if {n for side in (left, right) if type(side) is SymbolicDim for n in side.variables()} <= values.keys():
                x, y = em.dimension(left), em.dimension(right)
                _assert(
                    em,
                    em.compare(x, y, _DIRECTION[relation]),
                    self._message(f"The sizes do not satisfy the constraint {text}: its sides are {{0}} and {{1}}."),
                    x,
                    y,
                )

    def _check_others(self, em, args: dict, sizes: dict) -> None:
        """Assert the sizes of those axes from which no variable was computed."""
        places = [
            (i, d) for i, a in enumerate(self.solver.avals) for d, n in enumerate(a.shape) if type(n) is SymbolicDim
        ]
        for (argument, axis), size in zip(places, self.solver.sizes):
            if Place(argument, axis) in sizes or argument not in args:
                continue
            actual = em.op("get_dimension_size", SIZE, args[argument], attrs=f"dimension = {axis} : i64")
            expected = em.dimension(size.dim)
            _assert(
                em,
                em.compare(actual, expected, "EQ"),
                self._message(
                    f"Found inconsistency between dimension size {size.name} (= {{0}}) and the "
                    f"specification '{size.dim}' (= {{1}})."
                ),
                actual,
                expected,
            )

    def _message(self, why: str) -> str:
        return f"Input shapes do not match the polymorphic shapes specification. {why} {self.solver.specifications()}"


def _slope(dim: SymbolicDim, name: str) -> int | None:
    """The coefficient of a variable in a dimension that is linear in it."""
    terms = dict(dim.terms)
    terms.pop((), None)
    return terms.get(((name, 1),)) if len(terms) == 1 else None


def _assert(em, holds, message: str, *values) -> None:
    """Refuse to compile for shapes where `holds` is false.

    In `message`, `{0}`, `{1}`, ... stand for the values.
    """
    em.ops(
        "custom_call",
        [],
        holds,
        *values,
        attrs=f'call_target_name = "shape_assertion", api_version = 2 : i32, '
        f"error_message = {string(message)}, has_side_effect = true",
    )
