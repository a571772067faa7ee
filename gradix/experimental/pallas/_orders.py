"""The order of programs in a simulation of a TPU: parallel axes in any order, on several cores, one after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradix import debug, ensure_compile_time_eval, random
from gradix._base.errors import ConcretizationTypeError
from gradix._core.trace import is_unknown
from gradix.experimental.pallas._kernels import Kernel
from gradix.experimental.pallas._simulation import parallel_axes
from gradix.experimental.pallas._windows import Window


class Order(NamedTuple):
    """In which order programs run, where it is not that of the grid, and which of them share memory.

    - `tables`: for each core the indices of its programs, int32 arrays (programs, axes). A core begins with scratch
      memory, and with arguments, of its own.
    - `num_own`: the number of these arguments.
    - `aliases`: from the place of an argument's window to that of the result whose memory it is.
    - `recorder`: called with a token, the indices and the core of each program before it runs; None for none.
    """

    tables: tuple
    num_own: int
    aliases: dict[int, int]
    recorder: Callable[..., Any] | None

    def record(self, ids: Sequence[Any], core: int) -> None:
        """Tell the recorder of a program."""
        recorder = self.recorder
        if recorder is not None:
            debug.callback(lambda *at: recorder(np.int32(0), at, np.int32(core)), *ids, ordered=True)


def order_of(kernel: Kernel, num_own: int, aliases: dict[int, int], simulated: Any, params: Any) -> Order | None:
    """The order that the parameters of a simulation, and those of a compiler for TPUs, ask for.

    Args:
        kernel: the kernel.
        num_own: the number of its arguments, without references that it captured.
        aliases: from the number of an argument to that of the result that has its memory.
        simulated: the `InterpretParams`, or None.
        params: the `CompilerParams`, or None.

    Returns:
        The order; None where it is that of the grid, and programs that are independent may run side by side.

    Raises:
        ConcretizationTypeError: the size of a parallel axis is traced.
        ValueError: programs are to be divided or permuted, and a parallel axis comes after one that is not.
    """
    if simulated is None:
        return None
    grid, windows, first = kernel.grid, kernel.windows, len(kernel.windows) - kernel.num_outputs
    parallel = [a for a in parallel_axes(params) if a < len(grid)]
    for a in parallel:
        if is_unknown(grid[a]):
            raise ConcretizationTypeError(
                grid[a],
                f"Axis {a} of the grid is called parallel by dimension_semantics, and a simulation divides it among "
                'cores: its size must be known. Call the axis "arbitrary".',
            )
    is_ordered = parallel and (simulated.random_seed is not None or simulated.num_cores_or_threads > 1)
    if is_ordered and parallel != list(range(len(parallel))):
        raise ValueError(
            f"dimension_semantics={tuple(params.dimension_semantics)} calls axes {parallel} of the grid parallel: they "
            "must be the first ones, as a TPU divides the outer programs among its cores. Move them, or call them "
            '"arbitrary".'
        )
    if not all(isinstance(n, int) for n in grid):
        return None
    shared = {
        i: first + o
        for i, o in aliases.items()
        if i not in kernel.written and not _are_alike(windows[i], windows[first + o])
    }
    if not is_ordered and not shared and simulated.grid_point_recorder is None:
        return None
    return Order(_tables(grid, len(parallel), simulated), num_own, shared, simulated.grid_point_recorder)


def _tables(grid: Sequence[int], num_parallel: int, simulated: Any) -> tuple[np.ndarray, ...]:
    """The indices of the programs of each core: whole turns of the parallel axes, as many for each core."""
    places = [np.arange(n) for n in grid]
    if simulated.random_seed is not None:
        with ensure_compile_time_eval():
            key = random.key(simulated.random_seed)
            for a in range(num_parallel):
                key, own = random.split(key)
                places[a] = np.asarray(random.permutation(own, grid[a]))
    total, turns = math.prod(grid), math.prod(grid[:num_parallel])
    numbers = np.stack(np.unravel_index(np.arange(total), grid), -1)
    table = np.stack([p[numbers[:, a]] for a, p in enumerate(places)], -1).astype(np.int32)
    each = -(-turns // simulated.num_cores_or_threads) * (total // max(turns, 1))
    return tuple([table[i : i + each] for i in range(0, total, max(each, 1))])


def _are_alike(window: Window, other: Window) -> bool:
    """Whether each program is shown to have the same block of both."""
    alike = window.dims == other.dims and window.forms == other.forms
    return alike and all(f is not None for f in window.forms)
