"""The records of a platform's table: rewrites of operations, and choices of compile options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from gradix._base.lazy import lazy_module

SPEED = "speed"  # the rewrite is quicker, with the same results
# Without the rewrite, this compiler gives wrong results or ends the process.
CORRECTNESS = "correctness"


def _paragraph(name: str) -> str:
    return f"docs/rewrites.md#{name}"


class Rewrite(NamedTuple):
    """A lowering of an operation that serves a platform's compiler better than its `lower` rule.

    Attributes:
        name: the name in the option `gradix_rewrites`, unique on its platform.
        primitives: the operations that it is for.
        emit: `emit(em, site, *values)` returns the value, the list of values, or NotImplemented
            where it declines. It must decline before it writes anything.
        applies: `applies(site)` says whether to try it, by the operands and readers of the
            operation (`_stablehlo/uses.py`); None for always.
        kind: "speed" or "correctness".
        seen_on: the versions of jaxlib on which the gain, or the defect, was seen.
        since: the first version of jaxlib that needs it; empty for all.
        alone: whether it is left out where the compiler divides the operation over several devices,
            as it divides the plain operation better, or cannot divide what the rewrite writes.
        native: whether it writes native kernels. It is left out of programs for several devices,
            which would run each of their steps by itself.
    """

    name: str
    primitives: tuple
    emit: Callable
    applies: Callable | None = None
    kind: str = SPEED
    seen_on: tuple[str, ...] = ("0.10.2",)
    since: tuple[int, ...] = ()
    alone: bool = False
    native: bool = False

    @property
    def evidence(self) -> str:
        """The paragraph of the documentation that says what the compiler does by itself."""
        return _paragraph(self.name)


class Choice(NamedTuple):
    """A compile option that a platform sets for programs of a certain kind.

    Attributes:
        name: the name in the option `gradix_rewrites`, unique on its platform.
        option: the field of `xla.options`, and the value it gets.
        applies: `applies(facts, cores)` says whether a program with these facts
            (`_stablehlo/facts.py`) is of that kind.
        kind, seen_on, since: as for `Rewrite`.
    """

    name: str
    option: tuple
    applies: Callable
    kind: str = SPEED
    seen_on: tuple[str, ...] = ("0.10.2",)
    since: tuple[int, ...] = ()

    @property
    def evidence(self) -> str:
        """The paragraph of the documentation that says what the compiler does by itself."""
        return _paragraph(self.name)


class Table:
    """The records of one platform.

    A module of rewrites is imported when a program first has one of its operations, because it
    imports the primitives that it rewrites, and most programs use few of them.

    Args:
        modules: the names of the rewritten primitives, by the full name of the module that has the
            records as `REWRITES`; in the order in which they are tried.
        choices: the records of compile options.
        quick: a function of a program's facts, for the options that compile it in the least time.
        one_thread: whether LAPACK should use one thread in a program with these facts.
        long: whether a program with these facts may run for a millisecond.

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
        long: Callable[[Any], bool] | None = None,
    ):
        self.modules, self.choices, self.quick = modules, choices, quick
        self.one_thread, self.long = one_thread, long

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
        """All rewrites; this imports every module."""
        return tuple([r for module in self.modules for r in lazy_module(module).REWRITES])
