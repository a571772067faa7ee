"""Compiled programs whose instructions know the user's lines: compiled anew, when somebody looks."""

from __future__ import annotations

import linecache
import weakref
from typing import NamedTuple

from gradix._api.jit.traced import Traced
from gradix._runtime.hlo.module import Instruction, Module
from gradix._runtime.program import Program, lower


class Lined(NamedTuple):
    """A compiled program with lines: XLA's description of it, and the program."""

    module: Module
    program: Program


_lined: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def lined(traced: Traced, avals: tuple = ()) -> Lined:
    """The program of a signature, compiled with the user's lines.

    Its instructions have the names that they have in the program without lines.

    Args:
        traced: the signature of a jitted function.
        avals: the types of the operands with their places, where these matter.
    """
    known = _lined.setdefault(traced.jaxpr, {})
    found = known.get(avals)
    if found is None:
        found = known[avals] = _made(traced, avals)
    return found


def _made(traced: Traced, avals: tuple) -> Lined:
    donated = traced.donated_inputs
    closed = traced.simplified()
    placing = traced.placing
    home, ins, outs, orders, module = None, (), (), None, None
    if placing is not None:
        home, ins, outs, orders = placing.plan(avals)
        module = placing.lowered(avals, places=True)
    if module is None:
        module = lower(closed, traced.name, donated=donated, keep_unused=traced.keep_unused, places=True)
    every = [*[c.aval for c in traced.consts], *avals] if home is not None else ()
    program = Program(
        closed,
        traced.name,
        home,
        every,
        ins,
        outs,
        orders=orders if home is not None else None,
        donated=donated,
        keep_unused=traced.keep_unused,
        compiler_options=traced.compiler_options,
        lowered=module,
    )
    return Lined(described(program), program)


def described(program: Program) -> Module:
    """XLA's description of a compiled program."""
    return Module(program.executable.description())


def source(file: str, line: int) -> str:
    """The text of a line of the user's program; empty if it cannot be read."""
    return linecache.getline(file, line).strip()


def phase(instruction: Instruction) -> str:
    """The part of a derivative that an instruction belongs to.

    "forward" and "backward" are those of a reverse derivative, "again" what is computed again in
    the backward pass; empty for what is of no derivative.
    """
    scope = instruction.scope
    if "rematted_computation" in scope:
        return "again"
    if "transpose(" in scope:
        return "backward"
    return "forward" if "jvp(" in scope else ""


def shown_bytes(n: float) -> str:
    """A number of bytes in the unit that suits it, such as "4.0 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"
