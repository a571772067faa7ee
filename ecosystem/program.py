"""Run one program of `ecosystem/programs` on the library that `import jax` gives; print its times and values as JSON."""

import importlib
import json
import resource
import sys
import time

START = time.perf_counter()


def run(name: str) -> dict:
    """Import the program, run its first step and the others; its values are those of the first steps and the last one."""
    module = importlib.import_module(f"ecosystem.programs.{name}")
    imported = time.perf_counter()
    step, state = module.setup()
    state, value = step(state)
    values = [float(value)]
    first = time.perf_counter()
    times = []
    for _ in range(getattr(module, "STEPS", 50)):
        before = time.perf_counter()
        state, value = step(state)
        values.append(float(value))
        times.append(time.perf_counter() - before)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "import_s": imported - START,
        "first_s": first - imported,
        "step_s": sorted(times)[len(times) // 2],
        "memory_mb": memory,
        "values": [*values[:3], values[-1]],
        "tolerance": getattr(module, "TOLERANCE", 2e-3),
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
