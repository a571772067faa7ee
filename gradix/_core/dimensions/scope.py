"""`SymbolicScope`: holds dimension variables, their constraints, and what follows from them."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from math import inf
from typing import Any

from gradix._base.source import current, is_inside, located
from gradix._core.dimensions import parsing
from gradix._core.dimensions.bounds import upper
from gradix._core.dimensions.contradictions import Contradiction, check_gap, check_remainders
from gradix._core.dimensions.expression import SymbolicDim, larger, smaller
from gradix._core.dimensions.polynomials import (
    FLOORDIV,
    MAX,
    MOD,
    Operation,
    Polynomial,
    accumulate,
    multiplied,
    ordered,
    over,
    reduced,
)

_REPLACEMENTS = 64  # the most replacements by equality constraints in one expression
_LARGE = 1 << 12  # the example size of a variable for which none is given
_CHECKED = 64  # this many constraints are checked for contradictions with those before
_ROUNDS = 3  # how often intervals are narrowed by constraints on several variables


class SymbolicScope:
    """The scope of dimension variables: equal names in it are one variable, with its constraints.

    Dimensions of two scopes cannot be mixed.

    Args:
        constraints_str: relations such as ``"a >= 4"``, ``"a <= b"``, ``"mod(b, 2) == 0"``. The
            left side of an equality must be one variable, operation, or product of such and a number,
            as in ``"4*b*floordiv(c, d) == e"``; the right side replaces it in expressions.
        assume: example sizes, by the name of the variable. Comparisons that the constraints leave
            undecided then have the result for these sizes. The results become constraints, which
            `assumptions` lists and every call checks. Variables that are left out count as large.
            Without it, such comparisons raise.

    Raises:
        ValueError: a constraint is malformed, constraints contradict each other by intervals or
            remainders, or the sizes in `assume` do not satisfy one.

    Example:
        >>> from gradix import export
        >>> scope = export.SymbolicScope(["a >= 4"])
        >>> a, = export.symbolic_shape("a", scope=scope)
        >>> a >= 3
        True
    """

    # the variables whose values a program computes, by name; an instance makes its own
    counted: dict = {}

    def __init__(self, constraints_str=(), *, assume: Mapping[str, int] | None = None):
        if isinstance(constraints_str, str):
            raise ValueError(
                f"constraints must be a sequence of strings, got the string {constraints_str!r}. Write "
                f"[{constraints_str!r}]."
            )
        self.place = current()
        self._intervals: dict | None = None  # the name of a variable -> its interval
        self.results: dict = {}
        self.bounds: dict = {}
        self.lowers: dict = {}
        self.ranges: dict = {}
        self.facts: dict = {}
        self.counts_of: dict = {}
        self.extrema: dict = {}  # max or min, and the two operands -> the operation
        self.constraint_facts: list[SymbolicDim] = []
        # the text of each constraint, with (left side, relation, right side)
        self.constraints: list[tuple[str, Any]] = []
        self._rules: dict = {}  # monomial -> a number, and the terms that replace that multiple of it
        # a quotient by a number that leaves no remainder -> the number, and the dividend
        self._exact: dict = {}
        self.rewrites = False  # whether constraints replace parts of expressions
        self._known: dict = {}
        for i, text in enumerate(constraints_str):
            try:
                self._constrain(text, i < _CHECKED)
            except Contradiction:
                raise ValueError(_contradiction(text, list(constraints_str)[:i])) from None
        self.examples = None if assume is None else _Examples(self, assume)
        # the text of each assumption, and the place in the user's program that needed it
        self.assumptions: list[tuple[str, str]] = []

    # -- making ------------------------------------------------------------------------------------

    def made(self, poly: Polynomial):
        """The dimension of a polynomial; an int if it is constant."""
        if self.rewrites:
            self._replace(poly)
            self._multiply_out(poly)
        if not poly:
            return 0
        if len(poly) == 1 and () in poly:
            return poly[()]
        return self.interned(ordered(poly))

    def interned(self, terms: tuple) -> SymbolicDim:
        """The dimension of ordered terms, not constant, to which no equality applies."""
        found = self._known.get(terms)
        if found is None:
            found = object.__new__(SymbolicDim)
            found.terms, found.scope, found._text = terms, self, None
            self._known[terms] = found
        return found

    def _replace(self, poly: Polynomial) -> None:
        """Apply the equality constraints, in place, to a polynomial."""
        for _ in range(_REPLACEMENTS):
            for monomial in poly:
                c = poly[monomial]
                found = next(
                    (
                        multiplied([(rest, c // k)], new)
                        for old, (k, new) in self._rules.items()
                        if c % k == 0 and (rest := over(monomial, old)) is not None
                    ),
                    None,
                )
                if found is not None:
                    del poly[monomial]
                    accumulate(poly, found.items())
                    break
            else:
                return

    def _multiply_out(self, poly: Polynomial) -> None:
        """Replace, in place, c·floordiv(x, c) by x if it is known that c divides x."""
        for monomial, k in list(poly.items()):
            for quotient, (c, x) in self._exact.items():
                rest = over(monomial, ((quotient, 1),)) if k % c == 0 else None
                if rest is not None:
                    del poly[monomial]
                    accumulate(poly, multiplied([(rest, k // c)], x).items())
                    break

    @property
    def knows_multiples(self) -> bool:
        """Whether a constraint says that a number divides an expression."""
        return bool(self._exact)

    def is_exact(self, op: Operation) -> bool:
        """Whether a constraint says that the divisor of a `floordiv` divides its dividend."""
        return op in self._exact

    def parted(self, terms, y: int) -> tuple[Polynomial, Polynomial]:
        """Polynomials q and r with `terms = y·q + r`; y is not known to divide any term of r."""
        quotient, rest = reduced(terms, y)
        for monomial in list(rest):
            for op, (c, x) in self._exact.items():
                single = x[0][0] if len(x) == 1 and x[0][1] == 1 else None
                left = over(monomial, single) if single else None
                if left is not None and rest[monomial] * c % y == 0:
                    part = multiplied([(left, rest.pop(monomial) * c // y)], [(((op, 1),), 1)])
                    accumulate(quotient, part.items())
                    break
        return quotient, rest

    def variable(self, name: str):
        """The variable of that name."""
        return self.made({((name, 1),): 1})

    def atom(self, op: Operation):
        """The dimension that is one operation."""
        return self.made({((op, 1),): 1})

    def parse(self, expression: str):
        """The dimension written as a text."""
        return parsing.dimension(expression, self)

    # -- constraints -------------------------------------------------------------------------------

    def _constrain(self, text: str, checked: bool = False) -> None:
        left, relation, right = parsing.constraint(text, self)
        gap = left - right
        facts = [gap, -gap] if relation == "==" else [gap if relation == ">=" else -gap]
        for fact in facts:
            if checked or type(fact) is int:
                check_gap(fact, text)
        if relation == "==" and (type(gap) is not int or gap):
            self._equate(left, right, text)
        for fact in facts:
            self._add_fact(fact)
        self.constraints.append((text, (left, relation, right)))
        if checked:
            check_remainders(self.constraints, text)

    def _equate(self, left, right, text: str) -> None:
        terms = left.terms if type(left) is SymbolicDim else ()
        if len(terms) != 1:
            raise ValueError(
                f"Constraint {text!r}: the left side of == must be one variable, operation, or product of such and a "
                f"number, got {left}. Move the other terms to the right side."
            )
        self.rewrites = True
        monomial, k = terms[0]
        self._rules[monomial] = abs(k), _terms(right if k > 0 else -right)
        atom = monomial[0][0]
        if right == 0 and type(right) is int and type(atom) is Operation and atom.name == MOD and len(monomial) == 1:
            x, y = atom.operands
            self._divide(x, y)
            if type(y) is int:  # what a number divides, its opposite does
                self._rules[((Operation(MOD, (x, -y)), 1),)] = 1, ()
                self._divide(x, -y)
        self._forget()

    def _divide(self, x, y) -> None:
        """Replace y·floordiv(x, y) by x from now on."""
        quotient = Operation(FLOORDIV, (x, y))
        if type(y) is int:
            self._exact[quotient] = y, x.terms
        elif len(y.terms) == 1 and y.terms[0][1] == 1:
            product = self.atom(quotient) * y
            self._rules[product.terms[0][0]] = 1, x.terms

    def _add_fact(self, fact) -> None:
        if type(fact) is not int:
            self.constraint_facts.append(fact)
            self._forget()

    def assumed(self, gap: SymbolicDim, margin: int) -> bool | None:
        """Assume `gap >= margin` or its opposite, by the example sizes; None without these."""
        if self.examples is None:
            return None
        holds = self.evaluated(gap, self.examples) >= margin
        constant = dict(gap.terms).get((), 0)
        rest = gap - constant
        self._assume(f"{rest} >= {margin - constant}" if holds else f"{-rest} >= {1 - margin + constant}")
        return holds

    def assumed_zero(self, x: SymbolicDim) -> bool:
        """Whether a dimension is 0 for the example sizes; if so, that becomes a constraint."""
        if self.examples is None or self.evaluated(x, self.examples) or len(x.terms) != 1:
            return False
        self._assume(f"{x} == 0")
        return True

    def _assume(self, text: str) -> None:
        place = current()
        self._constrain(text)
        self.assumptions.append((text, f"{place.file}:{place.line}"))

    def _forget(self) -> None:
        for memo in (self.results, self.bounds, self.lowers, self.ranges, self.facts):
            memo.clear()
        self._intervals = None

    def variable_range(self, name: str) -> tuple:
        """The least and greatest value of a variable that the linear constraints allow."""
        if name in self.counted:
            return 0, upper(self.counted[name].bound)
        if self._intervals is None:
            self._intervals = {}
            for _ in range(_ROUNDS):
                for fact in self.constraint_facts:
                    self._tighten(dict(fact.terms))
        return self._intervals.get(name, (1, inf))

    def _tighten(self, terms: Polynomial) -> None:
        """Narrow the intervals of the variables of a linear fact: c·x + rest >= 0."""
        constant = terms.pop((), 0)
        names = [
            monomial[0][0]
            for monomial in terms
            if len(monomial) == 1 and monomial[0][1] == 1 and type(monomial[0][0]) is str
        ]
        if len(names) != len(terms):
            return
        intervals = self._intervals or {}
        for name in names:
            rest: float = constant
            for other in names:
                if other != name:
                    low, high = intervals.get(other, (1, inf))
                    k = terms[((other, 1),)]
                    rest += k * (high if k > 0 else low)
            low, high = intervals.get(name, (1, inf))
            c = terms[((name, 1),)]
            if rest != inf:
                low, high = (max(low, -(int(rest) // c)), high) if c > 0 else (low, min(high, int(rest) // -c))
                intervals[name] = low, high
        self._intervals = intervals

    def told(self, *dims) -> str:
        """Where the sizes among `dims` that values decide were made; empty if there are none."""
        names = [n for d in dims if type(d) is SymbolicDim and d.scope is self for n in d.variables()]
        known = [(n, self.counted[n]) for n in dict.fromkeys(names) if n in self.counted]
        return ", ".join([f"{n} is decided by values at {c.place}, and is at most {c.bound}" for n, c in known])

    def with_constraints(self) -> str:
        """The constraints as the end of a sentence."""
        return f" under the constraints {', '.join([t for t, _ in self.constraints])}" if self.constraints else ""

    # -- use ---------------------------------------------------------------------------------------

    def check_same(self, other: SymbolicDim, what: str) -> None:
        """Raise unless a dimension is of this scope.

        Raises:
            ValueError: it is of another one.
        """
        if other.scope is not self:
            raise ValueError(
                f"Invalid mixing of symbolic scopes in {what}: the first is of {self}, the second of {other.scope}. "
                'Make the dimensions of one program in one scope: with one call, symbolic_shape("a, b"), or with '
                "scope=a.scope."
            )

    def substituted(self, x: SymbolicDim, atom, value):
        """An expression with one of its atoms replaced."""
        out: Polynomial = {}
        new = _terms(value)
        for monomial, c in x.terms:
            part: Polynomial = {tuple([(a, n) for a, n in monomial if a != atom]): c}
            for a, n in monomial:
                for _ in range(n if a == atom else 0):
                    part = multiplied(list(part.items()), new)
            accumulate(out, part.items())
        return self.made(out)

    def evaluated(self, x, values):
        """An expression with values for its variables."""
        if type(x) is int:
            return x
        total: Any = 0
        for monomial, c in x.terms:
            product: Any = c
            for atom, n in monomial:
                value = self._value(atom, values)
                for _ in range(n):
                    product = value if type(product) is int and product == 1 else product * value
            total = product if type(total) is int and total == 0 else total + product
        return total

    def _value(self, atom, values):
        if type(atom) is str:
            return values[atom]
        x, y = [self.evaluated(operand, values) for operand in atom.operands]
        if atom.name == FLOORDIV:
            return x // y
        if atom.name == MOD:
            return x % y
        return larger(x, y) if atom.name == MAX else smaller(x, y)

    def __copy__(self) -> SymbolicScope:
        return self

    def __deepcopy__(self, memo) -> SymbolicScope:
        return self

    def __reduce__(self):
        return SymbolicScope, ([text for text, _ in self.constraints],)

    def __str__(self) -> str:
        text = f"scope {id(self)} created at {self.place.file}:{self.place.line}"
        return text + (
            " with constraints:" + "".join([f"\n  {t}" for t, _ in self.constraints]) if self.constraints else ""
        )

    __repr__ = __str__


def _terms(x) -> tuple:
    return x.terms if type(x) is SymbolicDim else (((), x),) if x else ()


def several_scopes(shapes, names) -> str | None:
    """The sentence about arguments whose symbolic sizes are of several scopes; None if of one.

    Args:
        shapes: the shapes of the arguments.
        names: the names of the arguments; those without a name are numbered.
    """
    found: dict = {}
    for i, shape in enumerate(shapes):
        for d in shape:
            if type(d) is SymbolicDim:
                name = names[i] if i < len(names) and names[i] else f"argument {i}"
                found.setdefault(d.scope, f"{str(d)!r} of {name}")
    if len(found) < 2:
        return None
    return (
        f"the sizes {' and '.join(found.values())} are of different scopes, so that equal names in them are not the "
        f"same size: {'; '.join([f'{size} of {scope}' for scope, size in found.items()])}. Make all of them in "
        'one call, symbolic_shape("a, b"), or pass scope= to the later calls.'
    )


def tell_scopes(error: BaseException, avals, names) -> None:
    """Add a note to a function's error if the sizes of its arguments are of several scopes."""
    shapes = [getattr(a, "shape", ()) for a in avals]
    if any(type(d) is SymbolicDim for shape in shapes for d in shape):
        text = several_scopes(shapes, names)
        notes = getattr(error, "__notes__", ())
        if text and not any("are of different scopes" in n for n in notes):
            error.add_note(f"Note: {text}")


_NO_INTEGER = "'SymbolicDim' object cannot be interpreted as an integer"
_NO_UFUNC = re.compile(r"loop of ufunc does not support argument \d of type SymbolicDim which has no callable (\w+)")
_NO_CHOICE = "Attempted boolean conversion"
_NO_PLACE = "indices must be integers or slices, not SymbolicDim"
_ARANGE = re.compile(r"\b(np|numpy)\.arange\(")
_NO_SIZE_OF_NUMPY = "expected a sequence of integers or a single integer, got"


def tell_integer(error: BaseException, why: str = "A symbolic size has several values") -> None:
    """Say in Python's or NumPy's error about a size that is no number what to write instead."""
    message = error.args[0] if error.args else None
    if message == _NO_INTEGER:
        instead = (
            "x.shape[0], in place of len(x), is a size to compute with, as in x.sum() / x.shape[0] or "
            "jnp.arange(x.shape[0]); lax.fori_loop(0, n, body, init), in place of range(n), repeats a step; "
            "lax.scan(f, init, x) or lax.map(f, x) goes through the elements"
        )
    elif type(message) is not str:
        return
    elif message.startswith(_NO_SIZE_OF_NUMPY):
        instead = "jnp.zeros(n), in place of np.zeros(n), and its like make arrays of such sizes"
    elif "real number" in message and "SymbolicDim" in message:
        instead = (
            "jnp.sqrt(n), in place of math.sqrt(n), and its like compute with such sizes; "
            "jnp.asarray(n, float) stands for float(n)"
        )
    elif (ufunc := _NO_UFUNC.search(message)) is not None:
        instead = f"jnp.{ufunc[1]}(n), in place of np.{ufunc[1]}(n), and its like compute with such sizes"
    elif message.startswith(_NO_CHOICE) and _ARANGE.search(_text_of(error)):
        instead = "jnp.arange(n), in place of np.arange(n), and its like make arrays of such sizes"
    elif message.endswith(_NO_PLACE):
        instead = (
            "jnp.asarray(values)[n], in place of values[n], for an element of a list; lax.switch(n, functions) for one "
            "of several functions"
        )
    elif "unsupported format string" in message and "SymbolicDim" in message:
        instead = 'gradix.debug.print("{}", n), in place of print(f"{n:5d}"), prints when the program runs'
    else:
        return
    line = _line_of(error)
    text = f"{why}, so Python cannot have it as a number{f', at {line}' if line else ''}.\n  instead: {instead}."
    error.args = (text, *error.args[1:])


def _text_of(error: BaseException) -> str:
    """The text of the line at which an error was raised, in a function of the user."""
    file, _, line = _line_of(error).rpartition(":")
    return linecache.getline(file, int(line)) if line.isdigit() else ""


def _line_of(error: BaseException) -> str:
    """The line of the innermost function of the user that an error has come through."""
    found, at = "", error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if not is_inside(file):
            found = located(file, at.tb_lineno)
        at = at.tb_next
    return found


def _contradiction(text: str, before: list[str]) -> str:
    """The message about a constraint that contradicts those before it."""
    if not before or _impossible([text]):
        return f"Constraint {text!r} can never hold: dimension variables are integers of at least 1."
    other = next((b for b in before if _impossible([b, text])), None) if len(before) > 1 else before[0]
    if other is not None:
        return f"Constraints {other!r} and {text!r} contradict each other: no sizes satisfy both. Leave out one."
    return (
        f"Constraint {text!r} contradicts the constraints before it, {', '.join(map(repr, before))}: no sizes "
        "satisfy all of them."
    )


def _impossible(constraints: list[str]) -> bool:
    try:
        SymbolicScope(constraints)
    except ValueError:
        return True
    return False


class _Examples(dict):
    """Example sizes of all variables of a scope: the given ones, else large sizes within bounds."""

    def __init__(self, scope: SymbolicScope, sizes: Mapping[str, int]):
        for name, n in sizes.items():
            if type(n) is not int or n < 1:
                raise ValueError(
                    f"assume: the size of the dimension variable '{name}' must be a positive integer, got {n!r}."
                )
        super().__init__(sizes)
        self._scope = scope
        for text, (left, relation, right) in scope.constraints:
            x, y = scope.evaluated(left, self), scope.evaluated(right, self)
            if not {">=": x >= y, "<=": x <= y, "==": x == y}[relation]:
                raise ValueError(
                    f"assume: the sizes {dict(self)} do not satisfy the constraint {text}. Pass the sizes of "
                    "a real call."
                )

    def __missing__(self, name: str) -> int:
        low, high = self._scope.variable_range(name)
        value = self[name] = int(max(low, min(high, _LARGE)))
        return value
