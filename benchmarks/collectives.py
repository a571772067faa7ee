"""Time and bytes of each collective, and the collectives of a training step in four ways.

    python -m benchmarks.collectives                                # over eight devices of one process
    python -m gradix.launch -n 2 -d 4 -m benchmarks.collectives     # over two processes
    python -m benchmarks.collectives --steps                        # what a step of examples/parallel_digits.py
    communicates

The bytes are what one device sends by the best known algorithm (a ring): of an array of n bytes on each of p devices, a
sum 2 n (p - 1) / p, a gather n (p - 1), and so on.
"""

import argparse
import os
import re
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import gradix
from gradix import lax
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P

SIZES = (1 << 10, 1 << 16, 1 << 20)
ROOT = Path(__file__).resolve().parent.parent
_ITEMS = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "f32": 4, "s32": 4, "u32": 4, "f64": 8, "s64": 8}
_LINE = re.compile(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")
_TRIPS = re.compile(r'body=%?([\w.\-]+).*?known_trip_count":\{"n":"(\d+)"')


def collectives(p: int) -> dict:
    """By name: the function of one device's part, of p rows, and the bytes a device sends for n bytes of it."""
    ring = [(i, (i + 1) % p) for i in range(p)]
    return {
        "psum": (lambda x: lax.psum(x, "d"), lambda n: 2 * n * (p - 1) / p),
        "all_gather": (lambda x: lax.all_gather(x, "d", tiled=True), lambda n: n * (p - 1)),
        "psum_scatter": (lambda x: lax.psum_scatter(x, "d", tiled=True), lambda n: n * (p - 1) / p),
        "all_to_all": (lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True), lambda n: n * (p - 1) / p),
        "ppermute": (lambda x: lax.ppermute(x, "d", ring), lambda n: n),
    }


def seconds(f, x, times: int = 30) -> float:
    """The least time of a number of calls that is the same in all processes."""
    gradix.block_until_ready(f(x))
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        gradix.block_until_ready(f(x))
        best = min(best, time.perf_counter() - start)
    return best


def measured(mesh: Mesh, speaks: bool) -> None:
    """Print a line for each collective and size."""
    p = mesh.size
    if speaks:
        print(f"{p} devices in {gradix.process_count()} process(es)\n")
        print(
            "| collective | bytes of a part | bytes sent by a device | µs | MB/s of a device |\n|---|---|---|---|---|"
        )
    for name, (body, sent) in collectives(p).items():
        f = gradix.jit(gradix.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False))
        for size in SIZES:
            x = gradix.device_put(np.ones((p * p, size // 4 // p), np.float32), NamedSharding(mesh, P("d")))
            spent = seconds(f, x)
            if speaks:
                print(
                    f"| `{name}` | {size:,} | {sent(size):,.0f} | {1e6 * spent:,.0f} | "
                    f"{sent(size) / spent / 1e6:,.0f} |"
                )


def communicated(text: str) -> dict[str, tuple[int, int]]:
    """By collective: how often a compiled program runs it, and the bytes of its results; loops count as often as they turn."""
    trips = {body: int(n) for body, n in _TRIPS.findall(text)}
    found: dict[str, tuple[int, int]] = {}
    times = 1
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.\-]+) .*\{$", line)
        if head:
            times = 1 if head[1] else trips.get(head[2], 1)
        hit = _LINE.search(line)
        if hit:
            size = sum(
                int(np.prod([int(d) for d in dims.split(",") if d])) * _ITEMS.get(kind, 4)
                for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", hit[1])
            )
            count, total = found.get(hit[2], (0, 0))
            found[hit[2]] = count + times, total + times * size
    return found


def steps_table(mesh: Mesh) -> None:
    """Print what a step of the example's four ways communicates."""
    sys.path.insert(0, str(ROOT / "examples"))
    import parallel_digits as example

    params = example.start(gradix.random.key(0))
    images, labels = (np.zeros((example.BATCH, example.WIDTH), np.float32), np.zeros(example.BATCH, np.int32))
    print("| way | collectives of a step | bytes of their results, per device |\n|---|---|---|")
    for name, (net, w, b, x) in example.ways(mesh).items():
        places, batch = ({"w": NamedSharding(mesh, w), "b": NamedSharding(mesh, b)}, NamedSharding(mesh, x))
        step = gradix.jit(
            partial(example.step, net),
            in_shardings=(places, batch, batch),
            out_shardings=(places, NamedSharding(mesh, P())),
        )
        found = communicated(step.lower(params, images, labels).compile().as_text())
        rows = ", ".join([f"{count} × {kind}" for kind, (count, _) in sorted(found.items())])
        print(f"| {name} | {rows} | {sum([n for _, n in found.values()]):,} |")


def main() -> None:
    """Measure on the devices of this process, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", action="store_true", help="the collectives of a training step instead")
    options = parser.parse_args()
    if "GRADIX_NUM_PROCESSES" in os.environ:
        gradix.distributed.initialize()
    else:
        gradix.config.update("jax_num_cpu_devices", 8)
    mesh = Mesh(np.array(gradix.devices()), ("d",))
    if options.steps:
        steps_table(mesh)
    else:
        measured(mesh, gradix.process_index() == 0)


if __name__ == "__main__":
    main()
