"""Finds constraints that no sizes satisfy, by intervals and remainders."""

from __future__ import annotations

from math import gcd, inf
from typing import Any

from gradix._core.dimensions.bounds import bounds
from gradix._core.dimensions.polynomials import MOD, Operation


class Contradiction(ValueError):
    """Raised for a constraint that contradicts those before it."""


def check_gap(gap, text: str) -> None:
    """Check that a dimension, which a constraint says is never negative, is not always negative.

    Raises:
        Contradiction: it is always negative.
    """
    if bounds(gap)[1] < 0:
        raise Contradiction(text)


def check_remainders(constraints, text: str) -> None:
    """Check that some number in the interval of each dimension has all remainders stated of it.

    Args:
        constraints: those of a scope, as pairs of a text and ``(left, relation, right)``.
        text: the text of the last of them.

    Raises:
        Contradiction: two remainders exclude each other, or no number in the interval has one.
    """
    known: dict = {}
    for _, (left, relation, right) in constraints:
        atom = _only_atom(left)
        if (
            relation == "=="
            and type(right) is int
            and type(atom) is Operation
            and atom.name == MOD
            and type(atom.operands[1]) is int
        ):
            known.setdefault(atom.operands[0], []).append((atom.operands[1], right))
    for x, classes in known.items():
        if any((r - s) % gcd(m, n) for m, r in classes for n, s in classes):
            raise Contradiction(text)
        low, high = bounds(x)
        if low > -inf and high < inf and any(low + (r - low) % m > high for m, r in classes):
            raise Contradiction(text)


def _only_atom(x):
    """The variable or operation that a dimension is, or None."""
    terms: Any = getattr(x, "terms", ())
    single = len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0][1] == 1
    return terms[0][0][0][0] if single else None
