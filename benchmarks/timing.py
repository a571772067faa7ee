"""Measures seconds per call: after a warm-up, long enough for the clock, the least of several batches."""

import gc
import time
from collections.abc import Callable
from typing import Any

from benchmarks.case import Case, Target

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_chosen = [CLOCKS["wall"]]


def choose_clock(name: str) -> None:
    """Measure the time on the clock ("wall"), or the processor time of all threads of this process ("cpu")."""
    _chosen[0] = CLOCKS[name]


def clock() -> float:
    """Seconds on the clock that was chosen."""
    return _chosen[0]()


def measure(case: Case, target: Target, budget: float = 0.25) -> float:
    """Seconds that one call of the case takes on the target; measuring takes about `budget` seconds."""
    make = case.form(target.name)
    if make is None:
        raise ValueError(f"case {case.name!r} has no form on {target.name}")
    call = make(target)
    prepare = case.fresh(target) if case.fresh else None
    if case.alone and prepare:
        return measure_first(call, prepare, target)
    target.block(call(prepare()) if prepare else call())
    gc.collect()
    gc.disable()
    try:
        return measure_prepared(call, prepare, target.block, budget) if prepare else measure_plain(call, target, budget)
    finally:
        gc.enable()


def measure_plain(call: Callable[[], Any], target: Target, budget: float) -> float:
    """The least mean over batches, the batch grown until it fills a tenth of the budget."""
    number, spent = 1, 0.0
    while (spent := batch(call, target.block, number)) < budget / 10 and number < 1 << 20:
        number = max(2 * number, int(number * min(budget / 10 / max(spent, 1e-9), 100)))
    best, end = spent / number, clock() + budget - spent
    while clock() < end:
        best = min(best, batch(call, target.block, number) / number)
    return best


def batch(call: Callable[[], Any], block: Callable[[Any], Any], number: int) -> float:
    """Seconds of `number` calls, up to the moment the last result is there."""
    began = clock()
    for _ in range(number):
        value = call()
    block(value)
    return clock() - began


def measure_first(call: Any, prepare: Any, target: Target) -> float:
    """One call, which is the first of its function; the library has started and compiled something else."""
    target.block(target.api.jit(lambda v: v + 1.0)(target.array(3)))
    argument = prepare()
    began = clock()
    target.block(call(argument))
    return clock() - began


def measure_prepared(call: Any, prepare: Any, block: Any, budget: float, least: int = 3) -> float:
    """The least over single calls, each on an argument of its own made outside the clock."""
    times: list[float] = []
    while len(times) < least or sum(times) < budget and len(times) < 200:
        argument = prepare()
        began = clock()
        block(call(argument))
        times.append(clock() - began)
    return min(times)
