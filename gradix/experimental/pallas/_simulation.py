"""What a TPU would refuse, in kernels that are traced with `InterpretParams`."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


class _Simulation(threading.local):
    """The parameters of the simulation of a TPU in which this thread traces a kernel, or None; copies on their way."""

    params: Any = None
    pending: list = []


_simulation = _Simulation()


@contextlib.contextmanager
def simulating(params: Any) -> Iterator[None]:
    """A context in which kernels are traced as with those parameters; with None, as those around them."""
    before = _simulation.params, _simulation.pending
    if params is not None:
        _simulation.params, _simulation.pending = params, []
    try:
        yield
    finally:
        _simulation.params, _simulation.pending = before


def parameters() -> Any:
    """The parameters of the simulation of a TPU in which the kernel is traced, or None."""
    return _simulation.params


def pending_copies() -> list:
    """The copies that the kernel has started and not waited for, of which `_races` keeps account."""
    return _simulation.pending


def is_simulated() -> bool:
    """Whether the kernel that is traced simulates a TPU."""
    return _simulation.params is not None


def is_far(memory_space: Any) -> bool:
    """Whether a memory space is, or may be, outside of what a TPU computes on."""
    return str(memory_space) in ("hbm", "any")


def is_padded(memory_space: Any) -> bool:
    """Whether memory of a kernel goes on beyond its shape, to whole tiles."""
    params = _simulation.params
    return params is not None and params.buffer_bounds == "padded" and str(memory_space) == "vmem"


def check_near(ref: Any) -> None:
    """Raise if a reference is read or written that a TPU can only copy from and to.

    Raises:
        ValueError: its memory space is HBM or ANY, in a simulation.
    """
    if _simulation.params is not None and is_far(ref.aval.memory_space):
        raise ValueError(
            f"a kernel reads or writes {ref.aval}, which is in {ref.aval.memory_space}: a TPU computes on VMEM and "
            "SMEM alone. Copy the part to scratch memory with pltpu.sync_copy or pltpu.async_copy, or leave out "
            "memory_space in the BlockSpec."
        )


def check_scoped(memories: Sequence[Any]) -> None:
    """Raise if memory that a TPU cannot allocate in a kernel is asked for.

    Raises:
        ValueError: it is in HBM, in a simulation that does not allow it.
    """
    params = _simulation.params
    if params is None or params.allow_hbm_allocation_in_run_scoped:
        return
    for m in memories:
        if is_far(m.memory_space):
            raise ValueError(
                f"run_scoped cannot allocate {m.inner_aval.str_short()} in {m.memory_space}, as a TPU cannot. Ask for "
                "VMEM or SMEM, make it a result of the kernel, or give "
                "InterpretParams(allow_hbm_allocation_in_run_scoped=True)."
            )


def parallel_axes(params: Any) -> list[int]:
    """The axes of the grid that the parameters of a compiler call parallel."""
    semantics = getattr(params, "dimension_semantics", None) or ()
    return [a for a, s in enumerate(semantics) if "parallel" in str(getattr(s, "value", s)).lower()]


_MOST_PROGRAMS = 1 << 14


def check_revisits(windows: Sequence[Any], grid: Sequence[Any]) -> None:
    """Raise if a program returns to a block of a result that an earlier one, but not the last, wrote.

    A TPU has written the block back by then, and begins it anew. It is checked where indices are
    sums of multiples of the program's, for grids of known sizes.

    Raises:
        ValueError: in a simulation, a block is revisited.
    """
    if _simulation.params is None or not all(isinstance(n, int) for n in grid):
        return
    total = math.prod(grid)
    if not 1 < total <= _MOST_PROGRAMS:
        return
    ids = np.stack(np.unravel_index(np.arange(total), grid), -1)
    for window in windows:
        index = window.numbers(ids)
        if index is None or not index.shape[1]:
            continue
        _, block = np.unique(index, axis=0, return_inverse=True)
        block = block.reshape(-1)
        begins = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
        seen, first = np.unique(block[begins], return_index=True)
        again = np.setdiff1d(np.arange(len(begins)), first)
        if len(again):
            at = begins[again[0]]
            raise ValueError(
                f"program {tuple(ids[at].tolist())} returns to block {tuple(index[at].tolist())} of {window.origin}, "
                "after another block: a TPU has written it back by then. Make the axes of the grid on which the "
                "block does not depend the last ones."
            )
