"""The records that tables of platforms are made of: rewrites of operations, and choices of how to compile a program."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

SPEED = "speed"                     # better asked so; results are the same
CORRECTNESS = "correctness"         # asked plainly, this compiler's results are wrong, or it ends the process


class Rewrite(NamedTuple):
    """One way in which a platform's compiler is better asked for an operation than by its plain `lower` rule.

    Attributes:
        name: for the option `gradix_rewrites`; unique on its platform.
        primitives: the operations that it is for.
        emit: `emit(em, site, *values)`: the value, or the list of values, or NotImplemented where it declines. It writes
            nothing before it has decided.
        evidence: where the gain, or the defect, is shown: a paragraph of the documentation.
        applies: `applies(site)`, whether it is for this operation at all, by what is known of its operands and readers
            (`_stablehlo/uses.py`); None for always.
        kind: "speed" or "correctness".
        seen_on: the versions of jaxlib on which that was so.
    """

    name: str
    primitives: tuple
    emit: Callable
    evidence: str
    applies: Callable | None = None
    kind: str = SPEED
    seen_on: tuple[str, ...] = ("0.10.2",)


class Choice(NamedTuple):
    """One thing that a platform's compiler is asked for besides its defaults, for programs of a kind.

    Attributes:
        name: for the option `gradix_rewrites`; unique on its platform.
        option: the field of `xla.options`, and the value it gets.
        applies: `applies(facts, cores)`, whether a program with these facts (`_stablehlo/facts.py`) is of that kind.
        evidence, kind, seen_on: as of a rewrite.
    """

    name: str
    option: tuple
    applies: Callable
    evidence: str
    kind: str = SPEED
    seen_on: tuple[str, ...] = ("0.10.2",)
