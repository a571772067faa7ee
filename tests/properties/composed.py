"""Random programs under random stacks of transformations, with the answers of JAX to them.

    python -m tests.properties.composed        # writes composed.jsonl anew; needs jax, and an hour

A line holds a program, its transformations, and five numbers that depend on all elements of the result.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np

from .programs import Program, build
from .transforms import Transformations

ANSWERS = Path(__file__).with_name("composed.jsonl")
COUNT = 2400
NAMES = ("jit", "checkpoint", "vmap", "vmap over the last axis", "scan", "fori_loop", "cond", "custom_jvp")
SLOPES = ("jvp", "linearize", "grad")


def draw(seed: int) -> tuple[Program, tuple[str, ...]]:
    """The program and the transformations of a seed: up to four, at most two of them derivatives."""
    rng = random.Random(seed)
    program = build(lambda options: options[rng.randrange(len(options))], 8)
    names = [rng.choice(NAMES) for _ in range(rng.randrange(4))]
    for _ in range(rng.randrange(3)):
        names.insert(rng.randrange(len(names) + 1), rng.choice(SLOPES))
    return program, tuple(names[:4])


def digest(result) -> list[float]:
    """Shape-free numbers that tell two results apart: a mean, three weighted ones, the largest."""
    flat = np.asarray(result, np.float64).ravel()
    if not flat.size:
        return []
    weights = [np.cos((k + 1.0) * np.arange(flat.size) + k) for k in range(3)]
    return [flat.mean(), *[float(w @ flat) / flat.size for w in weights], np.abs(flat).max()]


def line(program: Program, names, result) -> dict:
    steps = [[name, *operands] for name, operands in program.steps]
    return {
        "shapes": program.shapes,
        "steps": steps,
        "stack": names,
        "shape": np.shape(result),
        "answer": digest(result),
    }


def load() -> list[dict]:
    return [json.loads(text) for text in ANSWERS.read_text(encoding="utf-8").splitlines()]


def program_of(entry: dict) -> Program:
    steps = tuple([(name, tuple(operands)) for name, *operands in entry["steps"]])
    return Program(tuple([tuple(s) for s in entry["shapes"]]), steps)


def main() -> None:
    """Ask JAX; programs whose results overflow are passed over."""
    import jax  # the only use of it here: not at the top, for the tests that read the answers do without

    jax.config.update("jax_enable_x64", True)
    peers = Transformations(jax)
    seed, kept = 0, 0
    with ANSWERS.open("w", encoding="utf-8") as out:
        while kept < COUNT:
            program, names = draw(seed)
            seed += 1
            result = np.asarray(jax.jit(peers.stacked(names, 0, program.on(jax)))(*program.inputs()))
            if np.isfinite(result).all() and np.abs(result).max(initial=0) < 1e6:
                out.write(json.dumps(line(program, names, result), separators=(",", ":")) + "\n")
                kept += 1
                if kept % 50 == 0:
                    jax.clear_caches()
                    print(kept, "of", seed, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
