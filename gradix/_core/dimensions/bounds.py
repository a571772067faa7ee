"""Bounds of dimensions: intervals, and proofs that an expression is never below a number.

Each atom t with a least value l is written t = l + t', or t = h - t' if it has only a greatest
value h, so that monomials of the t' are never negative. An expression whose monomials all have
positive coefficients is then at least its constant. A monomial with a negative coefficient is
bounded by the greatest values of its atoms, or cancelled by a positive multiple of a fact. A fact
is an expression that is never negative: a constraint of the scope, or a property of an operation,
such as x - d·floordiv(x, d) ≥ 0. All bounds are sound, but not always the best.
"""

from __future__ import annotations

from functools import cached_property, partial
from math import ceil, gcd, inf

from gradix._base.lazy import lazy_module
from gradix._core.dimensions.polynomials import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Operation,
    Polynomial,
    accumulate,
    multiplied,
    over,
)

fractions = lazy_module("fractions")
_STEPS = 48  # the number of facts tried in one proof
_CASES = 3  # the number of max and min in an expression of which both cases are tried


def bounds(x) -> tuple:
    """The least and greatest value of a dimension, as far as known; infinite ones are floats."""
    if type(x) is int:
        return x, x
    known = x.scope.bounds
    found = known.get(x)
    if found is None:
        known[x] = (-inf, inf)  # facts that need this very bound see none
        found = known[x] = lower(x), upper(x)
    return found


def lower(x):
    """A number that a dimension is never below."""
    if type(x) is int:
        return x
    found = x.scope.lowers.get(x)
    if found is None:
        x.scope.lowers[x] = -inf
        found = _simple_bound(x, 1)
        found = x.scope.lowers[x] = _lower(x, _CASES) if found is None else found
    return found


def upper(x):
    """A number that a dimension is never above."""
    if type(x) is int:
        return x
    found = _simple_bound(x, -1)
    return -lower(-x) if found is None else -found


def _simple_bound(x, sign: int):
    """A lower bound of `sign·x` if its terms are all added, or all subtracted; else None."""
    total: float = 0
    is_free = not x.scope.constraint_facts and x.terms[0][1] * sign < 0
    for monomial, c in x.terms:
        c *= sign
        if monomial and (c < 0) != is_free:
            return None
        for atom, n in monomial:
            if type(atom) is not str and (is_free or atom.name in (MAX, MIN)):
                return None
            low = range_of(atom, x.scope)[0]
            if not low >= 0:
                return None
            c *= low**n
        total += c
    return -inf if is_free else total


def _lower(x, cases: int):
    if x.scope.counted and (least := _least_of_count(x)) is not None:
        return least
    terms = dict(x.terms)
    bound = _rounded(_Proof(x).bound(terms), terms)
    return max(bound, _by_cases(x, cases)) if cases else bound


def _by_cases(x, cases: int):
    """The lesser bound of two cases: a max or min is its first operand, or it is its second."""
    for atom in _atoms(x.terms):
        if type(atom) is Operation and atom.name in (MAX, MIN):
            lows = [_in_case(x.scope.substituted(x, atom, value), cases - 1) for value in atom.operands]
            return min(lows)
    return -inf


def _in_case(x, cases: int):
    if type(x) is int:
        return x
    known = x.scope.lowers.get(x, -inf)
    if known != -inf:
        return known
    found = _simple_bound(x, 1)
    return _lower(x, cases) if found is None else found


_MOST_DEGREE = 3  # of expressions of a count that are followed from turn to turn


def _least_of_count(x):
    """The least value of an expression of one count, if it is made of polynomials; else None."""
    names = x.variables()
    if len(names) != 1:
        return None
    (name,) = names
    count = x.scope.counted.get(name)
    if count is None or type(count.bound) is not int:
        return None
    found = _pieces(x, name, count.bound)
    if found is None:
        return None
    points, degree = found
    return min([_value(x, name, k) for k in _turns(partial(_value, x, name), points, degree)])


def _pieces(x, name: str, most: int) -> tuple[list, int] | None:
    """Where an expression of a variable from 0 to `most` is a polynomial, and the greatest degree.

    Returns:
        Ascending values of the variable, between any two neighbours of which, both included, the
        expression is a polynomial, and the degree. None if there are none, or the degree is too high.
    """
    found, degree = {0, most}, 0
    for monomial, _ in x.terms if type(x) is not int else ():
        total = 0
        for atom, n in monomial:
            if type(atom) is str:
                total += n
                continue
            if atom.name not in (MAX, MIN):
                return None
            one, other = atom.operands
            here, there = _pieces(one, name, most), _pieces(other, name, most)
            if here is None or there is None:
                return None
            highest = max(here[1], there[1])
            points = sorted({*here[0], *there[0]})
            found.update(points)
            found.update(_changes(partial(_gap, one, other, name), points, highest))
            total += n * highest
        degree = max(degree, total)
    return (sorted(found), degree) if degree <= _MOST_DEGREE else None


def _turns(f, points: list, degree: int) -> list:
    """Ascending values, with `points`, between which a function is monotone.

    It is a polynomial between any two neighbours of `points`.
    """
    if degree <= 1:
        return points
    found = set(points)
    for a, b in zip(points, points[1:]):
        if b - a > 1:
            found.update(_changes(lambda k: f(k + 1) - f(k), [a, b - 1], degree - 1))
    return sorted(found)


def _changes(f, points: list, degree: int) -> list:
    """The neighbouring values between which such a function changes its sign."""
    found: list = []
    turns = _turns(f, points, degree)
    values = [f(k) for k in turns]
    for a, b, value, next_value in zip(turns, turns[1:], values, values[1:]):
        if value * next_value >= 0:
            continue
        if degree <= 1:
            a += (b - a) * abs(value) // (abs(value) + abs(next_value))
            b = a + 1
        while b - a > 1:
            k = (a + b) // 2
            a, b = (k, b) if f(k) * value > 0 else (a, k)
        found += a, b
    return found


def _gap(x, y, name: str, k: int) -> int:
    return _value(x, name, k) - _value(y, name, k)


def _value(x, name: str, k: int) -> int:
    return x if type(x) is int else x.evaluate({name: k})


def _rounded(bound, terms: Polynomial):
    """The least integer, not below a bound, that an expression with these coefficients can have."""
    if bound == -inf:
        return bound
    constant = terms.get((), 0)
    step = gcd(*[c for m, c in terms.items() if m])
    if type(bound) is int:
        return constant - (constant - bound) // step * step
    return constant + step * ceil(fractions.Fraction(bound - constant) / step)


def _atoms(terms) -> list:
    return list(dict.fromkeys([atom for monomial, _ in terms for atom, _ in monomial]))


# -- atoms -----------------------------------------------------------------------------------------


def range_of(atom, scope) -> tuple:
    """The least and greatest value of a variable or an operation."""
    found = scope.ranges.get(atom)
    if found is None:
        # what is asked on the way, such as about a count that is bounded by an expression of this one
        scope.ranges[atom] = (-inf if type(atom) is not str else 0 if atom in scope.counted else 1, inf)
        found = scope.variable_range(atom) if type(atom) is str else _constrained_range(atom, scope)
        scope.ranges[atom] = found
    return found


def _constrained_range(op: Operation, scope) -> tuple:
    """The least and greatest value of an operation that its operands and constraints on it alone allow."""
    low, high = _operation_range(op)
    for fact in scope.constraint_facts:  # c·op + constant >= 0
        monomial, c = fact.terms[0]
        constant = 0 if len(fact.terms) == 1 else fact.terms[1][1] if fact.terms[1][0] == () else None
        if monomial == ((op, 1),) and len(fact.terms) <= 2 and constant is not None:
            low, high = (max(low, -(constant // c)), high) if c > 0 else (low, min(high, constant // -c))
    return low, high


def _operation_range(op: Operation) -> tuple:
    x, y = op.operands
    (x_low, x_high), (y_low, y_high) = bounds(x), bounds(y)
    if op.name == MAX:
        return max(x_low, y_low), max(x_high, y_high)
    if op.name == MIN:
        return min(x_low, y_low), min(x_high, y_high)
    if op.name == MOD:
        if y_low > 0 or (y_low == 0 and y_high != inf):
            return 0, min(y_high - 1, x_high if x_low >= 0 else inf)
        return (y_low + 1, 0) if y_high < 0 else (-inf, inf)
    if not y_low > 0:
        return -inf, inf
    low = _quotient(x_low, y_high if x_low >= 0 else y_low)
    if type(y) is int and x_low not in (inf, -inf) and x.scope.is_exact(op):
        low = -(-x_low // y)  # as the number divides it
    return low, _quotient(x_high, y_low if x_high >= 0 else y_high)


def _quotient(x, y):
    if y == inf:
        return 0 if 0 <= x < inf else -1 if -inf < x < 0 else x
    return x if x in (inf, -inf) else x // y


def facts_of(atom, scope) -> list:
    """Expressions that are never negative by the definition of an operation."""
    if type(atom) is str:
        return []
    found = scope.facts.get(atom)
    if found is None:
        found = scope.facts[atom] = [f for f in _operation_facts(atom, scope) if type(f) is not int]
    return found


def _operation_facts(op: Operation, scope) -> list:
    x, y = op.operands
    value = scope.atom(op)
    if op.name == MAX:
        return [value - x, value - y]
    if op.name == MIN:
        return [x - value, y - value]
    if lower(y) <= 0:
        return []
    if op.name == FLOORDIV and type(y) is int and scope.is_exact(op):
        # x = y·value, which an expression of y·value is reduced to
        return [x - (y - 1) * value, (y + 1) * value - x] if lower(value) >= 0 else []
    if op.name == FLOORDIV:
        return [x - y * value, y * value + y - 1 - x]
    quotient = scope.atom(Operation(FLOORDIV, op.operands))
    left = x - y * quotient - value
    return [left, -left, value, y - 1 - value]


# -- proofs ----------------------------------------------------------------------------------------


class _Proof:
    """A search for the best lower bound of one expression."""

    def __init__(self, x):
        self.scope = x.scope
        self.steps = _STEPS
        self.shifts: dict = {}
        self.x = x

    @cached_property
    def facts(self) -> list:
        """The facts about the atoms of the expression, and about the atoms in these facts."""
        found: dict = dict.fromkeys(self.scope.constraint_facts)
        seen: set = set()
        todo = _atoms(self.x.terms)
        while todo and len(seen) < 12:
            atom = todo.pop(0)
            if atom in seen:
                continue
            seen.add(atom)
            for fact in facts_of(atom, self.scope):
                found[fact] = None
                todo += _atoms(fact.terms)
        return [self.shifted(dict(f.terms)) for f in found]

    def range(self, atom) -> tuple:
        return range_of(atom, self.scope)

    def shifted(self, terms: Polynomial) -> Polynomial:
        """The same expression in t' = t - least value of t."""
        out: Polynomial = {}
        for monomial, c in terms.items():
            accumulate(out, self._shifted_monomial(monomial), c)
        return out

    def _shifted_monomial(self, monomial) -> list:
        found = self.shifts.get(monomial)
        if found is None:
            poly: Polynomial = {(): 1}
            for atom, n in monomial:
                low, high = self.range(atom)
                base, sign = (low, 1) if low != -inf else (high, -1) if high != inf else (0, 1)
                one = [(((atom, 1),), sign)] + ([((), base)] if base else [])
                for _ in range(n):
                    poly = multiplied(list(poly.items()), one)
            found = self.shifts[monomial] = list(poly.items())
        return found

    def bound(self, terms: Polynomial):
        return self._search(self.shifted(terms), 4)

    def _search(self, poly: Polynomial, depth: int):
        best = poly.get((), 0)
        worst = None
        for monomial, c in poly.items():
            if not monomial:
                continue
            least = self._least(monomial, c)
            if worst is None and least < 0:
                worst = monomial
            best = best + least
        if worst is None or depth == 0:
            return best
        for fact in self.facts:
            for monomial, c in fact.items():
                rest = over(worst, monomial) if monomial and (c < 0) == (poly[worst] < 0) else None
                if rest is None or any(self.range(atom) == (-inf, inf) for atom, _ in rest):
                    continue
                if self.steps <= 0:
                    return best
                self.steps -= 1
                factor, left = divmod(poly[worst], c)
                if left:
                    factor = fractions.Fraction(poly[worst], c)
                product = multiplied(list(fact.items()), [(rest, 1)])
                best = max(best, self._search(accumulate(dict(poly), product.items(), -factor), depth - 1))
        return best

    def _least(self, monomial, c):
        """The least value of a monomial of the t' times its coefficient."""
        greatest: float = 1
        for atom, n in monomial:
            low, high = self.range(atom)
            if low == high:
                return 0
            if low == -inf and high == inf:
                return -inf
            greatest = greatest * (high - low) ** n
        if c > 0:
            return 0
        return c * greatest if greatest != inf else -inf
