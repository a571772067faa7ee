"""Shardy's sharding rules, which relate the axes of operands and results, and their notation."""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from gradix._base.errors import class_of

# stands for any number of leading axes
BATCHING = "…"
_GROUP = re.compile(r"…\d*")
_TOKEN = re.compile(r"\s*(?:(\.\.\.\d*)|([A-Za-z0-9_]+)|([(),])|(.))")
_LETTERS = "ijklmnopqrstuvwxyz"
_KINDS = ("reduction_factors", "need_replication_factors", "permutation_factors")


def _check_factor(name: str) -> None:
    if not name or not name[0].isalpha() or name[0] == BATCHING:
        raise ValueError(f"Factor names have to start with a letter, but got {name[:1]!r}")
    for c in name:
        if not (c.isascii() and (c.isalnum() or c == "_")):
            raise ValueError(f"Unknown character {c!r} in the factor name {name!r}")


def _is_group(name) -> bool:
    return isinstance(name, str) and _GROUP.fullmatch(name) is not None


class CompoundFactor(tuple):
    """Two or more factors that one axis is made of, the slowest first.

    Example:
        >>> CompoundFactor("heads", "features")
        ('heads', 'features')
    """

    __slots__ = ()

    def __new__(cls, *factors):
        if len(factors) < 2:
            raise ValueError(
                f"A compound factor should contain at least two factors, got {factors}. A single one "
                "is written without CompoundFactor."
            )
        for f in factors:
            if not isinstance(f, str):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got {class_of(f)}")
            if _is_group(f):
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_factor(f)
        return tuple.__new__(cls, factors)


class ArrayMapping(tuple):
    """The factor or `CompoundFactor` of each axis of an array; the first entry may be `BATCHING`.

    Example:
        >>> ArrayMapping(BATCHING, "rows", CompoundFactor("heads", "features"))
        ('…', 'rows', ('heads', 'features'))
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings):
        for i, d in enumerate(dim_mappings):
            if isinstance(d, CompoundFactor):
                continue
            if not isinstance(d, str):
                raise ValueError(f"Each element of ArrayMapping must be a str or CompoundFactor, but got {class_of(d)}")
            if _is_group(d):
                if i:
                    raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            else:
                _check_factor(d)
        return tuple.__new__(cls, dim_mappings)


class SdyShardingRule:
    """Which axes of operands and results are divided together, namely those with the same factor.

    Args:
        operand_mappings: an `ArrayMapping` for each operand.
        result_mappings: one for each result.
        reduction_factors: factors of operands alone, over which the results are sums.
        need_replication_factors: factors whose axes must not be divided.
        permutation_factors: factors that need a permutation between devices where divided.
        factor_sizes: the sizes of factors that occur only in compound factors.

    Raises:
        ValueError: a factor has no size, or one it does not need; a special factor is not in the
            rule, or of two kinds.

    Example:
        >>> SdyShardingRule((ArrayMapping("i", "j"),), (ArrayMapping("i"),), reduction_factors=("j",))
        SdyShardingRule((('i', 'j'),), (('i',),), {} reduction_factors=('j',))
    """

    __slots__ = ("operand_mappings", "result_mappings", "factor_sizes", *_KINDS)

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings, self.result_mappings = operand_mappings, result_mappings
        self.factor_sizes = factor_sizes
        if not all(isinstance(n, int) for n in factor_sizes.values()):
            raise TypeError(f"factor_sizes must be a dict of str to int, but got {factor_sizes}")
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        alone, compound = set(), set()
        for mapping in (*operand_mappings, *result_mappings):
            for d in mapping:
                (compound if isinstance(d, tuple) else alone).update(d if isinstance(d, tuple) else (d,))
        self._check_kinds({f for f in alone | compound if not _is_group(f)})
        for f in factor_sizes:
            if f in alone:
                raise ValueError(f"Factor {f} represents a whole dimension; do not specify its size")
            if f not in compound:
                raise ValueError(f"Factor {f} is not used in the rule, but size is provided")
        for f in sorted(compound - alone - factor_sizes.keys()):
            raise ValueError(f"Factor {f} is only used in compound factors; must specify its size, as {f}=8")

    def _check_kinds(self, names: set) -> None:
        seen: set = set()
        for kind in _KINDS:
            given = getattr(self, kind)
            if not isinstance(given, tuple):
                raise ValueError(f"{kind} must be a tuple of factors, got {given!r}")
            if len(set(given)) != len(given):
                raise ValueError(f"{kind} contains duplicated factors: {given}")
            for f in given:
                if f not in names:
                    raise ValueError(
                        f"Factor {f} in {kind} is not used in the rule, whose factors are "
                        f"{', '.join(sorted(names)) or 'none'}"
                    )
                if f in seen:
                    raise ValueError(
                        f"Factor {f} can only be in one of the reduction, need replication, or permutation factor sets."
                    )
                seen.add(f)

    def __repr__(self) -> str:
        kinds = "".join([f" {k}={getattr(self, k)}" for k in _KINDS if getattr(self, k)])
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{kinds})"


def str_to_sdy_sharding_rule(
    rule: str,
    *,
    reduction_factors: tuple[str, ...] = (),
    need_replication_factors: tuple[str, ...] = (),
    permutation_factors: tuple[str, ...] = (),
    **factor_sizes: int,
) -> SdyShardingRule:
    """A rule in the notation of Einstein sums, `"... i j, ... j k -> ... i k"`, as an object.

    Args:
        rule: for each axis a name, axes apart by spaces, arrays by commas; `(i j)` for an axis that
            is made of two factors, `...` for any number of leading axes.
        reduction_factors, need_replication_factors, permutation_factors, factor_sizes: see
            `SdyShardingRule`.

    Raises:
        TypeError: `rule` is not a string.
        ValueError: `rule` is not in that notation.

    Example:
        >>> str_to_sdy_sharding_rule("(h d) j -> h d", reduction_factors=("j",))
        SdyShardingRule(((('h', 'd'), 'j'),), (('h', 'd'),), {} reduction_factors=('j',))
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {class_of(rule)}")
    sides = rule.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: {rule!r}. Write operands, one arrow, results: 'i j -> i'.")
    return SdyShardingRule(
        _parsed(sides[0]),
        _parsed(sides[1]),
        reduction_factors=reduction_factors,
        need_replication_factors=need_replication_factors,
        permutation_factors=permutation_factors,
        **factor_sizes,
    )


def _parsed(text: str) -> tuple[ArrayMapping, ...]:
    """One side of a rule."""
    arrays: list[ArrayMapping] = []
    row: list = []
    inside: list | None = None
    for ellipsis, name, mark, other in _TOKEN.findall(text.rstrip()):
        if other == ".":
            raise ValueError(f"Character '.' must be used inside ellipsis '...', in {text!r}")
        if other:
            raise ValueError(f"Unknown character {other!r} in {text!r}")
        if ellipsis:
            if row or inside is not None:
                raise ValueError(f"Ellipsis can only be used at the beginning of a dimension, in {text!r}")
            row.append(BATCHING + (ellipsis[3:] or "0"))
        elif name:
            _check_factor(name)
            (row if inside is None else inside).append(name)
        elif mark == "(":
            if inside is not None:
                raise ValueError(f"Compound factors should be one level, nested brackets are not allowed: {text!r}")
            inside = []
        elif mark == ")":
            if inside is None:
                raise ValueError(f"Brackets are not balanced in rule: {text!r}")
            if len(inside) < 2:
                raise ValueError(f"Brackets should contain at least two factors, in {text!r}")
            row.append(CompoundFactor(*inside))
            inside = None
        else:
            if inside is not None:
                raise ValueError(f"Brackets are not balanced in rule: {text!r}")
            arrays.append(ArrayMapping(*row))
            row = []
    if inside is not None:
        raise ValueError(f"Brackets are not balanced in rule: {text!r}")
    return (*arrays, ArrayMapping(*row))


class ShapedRule(NamedTuple):
    """A rule for operands and results of known shapes: the names of the factors of each axis."""

    operands: tuple[tuple[tuple[str, ...], ...], ...]
    results: tuple[tuple[tuple[str, ...], ...], ...]
    sizes: tuple[tuple[str, int], ...]
    kinds: tuple[tuple[str, ...], ...]  # in the order of _KINDS

    def batched(self, size: int, mapped) -> ShapedRule:
        """The rule under vmap: mapped operands and all results have a new leading axis."""
        taken = dict(self.sizes)
        lead = next(f"batch{k}" for k in range(len(taken) + 1) if f"batch{k}" not in taken)
        return ShapedRule(
            tuple([((lead,), *row) if m else row for row, m in zip(self.operands, mapped)]),
            tuple([((lead,), *row) for row in self.results]),
            ((lead, size), *self.sizes),
            self.kinds,
        )

    def text(self) -> str:
        """As an attribute of Shardy."""
        letters: dict[str, str] = {}
        for row in (*self.operands, *self.results):
            for f in [f for d in row for f in d]:
                k = len(letters)
                letters.setdefault(f, _LETTERS[k] if k < len(_LETTERS) else f"z_{k - len(_LETTERS) + 1}")

        def side(rows) -> str:
            return ", ".join(["[" + ", ".join(["".join([letters[f] for f in d]) for d in row]) + "]" for row in rows])

        known = dict(self.sizes)
        sizes = ", ".join([f"{letter}={known[f]}" for f, letter in letters.items()])
        words = ("reduction", "need_replication", "permutation")
        kinds = "".join(
            [
                f" {word}={{{', '.join(sorted([letters[f] for f in given]))}}}"
                for word, given in zip(words, self.kinds)
                if given
            ]
        )
        head = f"({side(self.operands)})->({side(self.results)})"
        return f"#sdy.op_sharding_rule<{head}{f' {{{sizes}}}' if sizes else ''}{kinds}, custom>"


def batch_rule(operands, results, batch: int) -> ShapedRule:
    """The rule of an operation on stacks: only the leading `batch` axes of all arrays are divided."""
    sizes: dict[str, int] = {}

    def row(shape) -> tuple:
        names = [f"batch{i}" if i < batch else f"own{len(sizes) + i}" for i in range(len(shape))]
        sizes.update(zip(names, shape))
        return tuple([(n,) for n in names])

    rows = [tuple([row(shape) for shape in shapes]) for shapes in (operands, results)]
    own = tuple([name for name in sizes if name.startswith("own")])
    return ShapedRule(rows[0], rows[1], tuple(sizes.items()), ((), own, ()))


def shaped(rule: SdyShardingRule, operands, results) -> ShapedRule:
    """A rule for operands and results of these shapes.

    Raises:
        ValueError: the rule does not fit their number, ranks or sizes, or no operation can have it.
    """
    groups: dict[str, int] = {}
    rows = [
        _rows(what, mappings, shapes, groups)
        for what, mappings, shapes in (
            ("operand", rule.operand_mappings, operands),
            ("result", rule.result_mappings, results),
        )
    ]
    sizes = dict(rule.factor_sizes)
    every = [
        (what, i, shape, row)
        for what, part, shapes in (("operand", rows[0], operands), ("result", rows[1], results))
        for i, (row, shape) in enumerate(zip(part, shapes))
    ]
    for _, _, shape, row in every:
        for d, n in zip(row, shape):
            if len(d) == 1:  # where sizes differ, take the least
                sizes[d[0]] = min(n, sizes.get(d[0], n))
    for what, i, shape, row in every:
        for d, n in zip(row, shape):
            if len(d) > 1 and prod([sizes[f] for f in d]) != n:
                raise ValueError(
                    f"{i}th {what} actual size {n} doesn't match the size {prod([sizes[f] for f in d])} "
                    f"derived from the compound factors {d}, of sizes {[sizes[f] for f in d]}"
                )
        flat = [f for d in row for f in d]
        for f in flat:
            if flat.count(f) > 1:
                raise ValueError(
                    f"Sharding rule {i}th {what} has the factor {f} twice, in {row}: a mesh axis can "
                    "divide only one of its axes. Give each axis its own factor."
                )
            if what == "result" and f in rule.reduction_factors:
                raise ValueError(
                    f"Factor {f} in reduction_factors occurs in the {i}th result; factors that are "
                    "summed over occur only in operands."
                )
    kinds = tuple([getattr(rule, kind) for kind in _KINDS])
    return ShapedRule(rows[0], rows[1], tuple(sizes.items()), kinds)


def _rows(what: str, mappings, shapes, groups: dict) -> tuple:
    """The factors of each axis of each array, with groups of leading axes expanded."""
    if len(mappings) != len(shapes):
        raise ValueError(f"Sharding rule has {len(mappings)} {what}s, but the operation has {len(shapes)} {what}s")
    out = []
    for i, (mapping, shape) in enumerate(zip(mappings, shapes)):
        lead: list = []
        own = list(mapping)
        if own and _is_group(own[0]):
            name, own = own[0], own[1:]
            n = len(shape) - len(own)
            if n >= 0 and groups.setdefault(name, n) != n:
                raise ValueError(f"Ellipsis represents different number of leading dimensions {groups[name]} and {n}")
            lead = [(f"{name}.{k}",) for k in range(n)]
        if len(lead) + len(own) != len(shape):
            raise ValueError(
                f"Sharding rule {i}th {what} has rank {len(lead) + len(own)}, but the operation {i}th "
                f"{what} has rank {len(shape)}: {tuple(mapping)} for the shape {tuple(shape)}"
            )
        out.append((*lead, *[d if isinstance(d, tuple) else (d,) for d in own]))
    return tuple(tuple([tuple(d) for d in row]) for row in out)
