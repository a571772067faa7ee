"""Races in kernels that simulate a TPU: what is touched while a copy is on its way, and blocks that cores share.

A copy reads its source and writes its target at any time between its start and the wait for its
semaphore. What the kernel does in between to elements of the target, and what it writes to the source,
may come before or after. A race is reported where both are shown to touch the same elements: with
indices that are known, or are one traced value, or with a whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradix._base import source
from gradix._core.refs import Ref, View
from gradix._core.trace import LEAKED, is_unknown, state
from gradix.experimental.pallas._predicates import is_conditional
from gradix.experimental.pallas._simulation import parallel_axes, parameters, pending_copies
from gradix.experimental.pallas._specs import Slice


class Extent(NamedTuple):
    """What an index takes of one axis, of `length` elements: `size` of them from `start`, which may be traced."""

    start: Any
    size: int
    length: int

    def is_apart(self, other: Extent) -> bool:
        """Whether both are shown to have no element in common."""
        a, b = self.start, other.start
        return isinstance(a, int) and isinstance(b, int) and not (a < b + other.size and b < a + self.size)

    def meets(self, other: Extent) -> bool:
        """Whether both are shown to have an element in common."""
        return self.covers(other) or other.covers(self) or self._are_known(other) and not self.is_apart(other)

    def covers(self, other: Extent) -> bool:
        """Whether all of the other's elements are shown to be this one's."""
        if self.size == self.length or self.start is other.start and self.size >= other.size:
            return True
        return (
            self._are_known(other) and self.start <= other.start <= other.start + other.size <= self.start + self.size
        )

    def _are_known(self, other: Extent) -> bool:
        return isinstance(self.start, int) and isinstance(other.start, int)


class Part(NamedTuple):
    """What a reference and an index take of the memory `root`: all of the extents, or, if not `is_all`, some."""

    root: Ref
    extents: tuple[Extent, ...]
    is_all: bool

    def is_apart(self, other: Part) -> bool:
        """Whether both are shown to have no element in common."""
        return self.root is not other.root or any(a.is_apart(b) for a, b in zip(self.extents, other.extents))

    def meets(self, other: Part) -> bool:
        """Whether both are shown to have an element in common."""
        if self.root is not other.root or any(not e.size for e in (*self.extents, *other.extents)):
            return False
        pairs = list(zip(self.extents, other.extents))
        return (
            (self.is_all and other.is_all and all(a.meets(b) for a, b in pairs))
            or (self.is_all and all(a.covers(b) for a, b in pairs))
            or (other.is_all and all(b.covers(a) for a, b in pairs))
        )


def part_of(ref: Ref, index: Any = ...) -> Part:
    """The part of memory that a reference, which may be a view of another one, has at an index."""
    found, is_all = index, True
    is_whole = index is ... or (isinstance(index, tuple) and not index)
    while (base := getattr(ref, "base", None)) is not None:
        if isinstance(ref, View) or hasattr(ref, "index"):  # of a part of traced size, some elements
            is_all = is_all and is_whole
            found, is_whole = ref.index, False
        else:  # the same elements in another form
            is_all, found, is_whole = is_all and is_whole, ..., True
        ref = base
    extents, is_exact = _extents(found, ref.shape)
    return Part(ref, extents, is_all and is_exact)


def _extents(index: Any, shape: tuple) -> tuple[tuple[Extent, ...], bool]:
    """What an index takes of each axis, and whether that is all that the extents have."""
    whole = tuple([Extent(0, n, n) for n in shape])
    parts = list(index) if isinstance(index, tuple) else [index]
    dots = [i for i, p in enumerate(parts) if p is ...]
    if any(p is None for p in parts) or len(dots) > 1:
        return whole, False
    if dots:
        parts[dots[0] : dots[0] + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    found = [_extent(p, n) for p, n in zip(parts, shape)]
    if any(extent is None for extent in found):
        return whole, False
    is_exact = all(_step(p) == 1 for p in parts)
    return (*[e for e in found if e is not None], *whole[len(found) :]), is_exact


def _step(part) -> int:
    return (part.step or 1) if isinstance(part, slice) else part.stride if isinstance(part, Slice) else 1


def _extent(part, n: int) -> Extent | None:
    if isinstance(part, slice):
        if any(is_unknown(x) for x in (part.start, part.stop, part.step)):
            return None
        places = range(*part.indices(n))
        return Extent(min(places), max(places) + 1 - min(places), n) if places else Extent(0, 0, n)
    if isinstance(part, Slice):
        if part.is_dynamic_size:
            return None
        return Extent(_known(part.start), (part.size - 1) * part.stride + 1 if part.size else 0, n)
    if isinstance(part, (bool, np.bool_, list, tuple)) or bool(getattr(part, "shape", ())):
        return None
    start = _known(part)
    return Extent(start % n if isinstance(start, int) and n else start, 1, n)


def _known(start):
    return int(start) if isinstance(start, (int, np.integer)) else start


class Pending(NamedTuple):
    """A copy that has been started and not been waited for: what it reads or writes, and where it was started."""

    part: Part
    writes: bool
    adds: bool
    semaphore: Part
    is_remote: bool
    stage: Any
    place: str


def _active() -> list[Pending]:
    """The copies on their way, without those that were started in a loop or branch that has ended."""
    pending = pending_copies()
    pending[:] = [p for p in pending if p.stage is None or p.stage.level < LEAKED]
    return pending


def detects() -> bool:
    """Whether the kernel that is traced asks for races to be detected."""
    params = parameters()
    return params is not None and params.detect_races


def started(
    source_ref: Ref, target: Ref, semaphores: Sequence[Ref | None], adds: bool, is_remote: bool = False
) -> None:
    """Note a copy that is started, and raise if it races with one on its way.

    Args:
        semaphores: those that tell when the source has been read, and when the target is written;
            None where the copy is done at once.
    """
    if not detects() or is_conditional():
        return
    parts = part_of(source_ref), part_of(target)
    check(parts[0], False, "a copy reads")
    check(parts[1], True, "a copy writes", adds)
    for part, writes, sem in zip(parts, (False, True), semaphores):
        if sem is not None:
            place = str(source.current())
            own = Pending(part, writes, adds and writes, part_of(sem), is_remote, state.stage, place)
            pending_copies().append(own)


def waited(semaphore: Ref) -> None:
    """Take the copies that a semaphore stands for as done."""
    if not detects():
        return
    pending, own = _active(), part_of(semaphore)
    if any(p.semaphore.root is own.root for p in pending):
        pending[:] = [p for p in pending if p.semaphore.is_apart(own)]
    else:  # in an inner function it may stand for that of any copy; it may also tell what another device has done
        pending[:] = [p for p in pending if p.stage is state.stage and not p.is_remote]


def touched(ref: Ref, index: Any, writes: bool) -> None:
    """Raise if a copy on its way may change what is read, or may meet what is written.

    Raises:
        ValueError: it is a race.
    """
    if detects() and pending_copies() and not is_conditional():
        check(part_of(ref, index), writes, "the kernel writes" if writes else "the kernel reads")


def check(part: Part, writes: bool, what: str, adds: bool = False) -> None:
    """Raise if what is done to a part races with a copy on its way."""
    for p in _active():
        if not (writes or p.writes) or (adds and p.adds) or (p.is_remote and p.stage is not state.stage):
            continue
        if p.part.meets(part):
            done = "writes" if p.writes else "reads"
            raise ValueError(
                f"race: {what} {part.root._name()} at {source.current()}, while the copy started at {p.place} {done} "
                "the same elements. Wait for the copy first: copy.wait()."
            )


_MOST_PROGRAMS = 1 << 14


def check_parallel(windows: Sequence[Any], grid: Sequence[Any], compiler_params: Any) -> None:
    """Raise if programs of parallel axes of a grid, which run on several cores, write one block.

    It is checked where indices of blocks are known, for grids of known sizes.

    Raises:
        ValueError: where races are detected, two such programs write the same block.
    """
    if not detects() or not all(isinstance(n, int) for n in grid):
        return
    parallel = parallel_axes(compiler_params)
    total = math.prod(grid)
    if not parallel or not 1 < total <= _MOST_PROGRAMS:
        return
    ids = np.stack(np.unravel_index(np.arange(total), grid), -1)
    for window in windows:
        index = window.numbers(ids)
        if index is None:
            continue
        _, block = np.unique(index, axis=0, return_inverse=True) if index.shape[1] else (None, np.zeros(total, int))
        first: dict[int, int] = {}
        for at, b in enumerate(block.reshape(-1).tolist()):
            before = first.setdefault(b, at)
            if (ids[before][parallel] != ids[at][parallel]).any():
                raise ValueError(
                    f"race: programs {tuple(ids[before].tolist())} and {tuple(ids[at].tolist())} write block "
                    f"{tuple(index[at].tolist())} of {window.origin}, and may run on two cores, as "
                    f"dimension_semantics={tuple(compiler_params.dimension_semantics)} calls axes {parallel} of the "
                    "grid parallel. Call the axis "
                    'that the block does not depend on "arbitrary".'
                )
