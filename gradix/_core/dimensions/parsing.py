"""Shapes and constraints as users write them: `"a, 2*b + 1, floordiv(c, 2)"`, `"a >= 4"`."""

from __future__ import annotations

import re
from typing import Any

from gradix._core.dimensions.expression import larger, smaller

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z]\w*)|(\.\.\.|>=|<=|==|_(?!\w)|\S))")
_FUNCTIONS = {"floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "max": larger, "min": smaller}


# Texts may come from files that nobody has checked, so their size is limited.
_TOKENS = 1 << 12
_DEGREE = 256
_TERMS = 512
_BITS = 256  # the limit for numbers


class _Reader:
    """The tokens of a text, read from the left."""

    def __init__(self, text: str, what: str, scope: Any):
        self.text, self.what, self.scope = text, what, scope
        self.tokens: list[tuple[str, str, int]] = []
        for found in _TOKEN.finditer(text.rstrip()):
            if len(self.tokens) == _TOKENS:
                raise ValueError(f"{what} {text[:40]!r}... is too long: it has more than {_TOKENS} parts.")
            kind = "number" if found[1] else "name" if found[2] else found[3]
            self.tokens.append((kind, found[1] or found[2] or found[3], found.start(found.lastindex or 0)))
        self.tokens.append(("end", "the end", len(text)))
        self.place = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.place][0]

    def take(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1][1]

    def accept(self, kind: str) -> bool:
        if self.kind != kind:
            return False
        self.place += 1
        return True

    def expect(self, kind: str, where: str) -> None:
        if not self.accept(kind):
            raise self.error(f"{kind!r} is expected {where}" if kind != "end" else f"nothing more is expected {where}")

    def error(self, why: str) -> ValueError:
        _, token, start = self.tokens[self.place]
        found = "" if self.kind == "end" else f", at {token!r}"
        return ValueError(
            f"syntax error in {self.what} {self.text!r}{found}: {why}. Parsed {self.text[:start]!r}, "
            f"remaining {self.text[start:]!r}."
        )

    # sum := [-|+] product {(+|-) product};  product := power {* power};  power := atom [(^|**) number]

    def sum(self):
        negative = self.accept("-")
        if not negative:
            self.accept("+")
        total = -self.product() if negative else self.product()
        while self.kind in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        return total

    def product(self):
        out = self.power()
        while self.accept("*"):
            out = self.bounded(out, self.power())
        return out

    def bounded(self, x, y):
        """The product of two factors; raises if it exceeds the limits."""
        out = x * y
        if type(out) is int:
            is_large = out.bit_length() > _BITS
        else:
            is_large = len(out.terms) > _TERMS or any(
                sum([n for _, n in monomial]) > _DEGREE for monomial, _ in out.terms
            )
        if is_large:
            raise self.error(
                f"an expression may have at most {_TERMS} terms, the degree {_DEGREE}, and numbers of {_BITS} bits"
            )
        return out

    def power(self):
        base = self.atom()
        if self.accept("^"):
            if self.kind != "number":
                raise self.error("an exponent must be a number")
            exponent = self.number()
            if exponent > _DEGREE:
                raise self.error(f"an exponent may be at most {_DEGREE}")
            factor, base = base, 1
            for _ in range(exponent):
                base = self.bounded(base, factor)
        return base

    def number(self) -> int:
        text = self.take()
        if len(text) > _BITS // 4:
            raise self.error(f"a number may have at most {_BITS // 4} digits")
        return int(text)

    def atom(self):
        if self.kind == "number":
            return self.number()
        if self.accept("-"):
            return -self.atom()
        if self.accept("("):
            value = self.sum()
            self.expect(")", "to close the parenthesis")
            return value
        if self.kind != "name":
            raise self.error("a number, a variable, floordiv, mod, max or min is expected")
        name = self.take()
        if name not in _FUNCTIONS:
            return self.scope.variable(name)
        self.expect("(", f"after {name}")
        x = self.sum()
        self.expect(",", f"between the operands of {name}")
        y = self.sum()
        self.expect(")", f"after the operands of {name}")
        return _FUNCTIONS[name](x, y)


def dimension(text: str, scope):
    """The dimension that a text describes."""
    reader = _Reader(text, "symbolic dimension", scope)
    found = reader.sum()
    reader.expect("end", "after the dimension")
    return found


def shape(text: str, scope, like) -> tuple:
    """The shape that a text describes; `_` and a last `...` stand for dimensions of `like`."""
    reader = _Reader(text, "symbolic shape", scope)
    closing = _encloses(reader.tokens)
    if closing:
        reader.take()
    dims: list = []
    while reader.kind not in ("end", ")"):
        if reader.accept("..."):
            dims += _rest_of(like, len(dims), text)
            reader.accept(",")
            break
        dims.append(_like_at(like, len(dims), text) if reader.accept("_") else reader.sum())
        if not reader.accept(","):
            break
    if closing:
        reader.expect(")", "at the end of the shape")
    reader.expect("end", "after the shape")
    if like is not None and len(dims) != len(like):
        raise ValueError(
            f"symbolic shape {text!r} has {len(dims)} dimensions, but the shape {tuple(like)}, for which it "
            f"stands, has {len(like)}."
        )
    for i, (n, own) in enumerate(zip(dims, like or ())):
        if type(n) is type(own) is int and n != own:
            raise ValueError(
                f"symbolic shape {text!r} has a different size in dimension {i} than the shape {tuple(like)}, for "
                f"which it stands: {n}, not {own}. Write that size, `_`, or a variable."
            )
    return tuple(dims)


def _encloses(tokens: list) -> bool:
    """Whether the first token opens a parenthesis that closes at the end of the text."""
    depth = 0
    for i, (kind, _, _) in enumerate(tokens):
        depth += (kind == "(") - (kind == ")")
        if depth == 0:
            return i > 0 and tokens[i + 1][0] == "end"
    return False


def _like_at(like, i: int, text: str):
    if like is None or i >= len(like):
        raise ValueError(
            f"symbolic shape {text!r} has '_' for dimension {i}, which stands for a dimension of `like`, "
            f"got like={like}. Write the size, or pass a shape that has this dimension."
        )
    if like[i] is None:
        raise ValueError(
            f"symbolic shape {text!r} has '_' for dimension {i}, which is None in `like`={tuple(like)}. Write the size."
        )
    return like[i]


def _rest_of(like, start: int, text: str) -> list:
    if like is None:
        raise ValueError(f"symbolic shape {text!r} ends with '...', which stands for dimensions of `like`: pass like=.")
    return [_like_at(like, i, text) for i in range(start, len(like))]


def constraint(text: str, scope) -> tuple:
    """The left side, relation and right side of a constraint."""
    reader = _Reader(text, "constraint", scope)
    left = reader.sum()
    if reader.kind not in (">=", "<=", "=="):
        raise ValueError(
            f"Constraint parsing error in {text!r}: it must contain one of '==', '>=' or '<='. Write a > "
            '2 as "a >= 3".'
        )
    relation = reader.take()
    right = reader.sum()
    reader.expect("end", "after the constraint")
    return left, relation, right
