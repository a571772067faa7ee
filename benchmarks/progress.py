"""What `gradix.progress` costs a step of 100 µs, in compiled loops and in a loop of Python.

Each loop runs by turns without and with the watch, in processor time, the least of several turns. The number of
elements a step works on is chosen first, so that it takes about 100 µs.

python -m benchmarks.progress
"""

import argparse
import io
import sys
import time
from collections.abc import Callable

import gradix
import gradix.numpy as jnp
from gradix import lax

STEP = 100e-6  # seconds


def loops(steps: int) -> dict[str, Callable]:
    """Functions of the state, compiled, which take so many steps."""

    def step(x):
        return jnp.sin(x) * 0.5 + jnp.cos(x * 1.1) * 0.4

    return {
        "fori_loop": gradix.jit(lambda x: lax.fori_loop(0, steps, lambda i, x: step(x), x)),
        "scan": gradix.jit(
            lambda x: lax.scan(lambda x, _: (step(x), None), x, None, length=steps)[0]
        ),
        "while_loop": gradix.jit(
            lambda x: lax.while_loop(
                lambda c: c[0] < steps, lambda c: (c[0] + 1, step(c[1])), (0, x)
            )[1]
        ),
    }


def seconds(function: Callable) -> float:
    """Of the processor, for one call."""
    start = time.process_time()
    gradix.block_until_ready(function())
    return time.process_time() - start


def _loop_overhead(f: Callable, size: int, steps: int, turns: int) -> tuple[float, float]:
    f(jnp.ones(size))
    each = min([seconds(lambda: f(jnp.ones(size))) for _ in range(3)]) / steps
    x = jnp.ones(max(64, int(size * STEP / each)))
    return _compared(lambda: f(x), lambda: _watched(lambda: f(x)), steps, turns)


def overheads(steps: int, turns: int) -> dict[str, tuple[float, float]]:
    """For each loop the seconds of a step without the watch, and what the watch adds to it."""
    size = 4096
    found = {n: _loop_overhead(f, size, steps, turns) for n, f in loops(steps).items()}
    one, small = gradix.jit(lambda x: jnp.sin(x) * 0.5 + jnp.cos(x * 1.1) * 0.4), jnp.ones(size)
    one(small)

    def by_hand(rows):
        x = small
        for _ in rows:
            x = one(x)
        return x

    found["Python"] = _compared(
        lambda: by_hand(range(steps)),
        lambda: by_hand(gradix.progress(range(steps), file=io.StringIO())),
        steps,
        turns,
    )
    return found


def _watched(call: Callable):
    with gradix.progress(file=io.StringIO()):
        return call()


def _compared(plain: Callable, watched: Callable, steps: int, turns: int) -> tuple[float, float]:
    for f in (plain, watched):
        gradix.block_until_ready(f())
    least = [min(t) for t in zip(*[(seconds(plain), seconds(watched)) for _ in range(turns)])]
    return least[0] / steps, (least[1] - least[0]) / steps


def main() -> int:
    """Print a table for the documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.progress")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    print("| loop | a step, µs | the watch adds, µs | of a step of 100 µs |\n|---|---:|---:|---:|")
    for name, (step, added) in overheads(options.steps, options.turns).items():
        print(f"| {name} | {step * 1e6:.1f} | {added * 1e6:.2f} | {added / STEP:.2%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
