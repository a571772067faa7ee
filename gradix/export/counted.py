"""Results of exported functions whose sizes values decide: buffers in files, and their true sizes in calls."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gradix._api.counted import processing  # noqa: F401  (makes programs with counts possible)
from gradix._api.counted.ragged import Ragged
from gradix._api.counted.results import sliced
from gradix._base.tree import PyTreeDef, tree_flatten
from gradix._core.array import ArrayImpl
from gradix._core.dimensions import parsing
from gradix._core.dimensions.counts import bound_of, counts_in, named_count
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.scope import SymbolicScope
from gradix._core.trace import NeedsProgram, Tracer, state
from gradix._ops.counted import define, prefix
from gradix.export.registration import RAGGED, Registered

_WORD = re.compile(r"[A-Za-z_]\w*")


class CountedResults(NamedTuple):
    """The true shapes of the results of an exported function, which returns buffers, and then the sizes.

    Attributes:
        names: the name of each size.
        bounds: the greatest value of each size, as a text.
        shapes: for each result its shape, as `"(k, 3)"`; empty for one of known sizes.
    """

    names: tuple[str, ...]
    bounds: tuple[str, ...]
    shapes: tuple[str, ...]

    def opened(self, outs: list, values: dict[str, Any]) -> list:
        """The results in their true shapes, from all that the program returns.

        Args:
            outs: the buffers, and then the sizes.
            values: the dimension variables of the call.
        """
        n, dims = len(self.shapes), self._dims()
        sizes = outs[n:]
        known = dict(values)
        is_traced = any(isinstance(v, Tracer) for v in sizes)
        if is_traced and state.stage is None:
            raise NeedsProgram
        for name, bound, v in zip(self.names, dims[1], sizes):
            if is_traced:
                known[name] = define(v, _evaluated(bound, known))
            else:
                known[name] = int(v.host if type(v) is ArrayImpl else v)
        return [_cut(x, axes, known, prefix if is_traced else sliced) for x, axes in zip(outs, dims[0])]

    def _dims(self) -> tuple[list, list]:
        """For each result its axes of such sizes, with these; and the bounds of the sizes."""
        scope = SymbolicScope()
        bounds = []
        for name, text in zip(self.names, self.bounds):
            bounds.append(parsing.dimension(text, scope))
            named_count(name, bounds[-1], scope)
        shapes = [parsing.shape(s, scope, None) if s else () for s in self.shapes]
        return [[(i, d) for i, d in enumerate(s) if counts_in(d)] for s in shapes], bounds

    def check(self, tree: PyTreeDef, avals) -> None:
        """Check that a program that returns arrays of these types, in this tree, can return these results.

        Raises:
            ValueError: it cannot.
        """
        n = len(self.shapes)
        parts = tree.children()
        if (
            len(parts) != 2
            or (parts[0].num_leaves, parts[1].num_leaves) != (n, len(self.names))
            or len(self.bounds) != len(self.names)
        ):
            raise ValueError(f"it has {len(avals)} results for {n} of sizes that values decide")
        if len(set(self.names)) < len(self.names) or not all(map(_WORD.fullmatch, self.names)):
            raise ValueError(f"the sizes {self.names} that values decide are no names")
        for a in avals[n:]:
            if a.ndim or a.dtype.kind != "i":
                raise ValueError(f"a size is of type {a.str_short()}")
        for a, axes in zip(avals, self._dims()[0]):
            if any(i >= a.ndim for i, _ in axes):
                raise ValueError(f"a result of type {a.str_short()} has no axis {axes[-1][0]}")


def _evaluated(d, known: dict):
    return d.evaluate(known) if type(d) is SymbolicDim else d


def _cut(x, axes: list, known: dict, cut):
    for axis, d in axes:
        size = _evaluated(d, known)
        n = x.aval.shape[axis]
        if type(size) is int and type(n) is int and not 0 <= size <= n:
            raise ValueError(
                f"the program returned {size} as the size of an axis of at most {n} elements: its file is wrong."
            )
        x = cut(x, size, axis)
    return x


def described(tree) -> tuple[PyTreeDef, CountedResults]:
    """The tree of all that a program returns, `(results, sizes)`, and the shapes of the results."""
    n, dims = len(tree.shapes), tree.dims
    whole = tree_flatten((tree.tree.unflatten([0] * n), (0,) * len(dims)))[1]
    taken: set[str] = set()
    for d in (d for s in tree.shapes if s is not None for d in s):
        taken |= d.variables() if type(d) is SymbolicDim else set()
    names: dict[str, str] = {}
    for dim in dims:
        i = 0
        while (name := f"k{i or ''}") in names.values() or (name in taken and name != str(dim)):
            i += 1
        names[str(dim)] = name
    text = lambda d: _WORD.sub(lambda m: names.get(m[0], m[0]), str(d))  # noqa: E731
    bounds = tuple([text(bound_of(d)) for d in dims])
    shapes = tuple(["" if s is None else f"({', '.join(map(text, s))})" for s in tree.shapes])
    return whole, CountedResults(tuple(names.values()), bounds, shapes)


def _axes_written(axes) -> bytes:
    return (
        b"" if axes is None else ",".join(map(str, axes)).encode() + b"," if type(axes) is tuple else str(axes).encode()
    )


def _axes_read(aux: bytes) -> int | tuple | None:
    text = bytes(aux).decode()
    if "," in text:
        own = tuple([int(n) for n in text.split(",")[:-1]])
        if list(own) != sorted(set(own)) or not own or not 0 <= own[0] <= own[-1] < 64:
            raise ValueError(f"rows have sizes of their own along the axes {own}")
        return own
    axes = int(text) if text else None
    if axes is not None and not 1 < axes < 64:
        raise ValueError(f"rows have {axes} axes of their length")
    return axes


ragged = Registered(Ragged, RAGGED, _axes_written, _axes_read, None)
