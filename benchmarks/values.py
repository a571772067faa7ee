"""What `debug.values()` costs programs of a few small arrays, beside the least that Python takes for their operations:

    python -m benchmarks.values [--turns 200]

In such a block each operation runs in Python. The least that this can take is the number of operations that the program
applies to arrays, times what a class takes for one of them that does nothing but hold a NumPy array: without types,
options and transformations.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax, nn, random
from gradix._core import seams

SLICE = 5e-4  # seconds: shorter than the time for which a busy machine lets a process run


def rosenbrock(x):
    """The function of eight numbers whose derivatives are taken."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def oscillator(y, t):
    """A hundred steps of Euler's method with a scalar."""

    def step(carry, _):
        y, t = carry
        return (y - 0.01 * y * jnp.sin(t), t + 0.01), y

    return lax.scan(step, (y, t), None, length=100)


def programs() -> dict[str, tuple[Callable, tuple, bool]]:
    """Functions, their arguments, and whether they compute with scalars."""
    v, w, scalar = jnp.ones(8), jnp.asarray(np.eye(8, dtype="f4") / 2), jnp.float32(1)

    def perceptron(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return (x**2).sum()

    grad, hessian = gradix.grad(rosenbrock), gradix.hessian(rosenbrock)
    return {
        "a branch": (lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), (scalar,), True),
        "a step of Adam": (lambda p, m, g: (p - m / (jnp.sqrt(g * g) + 1e-8), 0.9 * m + 0.1 * g), (v, v, v), False),
        "random numbers": (lambda k: random.normal(k, (8,)).sum(), (random.key(0),), False),
        "a Jacobian, forward": (gradix.jacfwd(lambda x: jnp.tanh(w @ x)), (v,), False),
        "20 steps of a filter": (
            lambda m: lax.scan(lambda m, _: (w @ m + v, m.sum()), m, None, length=20),
            (v,),
            False,
        ),
        "gradient of a perceptron": (gradix.grad(perceptron), ([w] * 3, v), False),
        "gradient of logsumexp": (gradix.grad(lambda w, x: nn.logsumexp(x @ w)), (w, jnp.ones((4, 8))), False),
        "gradient of eight numbers": (grad, (v,), False),
        "the same, mapped": (gradix.vmap(grad), (jnp.ones((16, 8)),), False),
        "a step of Newton": (lambda x: x - jnp.linalg.solve(hessian(x), grad(x)), (v,), False),
        "Hessian of eight numbers": (hessian, (v,), False),
        "fori_loop, 100 scalars": (lambda x: lax.fori_loop(0, 100, lambda i, x: x * 0.99 + i, x), (scalar,), True),
        "while_loop, 100 scalars": (
            lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.01), (0, 1.0)),
            (jnp.int32(100),),
            True,
        ),
        "scan, 100 scalars": (oscillator, (scalar, scalar), True),
        "gradient of that scan": (gradix.grad(lambda y: oscillator(y, 0.0)[1].sum()), (scalar,), True),
    }


def least(work: Callable[[], Any], turns: int) -> float:
    """Processor seconds of a call, the least over short turns."""
    work()
    start = time.perf_counter()
    work()
    repeats = max(1, int(SLICE / max(time.perf_counter() - start, 1e-7)))
    found = np.inf
    for _ in range(turns):
        start = time.process_time()
        for _ in range(repeats):
            work()
        found = min(found, (time.process_time() - start) / repeats)
    return found


class Bare:
    """An array of which nothing is known."""

    __slots__ = ("host",)

    def __init__(self, host):
        self.host = host

    def __mul__(self, other):
        return Bare(np.asarray(np.multiply(self.host, other.host)))


@contextmanager
def counting():
    """Counts the operations that are evaluated on arrays, as the length of a list."""
    found: list = []
    evaluate = seams.evaluate

    def counted(prim, args, params):
        found.append(prim)
        return evaluate(prim, args, params)

    seams.evaluate = counted
    try:
        yield found
    finally:
        seams.evaluate = evaluate


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.values", description="What debug.values() costs.")
    parser.add_argument("--turns", type=int, default=200, help="turns of each program (default 200)")
    turns = parser.parse_args().turns
    scalar, vector = Bare(np.ones((), "f4")), Bare(np.ones(8, "f4"))
    bare = {True: least(lambda: scalar * scalar, turns), False: least(lambda: vector * vector, turns)}
    print(
        "| program | compiled | in `values()` | ratio | operations | the least in Python |\n|---|--:|--:|--:|--:|--:|"
    )
    for name, (function, args, is_scalar) in programs().items():
        jitted = gradix.jit(function)

        def run(jitted=jitted, args=args):
            return gradix.block_until_ready(jitted(*args))

        compiled = least(run, turns)
        with gradix.debug.values():
            shown = least(run, turns)
            with counting() as operations:
                run()
        n = len(operations)
        cells = f"{1e6 * compiled:.1f} µs", f"{1e6 * shown:.0f} µs", f"{shown / compiled:.0f}", f"{n:,}"
        print(f"| {name} | {' | '.join(cells)} | {n * bare[is_scalar] / compiled:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
