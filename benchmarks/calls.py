"""How much of the time of a call is XLA's own, for programs whose devices communicate.

    python -m benchmarks.calls

Programs run on eight CPU devices in one process; JAX has its own process. "XLA alone" starts the compiled program on
its buffers and waits for it, and does nothing else. Times are the least of many calls, in microseconds; rounds alternate.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module

import numpy as np

ROUNDS, CALLS = 5, 300


def programs(api) -> dict[str, Callable]:
    """By name: a compiled function and its argument, over eight devices."""
    s = api.sharding
    mesh = s.Mesh(np.array(api.devices()).reshape(4, 2), ("x", "y"))
    both = s.NamedSharding(mesh, s.PartitionSpec("x", "y"))
    a = api.device_put(np.ones((64, 64), np.float32), both)
    rows = api.device_put(
        np.ones((8, 16), np.float32), s.NamedSharding(s.Mesh(mesh.devices.ravel(), ("i",)), s.PartitionSpec("i"))
    )
    mapped = api.shard_map(
        lambda v: v / api.lax.psum(v, "i"),
        mesh=rows.sharding.mesh,
        in_specs=s.PartitionSpec("i"),
        out_specs=s.PartitionSpec("i"),
    )
    return {"sum of all": (api.jit(lambda v: v.sum()), a), "psum of rows": (api.jit(mapped), rows)}


def least(call: Callable[[], None]) -> float:
    """Microseconds of the quickest of many calls."""
    best = float("inf")
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def alone(f, x) -> Callable[[], None]:
    """A function that runs the program of a call and nothing else."""
    from gradix._runtime.program import to_device

    loaded, buffers = f.lower(x).compile().runtime_executable(), [to_device(x)]

    def run():
        loaded.execute_sharded(buffers, with_tokens=True).consume_token().block_until_ready()

    return run


def measured(library: str) -> dict[str, list[float]]:
    """By program: the time of a call, and for Gradix of XLA alone."""
    api = import_module(library)
    api.config.update("jax_num_cpu_devices", 8)
    out = {}
    for name, (f, x) in programs(api).items():
        f(x).block_until_ready()
        out[name] = [least(lambda f=f, x=x: f(x).block_until_ready())]
        if library == "gradix":
            out[name].append(least(alone(f, x)))
    return out


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measured(sys.argv[1])))
        return
    found: dict[str, list[list[float]]] = {}
    for _ in range(ROUNDS):
        row: dict[str, list[float]] = {}
        for library in ("gradix", "jax"):
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.calls", library], capture_output=True, text=True, check=True
            )
            for name, times in json.loads(done.stdout.splitlines()[-1]).items():
                row.setdefault(name, []).extend(times)
        for name, times in row.items():
            found.setdefault(name, []).append(times)
    print("| program | XLA alone | Gradix | JAX | XLA alone / JAX |\n|---|--:|--:|--:|--:|")
    for name, rows in found.items():
        call, bare, peer = np.min(rows, axis=0)
        print(f"| {name} | {bare:.0f} | {call:.0f} | {peer:.0f} | {bare / peer:.2f} |")


if __name__ == "__main__":
    main()
