"""Named axes of the grid of a kernel, whose programs run one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from gradix._core.trace import Trace, state
from gradix._ops.collectives import axis_index_p

# An axis of the grid has one index at all levels of tracing inside of the kernel.
_INNERMOST = 1 << 30


class GridAxis(Trace):
    """A named axis of a grid, in a kernel that is traced: it has a size, and the program's index."""

    level = _INNERMOST

    def __init__(self, name: str, size: Any, index: Any):
        self.name, self.size, self.index = name, size, index

    def process(self, prim, args, params):
        """The index along the axis.

        Raises:
            NotImplementedError: for any other operation, which would need all programs at a time.
        """
        if prim is axis_index_p:
            return self.index
        raise NotImplementedError(
            f"{prim.name} over {self.name!r}, an axis of the grid of a kernel: its programs run one after another. "
            "Combine their values in a reference: o_ref[...] += value."
        )


@contextlib.contextmanager
def named_axes(names: Sequence[str], ids: Sequence, sizes: Sequence) -> Iterator[None]:
    """A context in which `lax.axis_index` and `lax.axis_size` know axes of the grid by name."""
    saved = state.axes
    state.axes = {**saved, **{n: GridAxis(n, s, i) for n, s, i in zip(names, sizes, ids)}}
    try:
        yield
    finally:
        state.axes = saved
