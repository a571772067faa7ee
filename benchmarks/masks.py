"""Time products with boolean masks of finite numbers: with the rewrite that keeps NaN, without it, and on JAX.

python -m benchmarks.masks [--size 30000] [--rounds 60]

The table shows processor time in µs, the tenth percentile of rounds in which the three run in random order.
"""

import argparse
import importlib.util
import time
from typing import Any

import numpy as np

import gradix
from benchmarks.case import target

WORK = 4_000_000  # elements of one round


def programs(api: Any, n: Any) -> dict[str, Any]:
    """Functions of two vectors, by name."""
    return {
        "relu, x·(x > 0)": lambda x, y: (x > 0) * x,
        "sum of y·(x > 0)": lambda x, y: ((x > 0) * y).sum(),
        "sum of (x·y + 1)·(x > 0)": lambda x, y: ((x > 0) * (x * y + 1)).sum(),
        "gradient through where": api.grad(lambda x, y: n.where(x > 0, x * y, 0.0).sum()),
        "gradient through a mask": api.grad(lambda x, y: ((x > 0) * x * y).sum()),
        "dropout": lambda x, y: (y < 0.8) * x / 0.8,
        "gradient through dropout": api.grad(lambda x, y: n.sum(n.tanh(x) * (y < 0.8) / 0.8)),
        "masked mean of squares": lambda x, y: (((x - y) ** 2) * (x > 0)).sum() / (x > 0).sum(),
        "e^x": lambda x, y: n.exp(-x * x),
        "e^x with one mask": lambda x, y: n.exp(-x * x) * (x > 0),
        "e^x with two masks": lambda x, y: n.exp(-x * x) * (x > 0) * (y > 0),
    }


def compiled(library: Any, name: str, x, y) -> tuple[Any, tuple]:
    """A program and its arguments on a library."""
    args = library.np.asarray(x), library.np.asarray(y)
    return library.api.jit(programs(library.api, library.np)[name]).lower(*args).compile(), args


def variants(name: str, x, y) -> dict[str, tuple[Any, tuple]]:
    """The program with the rewrite and without it, and on JAX where it is installed."""
    found, own = {}, target("gradix")
    for label, selection in {"on": "all", "off": "all,-products_with_masks,-inner_products_with_masks"}.items():
        gradix.config.update("gradix_rewrites", selection)
        found[label] = compiled(own, name, x, y)
    gradix.config.update("gradix_rewrites", "all")
    if importlib.util.find_spec("jax"):
        found["JAX"] = compiled(target("jax"), name, x, y)
    return found


def seconds(call: Any, args: tuple, number: int) -> float:
    began = time.process_time()
    for _ in range(number):
        result = call(*args)
    result.block_until_ready()
    return (time.process_time() - began) / number


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=30_000, help="elements of a vector")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, options.size)).astype(np.float32)
    print("| program | on | off | JAX | on to off | on to JAX |\n|---|--:|--:|--:|--:|--:|")
    for name in programs(gradix, target("gradix").np):
        found = variants(name, x, y)
        taken: dict[str, list[float]] = {label: [] for label in found}
        for _ in range(options.rounds):
            for label in rng.permutation(list(found)):
                taken[label].append(seconds(*found[label], max(1, WORK // options.size)))
        least = {label: 1e6 * float(np.quantile(times, 0.1)) for label, times in taken.items()}
        peer = least.get("JAX", float("nan"))
        print(
            f"| {name} | {least['on']:.1f} | {least['off']:.1f} | {peer:.1f} "
            f"| {least['on'] / least['off']:.2f} | {least['on'] / peer:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
