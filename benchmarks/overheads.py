"""`python -m benchmarks --overheads`: what looking inside costs, as ratios to the same without it, measured in turns.

Tracing and lowering with names of scopes around every line; lowering with the user's lines; a step of a perceptron with
the lines in its program, with each kind of check, and with numbers inside of functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradix
from benchmarks.checks import training_step
from gradix._api.costs.lines import lined
from gradix._runtime.program import lower
from gradix._transforms.cse import simplify

KINDS = ("index", "user", "div", "nan", "float", "all")
SECONDS = 0.02  # of one turn


class Overhead(NamedTuple):
    """What is compared: a name, and the same work without and with looking inside."""

    name: str
    without: Callable[[], Any]
    looking: Callable[[], Any]


def overheads() -> list[Overhead]:
    """All comparisons."""
    step, args = training_step(False)
    own, _ = training_step(True)
    plain = gradix.jit(step)
    traced = plain.trace(*args)._traced
    traced.compiled()
    program, leaves = simplify(traced.jaxpr), [*traced.consts, *gradix.tree.leaves(args)]
    with_lines = lined(traced).program
    run = lambda: gradix.block_until_ready(plain(*args))

    def scoped(*args):
        with gradix.named_scope("model"), gradix.named_scope("step"):
            return step(*args)

    def with_values():
        with gradix.debug.values():
            gradix.block_until_ready(plain(*args))

    def with_annotation():
        with gradix.profiler.TraceAnnotation("step"):
            run()

    def call(f):
        return lambda: gradix.block_until_ready(f(*args))

    def lower_with(places):
        return lambda: lower(program, "step", donated=(), keep_unused=False, places=places)

    return [
        Overhead(
            "trace, names of scopes", lambda: gradix.make_jaxpr(step)(*args), lambda: gradix.make_jaxpr(scoped)(*args)
        ),
        Overhead("lower, with lines", lower_with(False), lower_with(True)),
        Overhead("run, with lines", lambda: _run(traced.program, leaves), lambda: _run(with_lines, leaves)),
        Overhead("run, names of scopes", run, call(gradix.jit(scoped))),
        Overhead("run, annotated", run, with_annotation),
        *[
            Overhead(
                f"run, check={kind!r}", run, call(gradix.jit(own if kind in ("user", "all") else step, check=kind))
            )
            for kind in KINDS
        ],
        Overhead("run, debug.values()", run, with_values),
    ]


def _run(program, leaves: list):
    return gradix.block_until_ready(program(leaves))


def ratio(case: Overhead, turns: int) -> tuple[float, float, float]:
    """Processor seconds without and with it, each the least over some turns, and their ratio."""
    repeats = []
    for work in (case.without, case.looking):
        work()
        start = time.perf_counter()
        work()
        repeats.append(max(1, int(SECONDS / max(time.perf_counter() - start, 1e-6))))
    least = [np.inf, np.inf]
    for _ in range(turns):
        for k, work in enumerate((case.without, case.looking)):
            start = time.process_time()
            for _ in range(repeats[k]):
                work()
            least[k] = min(least[k], (time.process_time() - start) / repeats[k])
    return least[0], least[1], least[1] / least[0]


def main(only: str, as_markdown: bool, turns: int = 20) -> None:
    """Print the table."""
    print(
        "| what | without | with | ratio |\n|---|--:|--:|--:|"
        if as_markdown
        else f"{'what':28} without     with  ratio"
    )
    for case in overheads():
        if only not in case.name:
            continue
        without, looking, by = ratio(case, turns)
        cells = case.name, f"{1e3 * without:.3f} ms", f"{1e3 * looking:.3f} ms", f"{by:.2f}"
        print(
            f"| {' | '.join(cells)} |" if as_markdown else f"{cells[0]:28} {cells[1]:>10} {cells[2]:>10}  {cells[3]}",
            flush=True,
        )
