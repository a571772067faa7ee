"""`python -m benchmarks.checks`: what each kind of check of `jit(f, check=...)` adds to a training step, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import nn, random
from gradix.experimental import checkify

SIZES, BATCH = (784, 256, 128, 10), 128
KINDS = ("index", "user", "div", "nan", "float", "automatic", "all")
TURNS, STEPS = 40, 10


def training_step(has_check: bool) -> tuple[Callable, tuple]:
    """A step of a perceptron that picks, divides and, with `has_check`, checks a value itself; and its arguments."""
    keys = random.split(random.key(0), len(SIZES))
    params = [(random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n)) for k, m, n in zip(keys, SIZES, SIZES[1:])]
    x = random.normal(keys[-1], (BATCH, SIZES[0]))
    y = random.randint(keys[-1], (BATCH,), 0, SIZES[-1])

    def loss(params, x, y):
        h = x
        for w, b in params[:-1]:
            h = nn.relu(h @ w + b)
        w, b = params[-1]
        out = nn.log_softmax(h @ w + b)
        if has_check:
            checkify.check(jnp.all(jnp.abs(out) < 1e6), "too large")
        return -(out[jnp.arange(BATCH), y] / jnp.abs(h).mean()).mean()

    def step(params, x, y):
        value, grads = gradix.value_and_grad(loss)(params, x, y)
        grads = gradix.tree.map(lambda g: g / (1e-3 + jnp.sqrt((g * g).sum())), grads)
        return gradix.tree.map(lambda p, g: p - 1e-3 * g, params, grads), value

    return step, (params, x, y)


def seconds(function: Callable, args: tuple) -> np.ndarray:
    """The mean time of some calls: on the clock, and summed over all processors."""
    clock, processors = time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        gradix.block_until_ready(function(*args))
    return np.array([time.perf_counter() - clock, time.process_time() - processors]) / STEPS


def main() -> None:
    step, args = training_step(False)
    plain = gradix.jit(step)
    print("check        without     with  ratio  of processor time")
    for kind in KINDS:
        own, _ = training_step(kind in ("user", "all"))
        checked = gradix.jit(own, check=kind)
        plain(*args), checked(*args)
        turns = np.array([(seconds(plain, args), seconds(checked, args)) for _ in range(TURNS)])
        without, with_ = turns.min(0)
        clock, processors = with_ / without
        print(f"{kind:10s} {1e3 * without[0]:6.3f} ms {1e3 * with_[0]:6.3f} ms   {clock:.2f}  {processors:.2f}")


if __name__ == "__main__":
    main()
