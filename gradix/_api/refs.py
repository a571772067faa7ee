"""Mutable arrays that loops, branches and jitted functions take as arguments or capture."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from gradix._api.boundary import Holder, holders
from gradix._core.refs import LocalRef, Ref, View


def check_only_read(refs: list[LocalRef], where: str) -> None:
    """Raise if a condition of a loop writes to a mutable array."""
    for local in refs:
        if local.is_written:
            raise ValueError(f"{where} writes to {local.ref._name()}, which it may only read. Write to it in the body.")


# -- refs among arguments --------------------------------------------------------------------------


def _whole(ref: Ref) -> tuple[Ref, list]:
    """The mutable array that a ref is a part of, and the indices that lead to the part."""
    path: list = []
    while isinstance(ref, View):
        path.append(ref.index)
        ref = ref.base
    return ref, path[::-1]


def _viewed(x, index):
    """A part of an array as a view of it; basic indices alone give one."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(i, (int, slice, EllipsisType, NoneType)) for i in parts):
        raise TypeError
    return x[parts if Ellipsis in parts else (*parts, ...)]


def _overlap(a: Ref, b: Ref) -> bool:
    """Whether two refs may have elements in common; true where that depends on traced indices."""
    (whole, path), (other, to) = _whole(a), _whole(b)
    if whole is not other:
        return False
    if not (path and to):
        return True
    place = np.empty(whole.aval.shape, np.int8)
    try:
        first, second = [functools.reduce(_viewed, way, place) for way in (path, to)]
        return bool(np.shares_memory(first, second, 100))  # type: ignore[arg-type]
    except Exception:  # an index that NumPy does not take, or too hard a question
        return True


def overlapping(refs) -> tuple[int, int] | None:
    """The numbers of the first two refs that may have elements in common."""
    if len(refs) < 2:
        return None
    pairs = [(i, j) for j in range(len(refs)) for i in range(j)]
    return next(((i, j) for i, j in pairs if _overlap(refs[i], refs[j])), None)


def given_twice(name: str, ref: Ref, first: str, second: str) -> ValueError:
    """The error for two refs to the same elements."""
    return ValueError(
        f"only one reference to a mutable array may be passed to a function, but {name} got "
        f"{ref._name()} twice: {first}, and {second}. Writes to one would not be seen "
        "through the other. Pass it once."
    )


class Lent:
    """The leaves of a call that hold arrays: a mapped function gets copies, which are written back.

    Within its context, writes by other ways would be lost. So it refuses two refs to the same
    elements, and writes to the arrays from inside.

    Args:
        name: the name of the function, for errors.
        leaves: all leaves of its arguments.
        which: for each of them whether it is lent if it holds arrays; by default all are.
    """

    __slots__ = ("name", "refs", "count", "rows", "held", "places", "inner", "before")

    def __init__(self, name: str, leaves: list, which: Sequence | None = None):
        refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        self.name, self.refs, self.count = name, list(refs.values()), len(leaves)
        pair = overlapping(self.refs)
        if pair is not None:
            first, second = [f"leaf {list(refs)[i]} of its arguments" for i in pair]
            raise given_twice(name, self.refs[pair[1]], first, second)
        chosen = {i: x for i, x in refs.items() if which is None or which[i]}
        self.rows = {i: (holders[type(x)], x) for i, x in chosen.items()}
        self.held = {i: row.open(x) for i, (row, x) in self.rows.items()}
        # the numbers of the operands that are arrays held by these leaves
        owners = self.spread(range(self.count))
        self.places = [i for i, owner in enumerate(owners) if owner in self.rows]
        self.inner: list[tuple[Holder, Any]] = []

    def open(self, leaves: Sequence) -> list:
        """The leaves, with the arrays that are held in place of their holders."""
        return [y for i, x in enumerate(leaves) for y in self.held.get(i, (x,))]

    def spread(self, entries: Sequence) -> list:
        """As `open`, for something else than arrays: each entry for all arrays of its leaf."""
        return [e for i, e in enumerate(entries) for _ in self.held.get(i, (None,))]

    def inside(self, operands: Sequence) -> list:
        """The leaves that the function gets, for operands in the order of `open`."""
        rest, leaves, self.inner = iter(operands), [], []
        for i in range(self.count):
            if i not in self.rows:
                leaves.append(next(rest))
                continue
            row, x = self.rows[i]
            y = row.inside(x, [next(rest) for _ in self.held[i]])
            leaves.append(y)
            self.inner.append((row, y))
        return leaves

    def last(self) -> list:
        """The arrays that the function left in what it got."""
        return [a for row, y in self.inner for a in row.last(y)]

    def close(self, results: list) -> list:
        """Put the leading results, in the order of `last`, into the holders; returns the others."""
        rest = iter(results)
        for i, (row, x) in self.rows.items():
            row.close(x, [next(rest) for _ in self.held[i]])
        return list(rest)

    def __enter__(self):
        self.before = [(_whole(r)[0], _whole(r)[0].read()) for r in self.refs]

    def __exit__(self, kind, *_):
        for ref, value in self.before:
            if kind is None and ref.read() is not value:
                ref.write(value)
                raise given_twice(self.name, ref, "among its arguments", "captured by it")


def scan_rows_of_refs(scan: Callable, f: Callable, init, rows, tree, **options):
    """A scan over refs: the body gets a ref to a row of each, and writes to that row."""
    lent = Lent("the body of scan", rows)

    @functools.wraps(f)
    def body(carry, given):
        carry, y = f(carry, tree.unflatten(lent.inside(given)))
        return carry, (y, lent.last())

    with lent:
        carry, (ys, last) = scan(body, init, lent.open(rows), **options)
    lent.close(last)
    return carry, ys
