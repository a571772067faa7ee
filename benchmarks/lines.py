"""Does the profile name the right lines? Three programs, each profiled as a whole and measured line by line apart.

    python -m benchmarks.lines [--turns 5]

A training step of the convolutional network of `examples/digits.py`, one of a transformer of four layers, and the
simulation of particles of `examples/lennard_jones.py`. Apart from the profile, the equations of each line are compiled
as a program of their own, which is timed on the values that the whole gives it, and whose results are counted in bytes.
Where the compiler
fuses lines, that is not what they cost within the whole: a further column has how much less time the whole takes where
the values that a line makes are given to it. The first table of a program has the costliest lines of the profile with
their ranks in both orders, the second one the lines of the peak.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import nn, random
from gradix._api.costs.recompute import inlined, nbytes_of
from gradix.extend import core

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
LAYERS, HEADS, WIDTH, LENGTH, BATCH, LETTERS = 4, 4, 128, 64, 8, 96

Line = tuple[str, int]


class Apart(NamedTuple):
    """A line measured on its own: the seconds of its equations, and the bytes of what they make."""

    seconds: float
    nbytes: float


# -- programs --------------------------------------------------------------------------------------------------------


def digits() -> tuple[Callable, tuple]:
    """A training step of the convolutional network, and its arguments."""
    sys.path.insert(0, str(EXAMPLES))
    import digits as example

    key = random.key(0)
    learner = example.learners(key)[1]
    images = np.random.default_rng(0).random((example.BATCH, 8, 8), dtype=np.float32)
    labels = np.arange(example.BATCH, dtype=np.int32) % 10
    return learner.step, (np.float32(0.1), key, images, labels, learner.state)


def particles(cells: int = 4, steps: int = 50) -> tuple[Callable, tuple]:
    """The simulation of a fluid of atoms, and its arguments."""
    sys.path.insert(0, str(EXAMPLES))
    import lennard_jones as example

    fluid, box = example.crystal(random.key(0), cells)
    atom = example.Atom(jnp.float32(1), jnp.float32(1))
    return lambda fluid, atom: example.simulate(fluid, atom, box, steps), (fluid, atom)


def transformer(layers: int = LAYERS, width: int = WIDTH, batch: int = BATCH) -> tuple[Callable, tuple]:
    """The loss of a transformer that reads letters with its gradient, and its arguments."""
    keys = iter(random.split(random.key(0), 4 * layers + 2))
    draw = lambda *shape: random.normal(next(keys), shape) / np.sqrt(shape[0])
    blocks = [
        (draw(width, 3 * width), draw(width, width), draw(width, 4 * width), draw(4 * width, width))
        for _ in range(layers)
    ]
    params = draw(LETTERS, width), blocks, draw(width, LETTERS)
    letters = np.random.default_rng(0).integers(0, LETTERS, (batch, LENGTH + 1)).astype(np.int32)
    return gradix.value_and_grad(_loss), (params, letters)


def _attend(x, qkv, out):
    q, k, v = jnp.split((x @ qkv).reshape(*x.shape[:2], HEADS, -1), 3, axis=-1)
    weights = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    weights = jnp.where(jnp.tri(x.shape[1], dtype=bool), weights, -np.inf)
    weights = nn.softmax(weights)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return mixed.reshape(x.shape) @ out


def _loss(params, letters):
    embedding, blocks, head = params
    x = embedding[letters[:, :-1]]
    for qkv, out, up, down in blocks:
        x = x + _attend(nn.standardize(x), qkv, out)
        h = nn.standardize(x) @ up
        h = nn.gelu(h)
        x = x + h @ down
    scores = nn.log_softmax(nn.standardize(x) @ head)
    return -jnp.take_along_axis(scores, letters[:, 1:, None], -1).mean()


PROGRAMS: dict[str, Callable[[], tuple[Callable, tuple]]] = {
    "digits.py": digits,
    "transformer": transformer,
    "particles": particles,
}


# -- lines apart -----------------------------------------------------------------------------------------------------


def apart(function: Callable, args: tuple, turns: int) -> dict[Line, Apart]:
    """Each line of a function measured on its own; a line in a loop counts as often as the loop runs."""
    closed = inlined(gradix.make_jaxpr(function)(*args))
    found: dict[Line, Apart] = {}
    for line, eqns, read, values, calls in _pieces(closed, [jnp.asarray(x) for x in gradix.tree.leaves(args)], 1):
        program, given = _program(eqns, read, values)
        seconds, before = _least_time(gradix.jit(program), given, turns), found.get(line, Apart(0, 0))
        nbytes = sum(nbytes_of(v) for eqn in eqns for v in eqn.outvars)
        found[line] = Apart(before.seconds + calls * seconds, before.nbytes + nbytes)
    return found


def _pieces(closed, args: list, calls: int) -> Iterator[tuple[Line, list, set, dict, int]]:
    """The equations of each line, what others read, the values of the program, and how often they run."""
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args]))
    lines: dict[Line, list] = {}
    for eqn in jaxpr.eqns:
        given = [_value(v, values) for v in eqn.invars]
        if eqn.primitive.name == "scan":
            yield from _of_scan(eqn, given, calls)
        elif eqn.source is not None:
            lines.setdefault((eqn.source.file, eqn.source.line), []).append(eqn)
        outs = eqn.primitive.bind(*given, **eqn.params)
        values.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
    for line, eqns in lines.items():
        read = {v for eqn in jaxpr.eqns if eqn not in eqns for v in eqn.invars if not isinstance(v, core.Literal)}
        yield line, eqns, read.union(v for v in jaxpr.outvars if not isinstance(v, core.Literal)), values, calls


def _of_scan(eqn, given: list, calls: int) -> Iterator[tuple[Line, list, set, dict, int]]:
    """The pieces of a loop's body, on the values of its first step."""
    held, length = eqn.params["num_consts"] + eqn.params["num_carry"], eqn.params["length"]
    yield from _pieces(inlined(eqn.params["jaxpr"]), given[:held] + [xs[0] for xs in given[held:]], calls * length)


def _value(v, values: dict) -> Any:
    return v.val if isinstance(v, core.Literal) else values[v]


def _program(eqns: list, read: set, values: dict) -> tuple[Callable, list]:
    """The function of some equations alone, whose results are what others read, and the values that it takes."""
    made = {v for eqn in eqns for v in eqn.outvars}
    taken = [
        v
        for v in dict.fromkeys(v for eqn in eqns for v in eqn.invars if not isinstance(v, core.Literal))
        if v not in made
    ]
    outs = [v for v in dict.fromkeys(v for eqn in eqns for v in eqn.outvars) if v in read]
    closed = core.ClosedJaxpr(core.Jaxpr((), taken, outs, eqns), ())
    return lambda *xs: core.jaxpr_as_fun(closed)(*xs), [values[v] for v in taken]


def _least_time(function: Callable, args: list, turns: int) -> float:
    """The least seconds of a call, over some turns of as many calls as take a millisecond."""
    gradix.block_until_ready(function(*args))
    start = time.perf_counter()
    gradix.block_until_ready(function(*args))
    repeats = max(1, int(2e-3 / max(time.perf_counter() - start, 1e-6)))
    least = np.inf
    for _ in range(turns):
        start = time.perf_counter()
        for _ in range(repeats):
            out = function(*args)
        gradix.block_until_ready(out)
        least = min(least, (time.perf_counter() - start) / repeats)
    return float(least)


# -- programs without a line -----------------------------------------------------------------------------------------


def without(function: Callable, args: tuple, lines: list[Line], turns: int) -> dict[Line, float]:
    """How much less time the whole takes where what a line makes is given to it, for each line; none for loops.

    What the line reads is computed all the same, as results.
    """
    closed = inlined(gradix.make_jaxpr(function)(*args))
    jaxpr, leaves = closed.jaxpr, [jnp.asarray(x) for x in gradix.tree.leaves(args)]
    if any(eqn.primitive.name in ("scan", "while") for eqn in jaxpr.eqns):
        return {}
    every = jaxpr.replace(outvars=[v for eqn in jaxpr.eqns for v in eqn.outvars])
    values = dict(zip(every.outvars, core.jaxpr_as_fun(core.ClosedJaxpr(every, closed.consts))(*leaves)))
    programs = {None: (gradix.jit(core.jaxpr_as_fun(closed)), leaves)}
    for line in lines:
        own = [eqn for eqn in jaxpr.eqns if eqn.source is not None and (eqn.source.file, eqn.source.line) == line]
        rest = [eqn for eqn in jaxpr.eqns if eqn not in own]
        made = [v for eqn in own for v in eqn.outvars]
        read = [v for eqn in own for v in eqn.invars if not isinstance(v, core.Literal) and v not in made]
        small = jaxpr.replace(invars=[*jaxpr.invars, *made], eqns=rest, outvars=[*jaxpr.outvars, *dict.fromkeys(read)])
        small = core.ClosedJaxpr(small, closed.consts)
        programs[line] = gradix.jit(core.jaxpr_as_fun(small)), [*leaves, *[values[v] for v in made]]
    least = dict.fromkeys(programs, np.inf)
    for _ in range(turns):
        for line, (program, given) in programs.items():
            least[line] = min(least[line], _least_time(program, given, 1))
    return {line: float(least[None] - least[line]) for line in lines}


# -- the comparison --------------------------------------------------------------------------------------------------


def profiled(function: Callable, args: tuple, turns: int) -> dict[Line, float]:
    """The seconds of each line in the profile, forward and backward together: the least over some profiles."""
    step, found = gradix.jit(function), {}
    for _ in range(turns):
        seconds: dict[Line, float] = {}
        for row in gradix.profile(step)(*args).lines:
            if row.file:
                seconds[row.file, row.line] = seconds.get((row.file, row.line), 0.0) + row.seconds
        found = {line: min(s, found.get(line, np.inf)) for line, s in seconds.items()}
    return found


def at_peak(function: Callable, args: tuple) -> dict[Line, int]:
    """The bytes of temporaries and results of each line at the moment of the most."""
    found: dict[Line, int] = {}
    for row in gradix.jit(function).memory(*args).rows:
        if row.file:
            found[row.file, row.line] = found.get((row.file, row.line), 0) + row.bytes
    return found


def ranked(values: dict[Line, float]) -> list[Line]:
    """The lines, the largest first."""
    return sorted(values, key=lambda line: -values[line])


def _text(line: Line) -> str:
    text = Path(line[0]).read_text(encoding="utf-8").splitlines()[line[1] - 1].strip()
    return f"{os.path.basename(line[0])}:{line[1]}  {text[:60]}"


def main() -> int:
    """Print both tables of each program."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lines", description="Does the profile name the right lines?"
    )
    parser.add_argument("--turns", type=int, default=5, help="profiles, and turns of each line (default 5)")
    options = parser.parse_args()
    for name, make in PROGRAMS.items():
        function, args = make()
        alone, whole = apart(function, args, options.turns), profiled(function, args, options.turns)
        by_time = ranked({line: a.seconds for line, a in alone.items()})
        costly = ranked(whole)[:5]
        less = without(function, args, costly, options.turns)
        print(f"\n{name}: time\n  profiled  rank     apart  rank     less by  line")
        for k, line in enumerate(costly, 1):
            seconds, rank = alone.get(line, Apart(0, 0)).seconds, by_time.index(line) + 1 if line in by_time else 0
            gain = f"{1e3 * less[line]:7.3f} ms" if line in less else ""
            print(f"{1e3 * whole[line]:7.3f} ms  {k:4}  {1e3 * seconds:7.3f} ms  {rank:4}  {gain:>10}  {_text(line)}")
        peak, by_bytes = at_peak(function, args), ranked({line: a.nbytes for line, a in alone.items()})
        print(f"\n{name}: memory at the peak\n   at peak  rank  made apart  rank  line")
        for k, line in enumerate(ranked(peak)[:3], 1):
            nbytes, rank = alone.get(line, Apart(0, 0)).nbytes, by_bytes.index(line) + 1 if line in by_bytes else 0
            print(f"{peak[line] / 2**20:6.2f} MiB  {k:4}  {nbytes / 2**20:6.2f} MiB  {rank:4}  {_text(line)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
