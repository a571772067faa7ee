"""Integer polynomials over variables and operations: canonical form, arithmetic, division, text.

A polynomial is a dict from monomials to coefficients. A monomial is a sorted tuple of pairs (atom,
exponent), which is empty for the constant. An atom is the name of a variable, or an `Operation`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

Monomial = tuple
Polynomial = dict

FLOORDIV, MOD, MAX, MIN = "floordiv", "mod", "max", "min"
_RANKS = {FLOORDIV: 0, MOD: 1, MAX: 2, MIN: 3}


class Operation:
    """A function of two dimensions that is not a polynomial: floordiv, mod, max or min."""

    __slots__ = ("name", "operands", "_hash", "_text")

    def __init__(self, name: str, operands: tuple):
        self.name, self.operands = name, operands
        self._hash = hash((name, operands))
        self._text: str | None = None

    def __eq__(self, other) -> bool:
        return type(other) is Operation and self.name == other.name and _same(self.operands, other.operands)

    def __lt__(self, other) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = f"{self.name}({', '.join([_operand_text(x) for x in self.operands])})"
        return self._text

    __repr__ = __str__


def _same(xs, ys) -> bool:
    return all(x is y or (type(x) is type(y) is int and x == y) for x, y in zip(xs, ys))


def _operand_text(x) -> str:
    return f"- {-x}" if type(x) is int and x < 0 else str(x)


# -- order and text --------------------------------------------------------------------------------


def _atom_key(atom) -> tuple:
    return (0, atom) if type(atom) is str else (1, _RANKS[atom.name], atom)


def _monomial_key(monomial: Monomial) -> tuple:
    if len(monomial) == 1 and monomial[0][1] == 1:
        return 1, 1, (_atom_key(monomial[0][0]),)
    return _product_key(monomial)


@lru_cache(1 << 14)
def _product_key(monomial: Monomial) -> tuple:
    expanded = tuple([_atom_key(atom) for atom, n in monomial for _ in range(n)])
    return len(expanded), len(monomial), expanded


def ordered(poly: Polynomial) -> tuple:
    """The pairs (monomial, coefficient), the highest degree first and the constant last."""
    constant = [((), poly[()])] if () in poly else []
    rest = [item for item in poly.items() if item[0]] if constant else list(poly.items())
    if len(rest) > 1:
        rest.sort(key=lambda item: _monomial_key(item[0]), reverse=True)
    return tuple(rest + constant)


def text(terms: tuple) -> str:
    """Terms as they are printed: `2*a*b - floordiv(a, 2) + 1`."""
    parts: list[str] = []
    for monomial, c in terms:
        sign = "- " if c < 0 else "+ " if parts else ""
        factors = [str(atom) if n == 1 else f"{atom}^{n}" for atom, n in monomial]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        parts.append(sign + "*".join(factors))
    return " ".join(parts)


# -- arithmetic ------------------------------------------------------------------------------------


def accumulate(into: Polynomial, terms, factor: Any = 1) -> Polynomial:
    """Add `factor` times the terms to a polynomial, in place."""
    for monomial, c in terms:
        total = into.get(monomial, 0) + c * factor
        if total:
            into[monomial] = total
        else:
            into.pop(monomial, None)
    return into


@lru_cache(1 << 14)
def times(x: Monomial, y: Monomial) -> Monomial:
    """The product of two monomials."""
    if not x or not y:
        return x or y
    powers = dict(x)
    for atom, n in y:
        powers[atom] = powers.get(atom, 0) + n
    if len(powers) == 1:
        return tuple(powers.items())
    return tuple(sorted(powers.items(), key=lambda item: _atom_key(item[0])))


def multiplied(xs, ys) -> Polynomial:
    """The product of two sequences of terms."""
    out: Polynomial = {}
    for mx, cx in xs:
        accumulate(out, [(times(mx, my), cy) for my, cy in ys], cx)
    return out


def over(x: Monomial, y: Monomial) -> Monomial | None:
    """The quotient of two monomials; None if `y` does not divide `x`."""
    powers = dict(x)
    for atom, n in y:
        left = powers.get(atom, 0) - n
        if left < 0:
            return None
        powers[atom] = left
    return tuple([(atom, n) for atom, n in powers.items() if n])


def divided(xs: tuple, ys: tuple) -> Polynomial | None:
    """The exact quotient of two sequences of terms, by long division; None if there is none."""
    quotient: Polynomial = {}
    rest = dict(xs)
    lead, scale = ys[0]
    while rest:
        monomial = max(rest, key=_monomial_key)
        part = over(monomial, lead)
        if part is None or rest[monomial] % scale:
            return None
        n = rest[monomial] // scale
        accumulate(quotient, [(part, n)])
        accumulate(rest, [(times(part, m), c) for m, c in ys], -n)
    return quotient


def reduced(terms, y: int) -> tuple[Polynomial, Polynomial]:
    """Polynomials q and r with `terms = y·q + r` and the smallest coefficients of r."""
    quotient: Polynomial = {}
    rest: Polynomial = {}
    for monomial, c in terms:
        least = c % y
        least = least if 2 * abs(least) <= abs(y) else least - y
        if abs(least) < abs(c):
            quotient[monomial] = (c - least) // y
            c = least
        if c:
            rest[monomial] = c
    return quotient, rest


def divided_by_number(xs: tuple, d: int) -> tuple[Polynomial, int] | None:
    """Quotient and remainder if a number divides all coefficients but the constant, else None."""
    quotient: Polynomial = {}
    remainder = 0
    for monomial, c in xs:
        n, r = divmod(c, d)
        if r and monomial:
            return None
        remainder += r
        if n:
            quotient[monomial] = n
    return quotient, remainder
