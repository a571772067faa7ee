"""Jitted functions that use mutable arrays, which they take as arguments or capture."""

from __future__ import annotations

from gradix._api.hi_boxes import OuterBox, Part, Restructured, Slot, restructure
from gradix._api.jit.traced import Traced
from gradix._api.refs import given_twice, overlapping
from gradix._control.call import jit_p
from gradix._core.refs import LocalRef, Ref
from gradix._core.trace import Tracer, bind, state
from gradix._runtime.program import Program


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
    has_refs = True

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
        args = [
            *self.consts,
            *[x for x in leaves if not isinstance(x, Ref)],
            *[r.read() for r in refs],
        ]
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


def sources(refs: list[LocalRef], inside: dict[int, Ref]) -> list[tuple]:
    """Where each ref of a traced function comes from, and whether it is written."""
    place = {id(r): i for i, r in inside.items()}
    return [(place.get(id(r.ref), r.ref), r.is_written) for r in refs]
