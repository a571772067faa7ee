"""What `gradix.progress` costs a step, in compiled loops and in a loop of Python.

Each loop runs by turns without and with the watch, in processor time, the median of the differences of several turns.
What the watch adds is less than a microsecond, and would be lost in the noise of long steps: so the steps here are
short, on vectors of some lengths, and the last column relates it to a step of 100 µs.

python -m benchmarks.progress
"""

import argparse
import functools
import io
import statistics
import sys
import time
from collections.abc import Callable

import gradix
import gradix.numpy as jnp
from gradix import lax

STEP = 100e-6  # seconds
SIZES = 64, 2048, 50_000


def loops(steps: int) -> dict[str, Callable]:
    """Compiled functions of the state that take this many steps."""

    def step(x):
        return x * 0.999 + 0.001

    return {
        "fori_loop": gradix.jit(lambda x: lax.fori_loop(0, steps, lambda i, x: step(x), x)),
        "scan": gradix.jit(lambda x: lax.scan(lambda x, _: (step(x), None), x, None, length=steps)[0]),
        "while_loop": gradix.jit(
            lambda x: lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, step(c[1])), (0, x))[1]
        ),
    }


def seconds(function: Callable) -> float:
    """Seconds of processor time for one call."""
    start = time.process_time()
    gradix.block_until_ready(function())
    return time.process_time() - start


def overheads(steps: int, turns: int) -> dict[str, tuple[float, float]]:
    """For each loop the seconds of a step without the watch, and what the watch adds to it."""
    found = {}
    for size in SIZES:
        x = jnp.ones(size)
        for name, f in loops(steps).items():
            plain = functools.partial(f, x)
            found[f"{name}, {size} numbers"] = _compared(plain, functools.partial(_watched, plain), steps, turns)
    one, small = (gradix.jit(lambda x: jnp.sin(x) * 0.5 + jnp.cos(x * 1.1) * 0.4), jnp.ones(64))
    some = max(1, steps // 10)
    one(small)

    def by_hand(rows):
        x = small
        for _ in rows:
            x = one(x)
        return x

    found["Python"] = _compared(
        lambda: by_hand(range(some)), lambda: by_hand(gradix.progress(range(some), file=io.StringIO())), some, turns
    )
    return found


def _watched(call: Callable):
    with gradix.progress(file=io.StringIO()):
        return call()


def _compared(plain: Callable, watched: Callable, steps: int, turns: int) -> tuple[float, float]:
    for f in (plain, watched):
        gradix.block_until_ready(f())
    pairs = [(seconds(plain), seconds(watched)) for _ in range(turns)]
    added = statistics.median([after - before for before, after in pairs])
    return min(pairs)[0] / steps, added / steps


def main() -> int:
    """Print a table for the documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.progress")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--turns", type=int, default=9)
    options = parser.parse_args()
    print("| loop | a step, µs | the watch adds, µs | of a step of 100 µs |\n|---|---:|---:|---:|")
    for name, (step, added) in overheads(options.steps, options.turns).items():
        print(f"| {name} | {step * 1e6:.2f} | {added * 1e6:.3f} | {added / STEP:.2%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
