"""Mutable arrays that loops, branches and jitted functions take as arguments or capture."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import EllipsisType, NoneType

import numpy as np

from gradix._api.hi_box_arguments import Restructured, restructure
from gradix._api.hi_boxes import OuterBox, Part, Slot
from gradix._api.jit.traced import Traced
from gradix._control.call import jit_p
from gradix._core.refs import AbstractRef, ForkedKind, LocalRef, Ref, View
from gradix._core.trace import Tracer, bind, state
from gradix._runtime.program import Program
from gradix._transforms.staging import give_back


def check_only_read(refs: list[LocalRef], where: str) -> None:
    """Raise if a condition of a loop writes to a mutable array."""
    for local in refs:
        if local.is_written:
            raise ValueError(
                f"{where} writes to {local.ref._name()}, which it may only read. Write to it in the body."
            )


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


class SingleReferences:
    """A context in which refs are handed on as copies, which are written back at its end.

    Writes by other ways would be lost, so it refuses two refs to the same elements, and writes to
    the arrays from inside.
    """

    __slots__ = ("name", "refs", "before")

    def __init__(self, name: str, leaves):
        refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        self.name, self.refs = name, list(refs.values())
        pair = overlapping(self.refs)
        if pair is not None:
            first, second = [f"leaf {list(refs)[i]} of its arguments" for i in pair]
            raise given_twice(name, self.refs[pair[1]], first, second)

    def __enter__(self):
        self.before = [(_whole(r)[0], _whole(r)[0].read()) for r in self.refs]

    def __exit__(self, kind, *_):
        for ref, value in self.before:
            if kind is None and ref.read() is not value:
                ref.write(value)
                raise given_twice(self.name, ref, "among its arguments", "captured by it")


def without_refs(leaves) -> tuple:
    """The leaves that are arrays."""
    return tuple([x for x in leaves if not isinstance(x, Ref)])


def bound_refs(function: Callable, leaves, tree) -> Callable:
    """The function with the refs among its leaves bound; it takes the leaves that are arrays."""

    @functools.wraps(function)
    def bound(*given):
        arrays = iter(given)
        return function(
            *tree.unflatten([x if isinstance(x, Ref) else next(arrays) for x in leaves])
        )

    bound.__signature__ = None  # type: ignore[attr-defined]
    return bound


def inner_refs(leaves, given) -> tuple[list, list[Ref]]:
    """The arguments with a new ref in place of each ref in `leaves`, and these new refs."""
    pairs = [
        (Ref(AbstractRef(g.aval, kind=_forked(x)), g), True) if isinstance(x, Ref) else (g, False)
        for x, g in zip(leaves, given)
    ]
    return [x for x, _ in pairs], [x for x, is_new in pairs if is_new]


def _forked(ref: Ref):
    return ref.aval.kind if isinstance(ref.aval.kind, ForkedKind) else None


def scan_rows_of_refs(scan: Callable, f: Callable, init, rows, tree, **options):
    """A scan over refs: the body gets a ref to a row of each, and writes to that row."""
    refs = [x for x in rows if isinstance(x, Ref)]

    @functools.wraps(f)
    def body(carry, given):
        full, inner = inner_refs(rows, given)
        carry, y = f(carry, tree.unflatten(full))
        return carry, (y, [r.read() for r in inner])

    with SingleReferences("the body of scan", rows):
        carry, (ys, last) = scan(
            body, init, [x.read() if isinstance(x, Ref) else x for x in rows], **options
        )
    give_back(refs, last)
    return carry, ys


# -- jit -------------------------------------------------------------------------------------------


class TracedWithRefs(Traced):
    """One signature of a jitted function that uses mutable arrays.

    Its program takes their values, and returns the values of those that it writes to. `refs` holds
    a pair for each: the number of the leaf if it is an argument, or the captured ref; and whether
    it is written to. `changes` holds the boxes whose states the function changes.
    """

    __slots__ = ("refs", "changes")
    refs: list
    changes: list[Restructured]
    takes_leaves = False  # refs are among them

    def captures_values(self) -> bool:
        """Whether the function captured values above arrays that change."""
        return any(isinstance(s, Slot) for s, _ in self.refs) or any(
            isinstance(c.source, OuterBox) for c in self.changes
        )

    def is_stale(self) -> bool:
        """Whether such a value has arrays of other types than when the function was traced."""
        return any(isinstance(s, Slot) and not s.is_current() for s, _ in self.refs) or any(
            isinstance(c.source, OuterBox) and not c.source.has_state(c.before)
            for c in self.changes
        )

    def run_bare(self, leaves):
        return self.run_as(None, leaves)

    def run_as(self, program: Program | None, leaves):
        refs = [leaves[source] if isinstance(source, int) else source for source, _ in self.refs]
        self._check_distinct(refs)
        args = [*self.consts, *without_refs(leaves), *[r.read() for r in refs]]
        if state.stage is not None or any(isinstance(x, Tracer) for x in args):
            outs = bind(jit_p, args, {"jaxpr": self.jaxpr, "name": self.name})
        else:
            outs = (program or self.program or self.compiled())(args)
        back = [r for r, (_, is_written) in zip(refs, self.refs) if is_written]
        n = len(outs) - len(back)
        parts = {id(r): out for r, out in zip(back, outs[n:]) if type(r) is Part}
        for ref, out in zip(back, outs[n:]):
            if type(ref) is not Part:
                ref.write(out)
        restructure(self.changes, leaves, parts)
        return outs[:n]

    def _check_distinct(self, refs) -> None:
        pair = overlapping(refs)
        if pair is None:
            return
        first, second = pair
        places = sorted(
            [self.refs[i][0] for i in (first, second)],
            key=lambda s: s if isinstance(s, int) else 1 << 30,
        )
        names = [
            f"argument {self.debug.arg_names[s]}" if isinstance(s, int) else "captured by it"
            for s in places
        ]
        raise given_twice(self.name, refs[first], *names)


def check_no_refs(leaves, name: str) -> None:
    """Raise for refs among the arguments of a function that may run in pieces."""
    ref = next((x for x in leaves if isinstance(x, Ref)), None)
    if ref is not None:
        raise NotImplementedError(
            f"{ref._name()} is an argument of {name}, jitted with specialize=True, which may "
            "run in pieces. Take the value as an argument, and return the new one."
        )


def stand_ins(leaves) -> dict[int, Ref]:
    """The refs that a traced function gets in place of those among the leaves, by number."""
    return {i: Ref(x.aval, None) for i, x in enumerate(leaves) if isinstance(x, Ref)}


def all_of(leaves_count: int, given, refs: dict[int, Ref]) -> list:
    """All leaves of the arguments, in order, from the arrays and from `refs`."""
    arrays = iter(given)
    return [refs[i] if i in refs else next(arrays) for i in range(leaves_count)]


def sources(refs: list[LocalRef], inside: dict[int, Ref]) -> list[tuple]:
    """Where each ref of a traced function comes from, and whether it is written."""
    place = {id(r): i for i, r in inside.items()}
    return [(place.get(id(r.ref), r.ref), r.is_written) for r in refs]
