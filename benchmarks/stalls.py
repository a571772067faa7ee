"""The worst of 1,000 calls of small products and factorizations, with several threads configured for BLAS.

A median does not show the few calls that wait for a thread, so the table has three numbers for each case, in
milliseconds: the median, the 99th percentile, and the worst. NumPy's own product is measured too; its worst call
with one thread shows the cost of other programs on the machine.

python -m benchmarks.stalls                         # 1, 2, 8 and 16 threads, as a table for the documentation
python -m benchmarks.stalls --threads 2 --only svd
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
import threadpoolctl

import gradix
import gradix.numpy as jnp

ROWS = 60, 80, 100, 150, 200, 250, 300
CALLS = 1000


def cases(rows: int) -> dict:
    """Functions without arguments, by name; those that begin with "NumPy" are its own."""
    rng = np.random.default_rng(rows)
    plain = (rng.random((rows, rows)) + rows * np.eye(rows)).astype(np.float32)
    a = jnp.asarray(plain)
    product, pinv_slope = a @ a, gradix.grad(lambda a: jnp.linalg.pinv(a).sum())
    gradix.block_until_ready(product)
    found = {"NumPy's product": lambda: plain @ plain, "product": lambda: a @ a}
    if rows in (60, 100, 200):
        la = jnp.linalg
        found |= {
            "solve": lambda: la.solve(a, a[:, :1]),
            "inv": lambda: la.inv(a),
            "eigh": lambda: la.eigh(a),
            "svd": lambda: la.svd(a),
            "pinv": lambda: la.pinv(a),
            "gradient of pinv": lambda: pinv_slope(a),
        }
    return found


def measured(function, calls: int, budget: float) -> list[float]:
    """Median, 99th percentile and worst, in milliseconds, and the number of calls within the budget of seconds."""
    for _ in range(3):
        gradix.block_until_ready(function())
    seconds: list[float] = []
    end = time.perf_counter() + budget
    while len(seconds) < calls and time.perf_counter() < end:
        start = time.perf_counter()
        gradix.block_until_ready(function())
        seconds.append(time.perf_counter() - start)
    low = sorted(seconds)
    n = len(low)
    return [1e3 * low[n // 2], 1e3 * low[min(n - 1, n * 99 // 100)], 1e3 * low[-1], n]


def measure(threads: int, only: str, calls: int, budget: float) -> dict[str, list[float]]:
    """Measure all cases in this process, with this many threads for each BLAS that is loaded."""
    for rows in ROWS[:1]:
        for function in cases(rows).values():  # loads the libraries
            gradix.block_until_ready(function())
    threadpoolctl.threadpool_limits(threads)
    return {
        f"{name}, {rows} rows": measured(function, calls, budget)
        for rows in ROWS
        for name, function in cases(rows).items()
        if only in name
    }


def main() -> int:
    """Run a process for each number of threads, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stalls")
    parser.add_argument("--threads", type=int, action="append", help="may be repeated")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name holds it")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds a case may take")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    numbers = options.threads or [1, 2, 8, 16]
    if options.here:
        print(json.dumps(measure(numbers[0], options.only, options.calls, options.budget)))
        return 0
    found = {}
    for threads in numbers:
        command = [sys.executable, "-m", "benchmarks.stalls", "--here", "--threads", str(threads)]
        command += ["--only", options.only, "--calls", str(options.calls), "--budget", str(options.budget)]
        done = subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
        )
        found[threads] = json.loads(done.stdout)
    print("| median / 99 of 100 / worst, ms | " + " | ".join([f"{n} threads" for n in numbers]) + " |")
    print("|---" * (len(numbers) + 1) + "|")
    for name in found[numbers[0]]:
        print(f"| {name} | " + " | ".join([_cell(found[n][name], options.calls) for n in numbers]) + " |")
    return 0


def _cell(numbers: list[float], calls: int) -> str:
    median, most, worst, n = numbers
    return f"{median:.3f} / {most:.2f} / {worst:.1f}" + (f" ({n:.0f} calls)" if n < calls else "")


if __name__ == "__main__":
    sys.exit(main())
