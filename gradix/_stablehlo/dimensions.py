"""Values of symbolic dimensions, which a program computes from the shapes of its arguments."""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.polynomials import FLOORDIV, MAX, MOD, Operation

SIZE = make_aval((), np.dtype("int32"), False)


# On `sdy.manual_computation`: the dimensions whose values are its first operands, and the shapes of its
# region's other arguments, of the region's results, and of its own results.
SIZES = "gradix.sizes"


def sizes_attribute(dims, *lists) -> str:
    """The attribute `SIZES` for these dimensions and lists of types, as readers of a module need it."""
    texts = ["|".join(map(str, dims)), *[";".join(["|".join(map(str, a.shape)) for a in avals]) for avals in lists]]
    quoted = ", ".join([f'"{t}"' for t in texts])
    return f"{SIZES} = [{quoted}]"


def is_open(aval) -> bool:
    """Whether a type has a symbolic dimension."""
    return SymbolicDim in map(type, aval.shape)


def dimension_value(em, dim: SymbolicDim):
    """The value of a symbolic dimension, an int32 scalar; see `Writer.dimension`."""
    total = None
    for monomial, c in dim.terms:
        product = None if c == 1 and monomial else em.constant(c, SIZE)
        for atom, n in monomial:
            factor = _operation(em, atom) if type(atom) is Operation else _variable(em, atom, dim)
            for _ in range(n):
                product = factor if product is None else em.op("multiply", SIZE, product, factor)
        assert product is not None
        total = product if total is None else em.op("add", SIZE, total, product)
    assert total is not None
    return total


def _variable(em, name: str, dim):
    found = em.variables.get(name)
    if found is None:
        known = ", ".join(em.variables) or "none"
        raise KeyError(
            f"Encountered dimension variable '{name}', in '{dim}', that is not appearing in the shapes "
            f"of the function arguments; those in them: {known}. Give the variable's value with "
            "bind_dims, or pass an array with that dimension."
        )
    return found


def _operation(em, op: Operation):
    x, y = [em.dimension(d) for d in op.operands]
    if op.name not in (FLOORDIV, MOD):
        return em.op("maximum" if op.name == MAX else "minimum", SIZE, x, y)
    zero, one = em.constant(0, SIZE), em.constant(1, SIZE)
    rest = em.op("remainder", SIZE, x, y)
    # XLA rounds toward zero. If remainder and divisor differ in sign, the quotient is too large by
    # one, and the divisor is missing in the remainder.
    flag = make_aval((), np.dtype(bool), False)
    other = em.op(
        "and", flag, em.compare(rest, zero, "NE"), em.compare(em.op("sign", SIZE, rest), em.op("sign", SIZE, y), "NE")
    )
    if op.name == MOD:
        return em.select(other, em.op("add", SIZE, rest, y), rest)
    quotient = em.op("divide", SIZE, x, y)
    return em.select(other, em.op("subtract", SIZE, quotient, one), quotient)
