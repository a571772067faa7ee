"""Values of symbolic dimensions, which a program computes from the shapes of its arguments."""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.polynomials import FLOORDIV, MAX, MOD, Operation
from gradix._stablehlo.structured import Structured
from gradix._stablehlo.writer import Value

SIZE = make_aval((), np.dtype("int32"), False)


class Dimensions(Structured):
    """Adds the values of dimensions to the writer.

    `variables` are the values of the dimension variables in the function being written. Every
    private function of a program with variables takes them as its first arguments, so that XLA can
    replace them by numbers there too.
    """

    def __init__(self, platform: str = "cpu"):
        super().__init__(platform)
        self.variables: dict[str, Value] = {}

    def dimension(self, dim) -> Value:
        """The value of a dimension, an int32 scalar.

        Raises:
            KeyError: the dimension has a variable that the program does not define.
        """
        if type(dim) is not SymbolicDim:
            return self.constant(int(dim), SIZE)
        total = None
        for monomial, c in dim.terms:
            product = None if c == 1 and monomial else self.constant(c, SIZE)
            for atom, n in monomial:
                factor = (
                    self._operation(atom) if type(atom) is Operation else self._variable(atom, dim)
                )
                for _ in range(n):
                    product = (
                        factor if product is None else self.op("multiply", SIZE, product, factor)
                    )
            assert product is not None
            total = product if total is None else self.op("add", SIZE, total, product)
        assert total is not None
        return total

    def number(self, n, dtype) -> Value:
        """An integer, or the value of a dimension, as a scalar of a dtype."""
        if type(n) is not SymbolicDim:
            return self.constant(n, make_aval((), dtype, False))
        return self.convert(self.dimension(n), dtype)

    def _variable(self, name: str, dim) -> Value:
        found = self.variables.get(name)
        if found is None:
            known = ", ".join(self.variables) or "none"
            raise KeyError(
                f"Encountered dimension variable '{name}', in '{dim}', that is not appearing in the shapes "
                f"of the function arguments; those in them: {known}. Give the variable's value with "
                "bind_dims, or pass an array with that dimension."
            )
        return found

    def _operation(self, op: Operation) -> Value:
        x, y = [self.dimension(d) for d in op.operands]
        if op.name not in (FLOORDIV, MOD):
            return self.op("maximum" if op.name == MAX else "minimum", SIZE, x, y)
        zero, one = self.constant(0, SIZE), self.constant(1, SIZE)
        rest = self.op("remainder", SIZE, x, y)
        # XLA rounds toward zero. If remainder and divisor differ in sign, the quotient is too large
        # by one, and the divisor is missing in the remainder.
        flag = make_aval((), np.dtype(bool), False)
        other = self.op(
            "and",
            flag,
            self.compare(rest, zero, "NE"),
            self.compare(self.op("sign", SIZE, rest), self.op("sign", SIZE, y), "NE"),
        )
        if op.name == MOD:
            return self.select(other, self.op("add", SIZE, rest, y), rest)
        quotient = self.op("divide", SIZE, x, y)
        return self.select(other, self.op("subtract", SIZE, quotient, one), quotient)

    def sizes(self, dims) -> Value:
        """A shape, or another list of dimensions, as an int32 vector."""
        if SymbolicDim not in map(type, dims):
            return self.constant(
                np.array(dims, np.int32), make_aval((len(dims),), SIZE.dtype, False)
            )
        one = make_aval((1,), SIZE.dtype, False)
        parts = [self.op("reshape", one, self.dimension(d)) for d in dims]
        if len(parts) == 1:
            return parts[0]
        return self.op(
            "concatenate",
            make_aval((len(parts),), SIZE.dtype, False),
            *parts,
            attrs="dimension = 0 : i64",
        )

    def shape_operands(self, outs) -> list[Value]:
        """The shapes of results that are symbolic, as operands of a custom call."""
        return [self.sizes(a.shape) for a in outs]

    def convert(self, x: Value, dtype) -> Value:
        raise NotImplementedError


def is_open(aval) -> bool:
    """Whether a type has a symbolic dimension."""
    return SymbolicDim in map(type, aval.shape)
