"""Is resident memory flat over a million calls of a compiled function, and ten thousand programs traced?

    python -m benchmarks.memory [--target gradix] [--calls 1000000] [--traces 10000] [--compiles 1000]

Every phase prints resident memory at checkpoints. The first half of a phase may fill caches; what the second half
adds is growth. The exit status is 1 if a phase grew by more than the allowance.
"""

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.case import Target

CHECKPOINTS = 10


def resident() -> float:
    """Resident memory of this process in MiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def calls(x: Target) -> Callable[[int], object]:
    """One compiled function, called again and again with its last result."""
    f, state = x.api.jit(lambda v: v * 0.5 + 1.0), [x.array(8)]

    def step(i: int) -> None:
        state[0] = f(state[0])

    return step


def tree_calls(x: Target) -> Callable[[int], object]:
    """A compiled function of a tree of arrays."""
    f = x.api.jit(lambda tree: x.api.tree.map(lambda v: v * 0.5 + 1.0, tree))
    state = [{"w": x.array(4, 4), "b": (x.array(4), x.array(2))}]

    def step(i: int) -> None:
        state[0] = f(state[0])

    return step


def traces(x: Target) -> Callable[[int], object]:
    """A new function object each time, with a gradient, a map and a constant of its own."""
    a = x.array(8)

    def step(i: int) -> object:
        loss = lambda v: x.np.sum(x.np.sin(v) * float(i) + v)  # noqa: E731
        return x.api.make_jaxpr(x.api.vmap(x.api.grad(loss), in_axes=None, axis_size=2))(a)

    return step


def signatures(x: Target) -> Callable[[int], object]:
    """One jitted function that meets a new static argument each time."""
    if x.name == "gradix":
        # This case does on purpose what the warning is about.
        x.api.config.update("gradix_retrace_warning", 0)
    a, f = x.array(8), x.api.jit(lambda v, k: x.np.sin(v) * k, static_argnums=1)
    return lambda i: f.trace(a, float(i))


def compiles(x: Target) -> Callable[[int], object]:
    """A new function object each time, compiled and called."""
    a = x.array(8)
    return lambda i: x.api.jit(lambda v: x.np.sin(v) + float(i))(a)


def watch(name: str, step: Callable[[int], object], count: int, allowance: float) -> bool:
    """Run a phase, with resident memory at checkpoints; return whether its second half stayed within the allowance."""
    step(0)
    gc.collect()
    seen = [resident()]
    for part in range(CHECKPOINTS):
        for i in range(part * count // CHECKPOINTS, (part + 1) * count // CHECKPOINTS):
            step(i + 1)
        gc.collect()
        seen.append(resident())
    growth = seen[-1] - seen[CHECKPOINTS // 2]
    flat = growth <= allowance
    per_step = growth * 2**20 / max(count / 2, 1)
    print(f"{count:>9,} {name:<32} MiB {' '.join(f'{m:.1f}' for m in seen)}")
    print(
        f"{'':>9} {'flat' if flat else 'GROWS'}: {growth:+.2f} MiB in the second half, {per_step:+.1f} bytes a step\n"
    )
    return flat


def main() -> int:
    """Run the phases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="Is resident memory flat?")
    parser.add_argument("--target", default="gradix", help="gradix or jax")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--compiles", type=int, default=1_000)
    parser.add_argument("--allowance", type=float, default=3.0, help="MiB a phase may grow by in its second half")
    options = parser.parse_args()
    x = Target(options.target)
    phases = [
        ("calls of a compiled function", calls(x), options.calls),
        ("calls with a tree", tree_calls(x), options.calls // 10),
        ("distinct functions traced", traces(x), options.traces),
        ("static arguments of one function", signatures(x), options.traces),
        ("distinct functions compiled", compiles(x), options.compiles),
    ]
    flat = [watch(name, step, count, options.allowance) for name, step, count in phases if count]
    return 0 if all(flat) else 1


if __name__ == "__main__":
    sys.exit(main())
