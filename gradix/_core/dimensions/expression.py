"""`SymbolicDim`: a size that is an expression of dimension variables, with integer arithmetic."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._base import source
from gradix._base.errors import InconclusiveDimensionOperation
from gradix._core import seams
from gradix._core.dimensions.bounds import lower, upper
from gradix._core.dimensions.polynomials import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Operation,
    accumulate,
    divided,
    divided_by_number,
    multiplied,
    text,
)

_TYPICAL = 100
_REPEATED = frozenset([list, tuple, str, bytes])  # what Python repeats by a product with an integer


class SymbolicDim:
    """A symbolic size: an integer polynomial of variables and of floordiv, mod, max and min.

    Equal expressions of one scope are one object. A comparison has a result if it is the same for
    all values of the variables that the constraints of the scope allow; else it raises. `==` says
    whether two sizes are known to be equal.

    Raises:
        InconclusiveDimensionOperation: by comparisons, and where an int is needed.

    Example:
        >>> from gradix import export
        >>> a, b = export.symbolic_shape("a, b")
        >>> a * b + 2 * a - 1, (6 * a + 4) % 3, a >= 1
        (a*b + 2*a - 1, 1, True)
    """

    __slots__ = ("terms", "scope", "_text", "__weakref__")
    __array_priority__ = 1000

    terms: tuple
    scope: Any
    _text: str | None

    def __str__(self) -> str:
        if self._text is None:
            self._text = text(self.terms)
        return self._text or ""

    __repr__ = __str__

    # -- arithmetic --------------------------------------------------------------------------------

    def __add__(self, other):
        y = other if type(other) is int else _dimension(other)
        if y is None:
            return self.__jax_array__() + other
        return _combined(self, "+", y, _sum)

    def __sub__(self, other):
        y = other if type(other) is int else _dimension(other)
        if y is None:
            return self.__jax_array__() - other
        return _combined(self, "-", y, _difference)

    def __mul__(self, other):
        y = other if type(other) is int else _dimension(other)
        if y is None:
            return _repeated(self, other) if type(other) in _REPEATED else self.__jax_array__() * other
        return _combined(self, "*", y, _product)

    __radd__ = __add__

    def __rmul__(self, other):
        if type(other) is int or _dimension(other) is not None:
            return self * other
        return _repeated(self, other) if type(other) in _REPEATED else other * self.__jax_array__()

    def __rsub__(self, other):
        return -self + other if _dimension(other) is not None else other - self.__jax_array__()

    def __neg__(self):
        return self * -1

    def __pos__(self):
        return self

    def __pow__(self, power, modulo=None):
        if modulo is not None or type(power) is not int or power < 0:
            return self.__jax_array__() ** power
        out: Any = 1
        for _ in range(power):
            out = self * out
        return out

    def __rpow__(self, base):
        return base ** self.__jax_array__()

    def __floordiv__(self, other):
        y = _dimension(other)
        if y is None:
            return self.__jax_array__() // other
        return _combined(self, "//", y, _quotient)

    def __rfloordiv__(self, other):
        x = _dimension(other)
        return other // self.__jax_array__() if x is None else _quotient(x, self)

    def __mod__(self, other):
        y = _dimension(other)
        if y is None:
            return self.__jax_array__() % other
        return _combined(self, "%", y, _remainder)

    def __rmod__(self, other):
        x = _dimension(other)
        return other % self.__jax_array__() if x is None else _remainder(x, self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __truediv__(self, other):
        return self.__jax_array__() / _operand(other)

    def __rtruediv__(self, other):
        return _operand(other) / self.__jax_array__()

    # -- questions ---------------------------------------------------------------------------------

    def __ge__(self, other) -> bool:
        return _at_least(self, other, 0, ">=")

    def __gt__(self, other) -> bool:
        return _at_least(self, other, 1, ">")

    def __le__(self, other) -> bool:
        return not _at_least(self, other, 1, "<=")

    def __lt__(self, other) -> bool:
        return not _at_least(self, other, 0, "<")

    def __eq__(self, other) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        # A size that is known to be zero is the int 0, which is what this package asks for.
        if may_be_empty(self) and not source.is_inside(sys._getframe(1).f_code.co_filename):
            raise _inconclusive(f"Whether the size '{self}' is other than 0", self)
        return True

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant. It has several values: use it "
            "as a size, in arithmetic, or as an array with jnp.asarray."
        )

    def __jax_array__(self):
        """The dimension as an integer array without axes, whose value is known at run time."""
        if seams.dimension_as_array is None:
            raise TypeError(f"the symbolic dimension {self} cannot become an array here.")
        return seams.dimension_as_array(self)

    def variables(self) -> frozenset:
        """The names of the variables in the expression."""
        return frozenset(_names(self))

    def evaluate(self, values: Any):
        """The expression with values for its variables: integers, or dimensions of another scope.

        Args:
            values: a dict from the names of the variables to integers or dimensions.
        """
        return self.scope.evaluated(self, values)

    def __copy__(self) -> SymbolicDim:
        return self

    def __deepcopy__(self, memo) -> SymbolicDim:
        return self

    def __reduce__(self):
        return _parsed, (str(self), self.scope)


def _parsed(expression: str, scope):
    return scope.parse(expression)


# -- parts -----------------------------------------------------------------------------------------


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is symbolic and not a number.

    Example:
        >>> from gradix import export
        >>> export.is_symbolic_dim(3), export.is_symbolic_dim(*export.symbolic_shape("n"))
        (False, True)
    """
    return type(p) is SymbolicDim


def as_dim(x):
    """A size as an int, or the symbolic dimension that it is.

    Raises:
        TypeError: it is neither.
    """
    return x if type(x) is SymbolicDim else operator.index(x)


def is_undecided_remainder(rest) -> bool:
    """Whether a remainder is neither known to be 0 nor 0 for the example sizes of its scope."""
    return type(rest) is SymbolicDim and not rest.scope.assumed_zero(rest)


def is_known_at_most(d, limit: int) -> bool:
    """Whether a dimension is surely at most a number; for choices between equally correct ways."""
    if type(d) is not SymbolicDim:
        return d <= limit
    return upper(d) <= limit


def typical_size(d) -> int:
    """A number in place of a size, to estimate costs; for choices between equally correct ways."""
    return d if type(d) is not SymbolicDim else max(1, d.evaluate(_Typical(d.scope)))


class _Typical(dict):
    """A size for each variable of a scope, within its bounds."""

    def __init__(self, scope):
        super().__init__()
        self._scope = scope

    def __missing__(self, name: str) -> int:
        low, high = self._scope.variable_range(name)
        value = self[name] = int(max(low, min(high, _TYPICAL)))
        return value


def is_symbolic_shape(shape) -> bool:
    """Whether any dimension of a shape is symbolic."""
    return SymbolicDim in map(type, shape)


def _dimension(x) -> Any:
    """An operand as a dimension; None if it is something else."""
    if type(x) is int or type(x) is SymbolicDim:
        return x
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return operator.index(x)
    if isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype.kind in "iu":
        return int(x)
    return None


def _operand(x):
    return x.__jax_array__() if type(x) is SymbolicDim else x


def _terms(x) -> tuple:
    return x.terms if type(x) is SymbolicDim else (((), x),) if x else ()


_NEUTRAL = {"+": 0, "-": 0, "*": 1, "//": 1}


def _combined(x: SymbolicDim, op: str, y, make: Callable):
    """The result of an operation, remembered by the scope."""
    scope = x.scope
    if type(y) is int and _NEUTRAL.get(op) == y and not scope.rewrites:
        return x
    key = x, op, y
    found = scope.results.get(key)
    if found is None:
        if type(y) is SymbolicDim and y.scope is not scope:
            scope.check_same(y, f"{x} {op} {y}")
        found = scope.results[key] = make(x, y)
    return found


def _made(like: SymbolicDim, poly: dict):
    return like.scope.made(poly)


def _sum(x: SymbolicDim, y, sign: int = 1):
    if type(y) is SymbolicDim or x.scope.rewrites:
        return _made(x, accumulate(dict(x.terms), _terms(y), sign))
    *variable, (last, constant) = x.terms  # the constant term is the last
    if last:
        return x.scope.interned((*x.terms, ((), sign * y)))
    constant += sign * y
    return x.scope.interned((*variable, ((), constant)) if constant else tuple(variable))


def _difference(x: SymbolicDim, y):
    return _sum(x, y, -1)


def _product(x: SymbolicDim, y):
    if type(y) is SymbolicDim or x.scope.rewrites or not y:
        return _made(x, multiplied(x.terms, _terms(y)))
    return x.scope.interned(tuple([(monomial, c * y) for monomial, c in x.terms]))


def _scope(x, y):
    return x.scope if type(x) is SymbolicDim else y.scope


def _quotient(x, y):
    if type(x) is int and x == 0:
        return 0
    if type(y) is int:
        if y == 0:
            raise ZeroDivisionError(f"the symbolic dimension {x} is divided by zero")
        parts = divided_by_number(x.terms, y)
        if parts is not None:
            return _made(x, parts[0])
        if x.scope.knows_multiples:
            quotient, rest = x.scope.parted(x.terms, y)
            if quotient:
                return _made(x, quotient) + _made(x, rest) // y
    elif type(x) is SymbolicDim and (exact := divided(x.terms, y.terms)) is not None:
        return _made(x, exact)
    return _scope(x, y).atom(Operation(FLOORDIV, (x, y)))


def _remainder(x, y):
    if type(x) is int and x == 0:
        return 0
    if type(y) is int:
        if y == 0:
            raise ZeroDivisionError(f"the remainder of the symbolic dimension {x} by zero")
        parts = divided_by_number(x.terms, y)
        if parts is not None:
            return parts[1]
        quotient, rest = x.scope.parted(x.terms, y)
        if quotient:
            return _made(x, rest) % y
    elif type(x) is SymbolicDim and divided(x.terms, y.terms) is not None:
        return 0
    return _scope(x, y).atom(Operation(MOD, (x, y)))


def larger(x, y):
    """The larger of two dimensions; the expression `max(x, y)` if it is not known which."""
    return _extremum(x, y, MAX)


def smaller(x, y):
    """The smaller of two dimensions; the expression `min(x, y)` if it is not known which."""
    return _extremum(x, y, MIN)


def is_count(d) -> bool:
    """Whether a size is symbolic, in a scope where values decide some sizes."""
    return type(d) is SymbolicDim and bool(d.scope.counted)


def check_not_one(name: str, shape) -> None:
    """Raise if values decide whether a size is 1, where an operation treats such axes apart."""
    for d in shape:
        if is_count(d) and lower(d) <= 1 <= upper(d):
            raise InconclusiveDimensionOperation(
                f"{name} drops the axes of size 1 of an array of shape {shape}, and {d} may be 1: "
                f"{d.scope.told(d)}.\n  instead: name the axes to drop, as in jnp.squeeze(x, axis=1)."
            )


def check_some(name: str, shape, what: str = "shape") -> None:
    """Raise if values decide whether an array has elements, where the result of none is of another type."""
    for d in shape:
        if may_be_empty(d):
            raise InconclusiveDimensionOperation(
                f"{name} of an array of shape {shape} without elements has another {what}: "
                f"{d.scope.told(d)}.\n  instead: fix the size, as in x[jnp.nonzero(mask, size=n)]."
            )


def has_counts(shape) -> bool:
    """Whether a shape has a size from a scope in which values decide sizes."""
    return SymbolicDim in map(type, shape) and any(map(is_count, shape))


def within_size(i, n):
    """A place along an axis of `n` elements, cut to between 0 and `n` where values decide `n`."""
    if not is_count(n) or i is n:
        return i
    return i if type(i) is int and i <= lower(n) else larger(smaller(i, n), 0)


def may_be_empty(d) -> bool:
    """Whether a size is decided by values, and may be 0."""
    return is_count(d) and lower(d) <= 0


def may_have(n, k: int) -> bool:
    """Whether `n` elements are at least `k`, or may be where values decide `n`."""
    return upper(n) >= k if is_count(n) else not k > n


def _extremum(x, y, name: str):
    x, y = (operator.index(d) if type(d) is not SymbolicDim else d for d in (x, y))
    if type(x) is type(y) is int:
        return max(x, y) if name == MAX else min(x, y)
    one, other = (x, y) if type(x) is SymbolicDim else (y, x)
    gap = one - other
    if lower(gap) >= 0:
        return one if name == MAX else other
    if upper(gap) <= 0:
        return other if name == MAX else one
    if type(one) is SymbolicDim and one.scope.counted:
        return _normal_extremum(one, other, name)
    scope = _scope(x, y)
    op = Operation(name, (x, y))  # one for both orders of the operands
    return scope.atom(scope.extrema.setdefault((name, frozenset((x, y))), op))


def _normal_extremum(x: SymbolicDim, y, name: str):
    """The larger or smaller size so that equal expressions of counts are one object.

    min(x, y) is x + y - max(x, y), and max(x + c, y + c) is max(x, y) + c.
    """
    if name == MIN:
        return x + y - _extremum(x, y, MAX)
    if type(y) is SymbolicDim and str(y) < str(x):
        x, y = y, x
    c = dict(x.terms).get((), 0)
    found = x.scope.atom(Operation(MAX, (x - c, y - c)))
    return found + c if c else found


def _at_least(x: SymbolicDim, other, margin: int, asked: str) -> bool:
    """Whether x - other >= margin; `asked` is the operator that errors show."""
    y = _dimension(other)
    if y is None:
        raise TypeError(
            f"a symbolic dimension can be compared with integers and dimensions only, got {x} {asked} "
            f"{other!r}. Compare jnp.asarray(dimension) for a traced answer."
        )
    if type(y) is SymbolicDim and y.scope is not x.scope:
        x.scope.check_same(y, f"{x} {asked} {y}")
    gap = x - y
    if type(gap) is int:
        return gap >= margin
    if lower(gap) >= margin:
        return True
    if upper(gap) < margin:
        return False
    if (answer := gap.scope.assumed(gap, margin)) is not None:
        return answer
    raise _inconclusive(f"Symbolic dimension comparison '{x}' {asked} '{y}'", x)


def _repeated(x: SymbolicDim, sequence):
    """The product of a size and a sequence of Python: an error, as for any use of the size as an integer."""
    if not is_count(x):
        kind = type(sequence).__name__
        raise TypeError(
            f"The symbolic size '{x}' has several values, so Python cannot repeat a {kind} by it.\n"
            "  instead: jnp.full(n, value) or jnp.tile(values, n) makes an array of a symbolic size n."
        )
    return sequence * operator.index(x)  # type: ignore[arg-type]  # it raises, and `tell` adds where


def _inconclusive(question: str, x: SymbolicDim) -> InconclusiveDimensionOperation:
    if told := x.scope.told(x):
        return InconclusiveDimensionOperation(
            f"{question} is known only when the program runs: {told}.\n  instead: compute the answer in the program, "
            "as in jnp.where(x.shape[0] > jnp.asarray(2), a, b) or lax.cond; gradix.core.max_dim(m, n) and min_dim, "
            "in place of max and min, are sizes."
        )
    return InconclusiveDimensionOperation(
        f"{question} is inconclusive: the answer is not the same for all values of {', '.join(sorted(_names(x)))}"
        f"{x.scope.with_constraints()}.\nState what holds when you make the dimensions, as in "
        'gradix.export.symbolic_shape(..., constraints=["a >= 2"]); or pass assume={"a": 8} to get the answer for '
        "these sizes, which every call then checks; or compute the answer in the program, from jnp.asarray of the "
        "dimension."
    )


def _names(x) -> set:
    if type(x) is int:
        return set()
    found: set = set()
    for monomial, _ in x.terms:
        for atom, _ in monomial:
            if type(atom) is str:
                found.add(atom)
            else:
                for operand in atom.operands:
                    found |= _names(operand)
    return found
