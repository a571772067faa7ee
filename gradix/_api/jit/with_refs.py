"""Jitted functions that use mutable arrays, which they take as arguments or capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradix._api.hi_boxes import OuterBox, Part, Restructured, Slot, restructure
from gradix._api.refs import given_twice, overlapping
from gradix._core.refs import LocalRef, Ref
from gradix._core.trace import state

if TYPE_CHECKING:
    from gradix._api.jit.traced import Run, Traced


class Source(NamedTuple):
    """A mutable array that a program takes the value of: the number of a leaf, or a captured ref."""

    where: Any
    is_written: bool

    def ref(self, leaves) -> Ref:
        return leaves[self.where] if isinstance(self.where, int) else self.where


class Refs:
    """The mutable arrays that a function uses, and the boxes whose states it changes.

    Args:
        found: the refs of the trace.
        inside: the refs that the function got as leaves of its arguments, by number.
        count: the number of leaves of the arguments.
        changes: what the function does to boxes.
    """

    __slots__ = ("sources", "inside", "changes", "operands", "count")

    def __init__(self, found: list[LocalRef], inside: dict[int, Ref], count: int, changes: list[Restructured]):
        place = {id(r): i for i, r in inside.items()}
        self.sources = [Source(place.get(id(r.ref), r.ref), r.is_written) for r in found]
        self.inside, self.changes = inside, changes
        self.operands: list[int | None] = [i for i in range(count) if i not in inside]
        self.count = len(self.operands)  # those that are no values of refs
        self.operands += [s.where if isinstance(s.where, int) else None for s in self.sources]

    def captures_values(self) -> bool:
        """Whether the function captured values above arrays that change."""
        return any(isinstance(s.where, Slot) for s in self.sources) or any(
            isinstance(c.source, OuterBox) for c in self.changes
        )

    def is_stale(self) -> bool:
        """Whether such a value has arrays of other types than when the function was traced."""
        return any(isinstance(s.where, Slot) and not s.where.is_current() for s in self.sources) or any(
            isinstance(c.source, OuterBox) and not c.source.has_state(c.before) for c in self.changes
        )

    def around(self, traced: Traced, run: Run) -> Run:
        """The run with the values of the refs as its last operands; it writes their last values.

        A call that raises writes nothing.
        """

        def run_with_refs(leaves):
            refs = [s.ref(leaves) for s in self.sources]
            self._check_distinct(refs, traced)
            operands = [*[x for x in leaves if not isinstance(x, Ref)], *[r.read() for r in refs]]
            state.stand_ins = tuple([(r, leaves[i]) for i, r in self.inside.items()])
            try:
                outs = run(operands)
            finally:
                state.stand_ins = ()
            back = [r for r, s in zip(refs, self.sources) if s.is_written]
            n = len(outs) - len(back)
            parts = {id(r): out for r, out in zip(back, outs[n:]) if type(r) is Part}
            for ref, out in zip(back, outs[n:]):
                if type(ref) is not Part:
                    ref.write(out)
            restructure(self.changes, leaves, parts)
            return outs[:n]

        return run_with_refs

    def avals(self, types) -> list:
        """The types of the operands, for leaves of these types."""
        return [types[i] for i in self.operands[: self.count]] + [  # type: ignore[index]
            types[s.where].inner_aval if isinstance(s.where, int) else s.where.read().aval for s in self.sources
        ]

    def _check_distinct(self, refs: list[Ref], traced: Traced) -> None:
        pair = overlapping(refs)
        if pair is None:
            return
        first, second = pair
        places = sorted([self.sources[i].where for i in pair], key=lambda s: s if isinstance(s, int) else 1 << 30)
        names = [f"argument {traced.debug.arg_names[s]}" if isinstance(s, int) else "captured by it" for s in places]
        raise given_twice(traced.name, refs[first], *names)
