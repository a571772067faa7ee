"""Results of inner programs whose sizes are decided inside, as they leave these programs.

Branches, and functions with rules that users define, are programs of their own. A size that is
decided inside of one means nothing outside. So such a result leaves as a buffer of the greatest
size, the sizes follow the results, and outside they are defined anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradix._api.counted.marks import mark
from gradix._api.counted.masking import INDEX, fitted
from gradix._api.counted.results import sliced
from gradix._core.dimensions.counts import bound_of, counts_in
from gradix._core.dimensions.expression import SymbolicDim, is_count, larger
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr
from gradix._core.trace import NeedsProgram, Tracer, state
from gradix._ops.convert import convert_element_type
from gradix._ops.counted import define, prefix, whole
from gradix._ops.creation import full
from gradix._ops.dimension_values import dim_as_value
from gradix._transforms.counted import defined
from gradix._transforms.staging import eval_jaxpr, stage


class Sealing:
    """Which sizes of results are decided inside of programs, and how these results leave.

    Args:
        programs: programs of which one is run, with results of the same ranks.
        start: the number of results before those that are meant.
        count: the number of those that are meant.

    Attributes:
        places: for each of these results and each of its axes the number of a size, or None.
        bounds: for each of the sizes its greatest value.
    """

    def __init__(self, programs: Sequence[Jaxpr], start: int, count: int):
        self.start, self.count = start, count
        self.places: list[tuple] = []
        self.bounds: list = []
        numbers: dict[tuple, int] = {}
        own = [defined(p) for p in programs]
        for i in range(start, start + count):
            shapes = [p.out_avals[i].shape for p in programs]
            if len(set(map(len, shapes))) > 1:  # an error will tell
                self.places.append((None,) * len(shapes[0]))
                continue
            places: list[int | None] = []
            for dims in zip(*shapes):
                if not _differs(dims, own):
                    places.append(None)
                    continue
                if dims not in numbers:
                    numbers[dims] = len(numbers)
                    self.bounds.append(_largest(dims))
                places.append(numbers[dims])
            self.places.append(tuple(places))

    def __bool__(self) -> bool:
        return bool(self.bounds)

    # -- inside ------------------------------------------------------------------------------------

    def program(self, jaxpr: Jaxpr, consts: list) -> tuple[Jaxpr, list]:
        """The program with sealed results; the sizes follow the results that are meant."""
        n, end = len(jaxpr.constvars), self.start + self.count

        def sealed(*xs):
            outs = eval_jaxpr(jaxpr, xs[:n], *xs[n:])
            return [*outs[: self.start], *self.seal(outs[self.start : end]), *outs[end:]]

        avals = [v.aval for v in (*jaxpr.constvars, *jaxpr.invars)]
        new, more = stage(sealed, avals, jaxpr.debug_info)
        new = new.replace(constvars=[*new.constvars, *new.invars[:n]], invars=new.invars[n:])
        return new, [*more, *consts]

    def closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """As `program`, for a program with its constants."""
        return ClosedJaxpr(*self.program(closed.jaxpr, list(closed.consts)))

    def seal(self, outs: list) -> list:
        """The results as buffers, and then the sizes."""
        sizes: list = [None] * len(self.bounds)
        for x, places in zip(outs, self.places):
            for d, j in zip(x.aval.shape, places):
                if j is not None:
                    sizes[j] = d
        return [*[self._buffer(i, x) for i, x in enumerate(outs)], *map(_value, sizes)]

    def _buffer(self, i: int, x):
        for axis, j in enumerate(self.places[i]):
            if j is not None:
                bound = self.bounds[j]
                x = whole(x, axis, bound) if counts_in(x.aval.shape[axis]) else fitted(x, axis, bound)
        return x

    # -- outside -----------------------------------------------------------------------------------

    def open(self, outs: list) -> list:
        """The results with their sizes, from the buffers and the sizes."""
        sizes = outs[self.count :]
        if not any(isinstance(n, Tracer) for n in sizes):
            dims = [int(n) for n in sizes]
        elif state.stage is None:
            raise NeedsProgram
        else:
            dims = [define(n, bound) for n, bound in zip(sizes, self.bounds)]
        return [self._cut(i, x, dims) for i, x in enumerate(outs[: self.count])]

    def _cut(self, i: int, x, dims: Sequence):
        for axis, j in enumerate(self.places[i]):
            if j is not None:
                d = dims[j]
                x = prefix(x, d, axis) if type(d) is SymbolicDim else sliced(x, d, axis)
        return x

    # -- the rules of users ------------------------------------------------------------------------

    def jvp(self, rule: Callable) -> Callable:
        """A forward-mode rule with sealed results."""

        def sealed(primals, tangents):
            outs, ts = rule(primals, tangents)
            ts = [None if t is None else self._buffer(i, t) for i, t in enumerate(ts)]
            return self.seal(outs), [*ts, *[None] * len(self.bounds)]

        return sealed

    def fwd(self, rule: Callable) -> Callable:
        """The forward part of a reverse-mode rule with sealed results.

        Among the residuals are arrays of the sizes, in the types of which these stay the sizes of
        the other residuals.
        """

        def sealed(*args, **told):
            outs, residuals = rule(*args, **told)
            sizes: dict = {}
            for x, places in zip(outs, self.places):
                sizes.update((j, d) for d, j in zip(x.aval.shape, places) if j is not None)
            marks = [mark(sizes[j]) for j in range(len(self.bounds))]
            return self.seal(outs), [*marks, *residuals]

        return sealed

    def bwd(self, rule: Callable) -> Callable:
        """The backward part of such a rule, the cotangents of which get their sizes back."""
        n = len(self.bounds)

        def opened(residuals, cts):
            dims = [m.aval.shape[0] for m in residuals[:n]]
            cts = cts[: self.count]
            cts = [None if c is None else self._cut(i, c, dims) for i, c in enumerate(cts)]
            return rule(residuals[n:], cts)

        return opened


def _differs(dims: tuple, own: list) -> bool:
    """Whether a size is decided inside of a program, or by values and not the same in all."""
    return any(
        type(d) is SymbolicDim
        and (not counts_in(d).isdisjoint(o) or (is_count(d) and any(d is not other for other in dims)))
        for d, o in zip(dims, own)
    )


def _largest(dims: tuple):
    bound = 0
    for d in dims:
        bound = larger(bound, bound_of(d))
    return bound


def _value(d):
    if type(d) is SymbolicDim:
        return convert_element_type(dim_as_value(d), INDEX)
    return full((), d, INDEX)
