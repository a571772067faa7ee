"""What `debug.values()` costs programs of a few small arrays, beside the least that Python takes for their operations:

    python -m benchmarks.values [--turns 200]

A program that looks at no value runs compiled in such a block, once it has been called often enough. One that looks at
a value runs in Python, operation by operation. The least that this can take is the number of operations that the
program applies to arrays, times what a class takes for one of them that does nothing but hold a NumPy array: without
types, options and transformations.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax, nn, random
from gradix._core import seams

CALLS = 100  # before time is taken, so that what is compiled after some calls is
SLICE = 5e-4  # seconds: shorter than the time for which a busy machine lets a process run


def programs(see: Callable) -> dict[str, tuple[Callable, tuple, bool]]:
    """Functions that hand a value to `see`, their arguments, and whether they compute with scalars."""
    v, w, scalar = jnp.ones(8), jnp.asarray(np.eye(8, dtype="f4") / 2), jnp.float32(1)

    def rosenbrock(x):
        see(x)
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def perceptron(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        see(x)
        return (x**2).sum()

    def adam(p, m, g):
        see(g)
        return p - m / (jnp.sqrt(g * g) + 1e-8), 0.9 * m + 0.1 * g

    def oscillator(y, t):
        """A hundred steps of Euler's method with a scalar."""

        def step(carry, _):
            y, t = carry
            see(y)
            return (y - 0.01 * y * jnp.sin(t), t + 0.01), y

        return lax.scan(step, (y, t), None, length=100)

    def filtered(m):
        def step(m, _):
            see(m)
            return w @ m + v, m.sum()

        return lax.scan(step, m, None, length=20)

    def counted(x):
        def turn(i, x):
            see(x)
            return x * 0.99 + i

        return lax.fori_loop(0, 100, turn, x)

    def waited(n):
        def turn(c):
            see(c[1])
            return c[0] + 1, c[1] * 1.01

        return lax.while_loop(lambda c: c[0] < n, turn, (0, 1.0))

    def branch(x):
        see(x)
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)

    def drawn(k):
        x = random.normal(k, (8,))
        see(x)
        return x.sum()

    def layer(x):
        see(x)
        return jnp.tanh(w @ x)

    def entropy(w, x):
        y = x @ w
        see(y)
        return nn.logsumexp(y)

    grad, hessian = gradix.grad(rosenbrock), gradix.hessian(rosenbrock)
    return {
        "a branch": (branch, (scalar,), True),
        "a step of Adam": (adam, (v, v, v), False),
        "random numbers": (drawn, (random.key(0),), False),
        "a Jacobian, forward": (gradix.jacfwd(layer), (v,), False),
        "20 steps of a filter": (filtered, (v,), False),
        "gradient of a perceptron": (gradix.grad(perceptron), ([w] * 3, v), False),
        "gradient of logsumexp": (gradix.grad(entropy), (w, jnp.ones((4, 8))), False),
        "gradient of eight numbers": (grad, (v,), False),
        "the same, mapped": (gradix.vmap(grad), (jnp.ones((16, 8)),), False),
        "a step of Newton": (lambda x: x - jnp.linalg.solve(hessian(x), grad(x)), (v,), False),
        "Hessian of eight numbers": (hessian, (v,), False),
        "fori_loop, 100 scalars": (counted, (scalar,), True),
        "while_loop, 100 scalars": (waited, (jnp.int32(100),), True),
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


def seconds(function: Callable, args: tuple, turns: int) -> tuple[float, int]:
    """What a call of a jitted function takes, and the number of operations that it evaluates."""
    jitted = gradix.jit(function)

    def run():
        return gradix.block_until_ready(jitted(*args))

    for _ in range(CALLS):
        run()
    took = least(run, turns)
    with counting() as operations:
        run()
    return took, len(operations)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.values", description="What debug.values() costs.")
    parser.add_argument("--turns", type=int, default=200, help="turns of each program (default 200)")
    turns = parser.parse_args().turns
    scalar, vector = Bare(np.ones((), "f4")), Bare(np.ones(8, "f4"))
    bare = {True: least(lambda: scalar * scalar, turns), False: least(lambda: vector * vector, turns)}
    last: deque = deque(maxlen=1)
    print(
        "| program | compiled | in `values()` | ratio | looked at | ratio | operations | the least in Python |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    watched = programs(last.append)
    for name, (function, args, is_scalar) in programs(lambda x: x).items():
        compiled, _ = seconds(function, args, turns)
        with gradix.debug.values():
            unseen, _ = seconds(function, args, turns)
            seen, n = seconds(watched[name][0], args, turns)
        took = [f"{1e6 * t:.0f} µs | {t / compiled:.0f}" for t in (unseen, seen)]
        print(
            f"| {name} | {1e6 * compiled:.1f} µs | {' | '.join(took)} | {n:,} | {n * bare[is_scalar] / compiled:.1f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
