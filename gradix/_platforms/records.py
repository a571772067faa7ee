"""The records that tables of platforms are made of: rewrites of operations, and choices of how to compile a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from gradix._base.lazy import lazy_module

SPEED = "speed"  # better asked so; results are the same
# asked plainly, this compiler's results are wrong, or it ends the process
CORRECTNESS = "correctness"


class Rewrite(NamedTuple):
    """One way in which a platform's compiler is better asked for an operation than by its plain `lower` rule.

    Attributes:
        name: for the option `gradix_rewrites`; unique on its platform.
        primitives: the operations that it is for.
        emit: `emit(em, site, *values)`: the value, or the list of values, or NotImplemented where
            it declines. It writes nothing before it has decided.
        evidence: where the gain, or the defect, is shown: a paragraph of the documentation.
        applies: `applies(site)`, whether it is for this operation at all, by what is known of its
            operands and readers (`_stablehlo/uses.py`); None for always.
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
        applies: `applies(facts, cores)`, whether a program with these facts (`_stablehlo/facts.py`)
            is of that kind.
        evidence, kind, seen_on: as of a rewrite.
    """

    name: str
    option: tuple
    applies: Callable
    evidence: str
    kind: str = SPEED
    seen_on: tuple[str, ...] = ("0.10.2",)


class Table:
    """The records of one platform.

    A module of rewrites is imported when a program first has an operation that it is for: it
    imports what it rewrites, which few programs have all of.

    Args:
        modules: by the full name of a module, whose `REWRITES` are its records, the names of the
            primitives these are for; in the order in which they are asked.
        choices: the records of how to compile.
        quick: the compiler's own options by which it takes the least time, by a program's facts.
        one_thread: whether LAPACK should use one thread in a program with these facts.

    Example:
        >>> from gradix.lax import scatter_p, sin_p
        >>> table = Table({"gradix._platforms.cpu.counts": ("scatter",)})
        >>> [r.name for r in table.of(scatter_p)], table.of(sin_p)
        (['counts_by_elements'], [])
    """

    def __init__(
        self,
        modules: Mapping[str, tuple[str, ...]],
        choices: tuple[Choice, ...] = (),
        quick: Callable[[Any], dict] | None = None,
        one_thread: Callable[[Any], bool] | None = None,
    ):
        self.modules, self.choices, self.quick = modules, choices, quick
        self.one_thread = one_thread

    def of(self, primitive) -> list[Rewrite]:
        """The rewrites for a primitive."""
        return [
            r
            for module, names in self.modules.items()
            if primitive.name in names
            for r in lazy_module(module).REWRITES
            if primitive in r.primitives
        ]

    @cached_property
    def rewrites(self) -> tuple[Rewrite, ...]:
        """All of them; every module is imported."""
        return tuple([r for module in self.modules for r in lazy_module(module).REWRITES])
