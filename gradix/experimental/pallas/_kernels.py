"""A kernel as a program over arrays, and which of its programs are independent of each other."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradix._core.dimensions.expression import is_known_at_most, typical_size
from gradix._core.jaxpr import ClosedJaxpr
from gradix.experimental.pallas._contents import Contents
from gradix.experimental.pallas._folding import reads, specialised
from gradix.experimental.pallas._windows import Window


class Kernel(NamedTuple):
    """A traced kernel.

    `program` takes captured values `consts`, the indices in the grid, the blocks of `windows`, and
    scratch memory of types `scratch`. It returns the last values of those blocks and scratches that
    the kernel writes; `written` has their places among both.

    The first `num_prefetched` windows are scalars that index maps read; the next are the other
    arguments; the last `num_outputs` are results. `contents` tells what memory holds before it
    is written. `order` is an `Order` of the programs; None for that of the grid.
    """

    program: ClosedJaxpr
    consts: list
    grid: tuple
    windows: list[Window]
    scratch: list
    written: tuple
    num_prefetched: int
    num_outputs: int
    contents: Contents
    order: Any = None

    @property
    def num_leading(self) -> int:
        """The number of inputs of the program before the blocks."""
        return len(self.consts) + len(self.grid)

    def for_ids(self, ids) -> Kernel:
        """The kernel for known indices, ranges of them, or None, along each axis of the grid."""
        first = len(self.consts)
        known = {first + a: i for a, i in enumerate(ids) if i is not None}
        return self._replace(program=specialised(self.program, known)) if known else self

    def is_read(self) -> list[bool]:
        """For each block and scratch, whether what it held before the program ran matters."""
        own = [self.num_leading + w for w in self.written]
        return reads(self.program, own)[self.num_leading :]


class Plan(NamedTuple):
    """How the programs of a kernel are run.

    `mapped` axes of the grid are run side by side, `looped` ones after one another; the others have
    one program. `lanes` tells for each window which dimension each mapped axis divides.
    """

    mapped: tuple
    looped: tuple
    lanes: list[dict[int, int]]


def plan(kernel: Kernel) -> Plan:
    """Map the axes along which programs are shown to be independent, and loop over the others.

    Programs along an axis are independent if each writes blocks of its own, and none reads what an
    earlier one left in scratch memory.
    """
    looped = [a for a, n in enumerate(kernel.grid) if not isinstance(n, int) or n > 1]
    mapped: list[int] = []
    windows = [kernel.windows[w] for w in kernel.written if w < len(kernel.windows)]
    if not kernel.program.effects and windows:
        mapped = [
            a
            for a in looped
            if isinstance(kernel.grid[a], int) and all(_divided(w, a, kernel.grid[a]) is not None for w in windows)
        ]
    mapped = _with_own_scratch(kernel, looped, mapped)
    mapped = _within_memory(kernel, mapped)
    lanes = []
    for window in kernel.windows:
        found = {a: _divided(window, a, kernel.grid[a]) for a in mapped}
        lanes.append({a: d for a, d in found.items() if d is not None})
    return Plan(tuple(mapped), tuple([a for a in looped if a not in mapped]), lanes)


def in_order(kernel: Kernel) -> Plan:
    """The plan that loops over all axes."""
    return Plan((), tuple(range(len(kernel.grid))), [{} for _ in kernel.windows])


def _divided(window: Window, axis: int, n: int) -> int | None:
    """The dimension of which the program at i along an axis gets the i-th part; None if there is none."""
    for d, (dim, form) in enumerate(zip(window.dims, window.forms)):
        if (
            form is not None
            and not form.constant
            and form.factors[axis] * dim.unit == dim.size
            and not any(f for a, f in enumerate(form.factors) if a != axis)
            and is_known_at_most(n * dim.size - dim.extent, 0)
        ):
            return d
    return None


def _with_own_scratch(kernel: Kernel, looped, mapped) -> list[int]:
    """The mapped axes along which no program reads what another one left in scratch memory.

    That is shown for the axes outside of all loops if the first turn of the loops overwrites it.
    """
    first = len(kernel.windows)
    if not mapped or not any(kernel.is_read()[first:]):
        return mapped
    loops = [a for a in looped if a not in mapped]
    outside = [a for a in mapped if not loops or a < loops[0]]
    inner = [a for a in looped if a not in outside]
    if not inner or not outside:
        return []
    ids = [0 if a in inner else None for a in range(len(kernel.grid))]
    return [] if any(kernel.for_ids(ids).is_read()[first:]) else outside


_ROOM = 1 << 28  # elements that programs run side by side may hold at a time


def _within_memory(kernel: Kernel, mapped) -> list[int]:
    """As many mapped axes, from the last, as keep the values of one equation within bounds."""
    most = max([typical_size(v.aval.size) for eqn in kernel.program.eqns for v in eqn.outvars] or [1])
    kept: list[int] = []
    for a in reversed(mapped):
        if most * math.prod([kernel.grid[k] for k in kept]) * kernel.grid[a] > _ROOM:
            break
        kept.insert(0, a)
    return kept


def is_empty(grid) -> bool:
    """Whether a grid is known to have no programs."""
    return any(isinstance(n, int) and n < 1 for n in grid)


def steps(grid, axes) -> Any:
    """The indices of a static grid along some axes, in order: an int32 array (programs, axes)."""
    sizes = [grid[a] for a in axes]
    return np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), -1).astype(np.int32)
