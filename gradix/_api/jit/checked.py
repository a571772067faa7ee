"""`jit(f, check=...)`: compiled programs that report which of their checks failed."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradix._api.jit.traced import Traced
from gradix._base.lazy import lazy_module
from gradix._core.effects import CheckEffect, SinkEffect
from gradix._core.jaxpr import ClosedJaxpr
from gradix._runtime.program import Program
from gradix._transforms.cse import simplify

_checks = lazy_module("gradix._api.checks.jitted")  # few programs are checked
NAMES = ("user", "nan", "div", "index", "float", "automatic", "all")
_NAN = {"nan", "float", "automatic", "all"}
_RAISES = CheckEffect("raise")


def names_of(check: str) -> tuple[str, ...]:
    """The kinds of errors named in a text, where they are joined with commas."""
    names = tuple([n.strip() for n in check.split(",")]) if isinstance(check, str) else ()
    if not names or any(n not in NAMES for n in names):
        raise ValueError(
            f"check must name kinds of errors, of {', '.join(NAMES)}, joined with commas; got "
            f'{check!r}. Write, for example, check="nan,index".'
        )
    return names


class Screen(NamedTuple):
    """A program with just enough checks to tell whether any check fails, and these checks.

    One `by_sums` may tell of a failure where there is none: a sum of infinities of both signs is
    NaN as well.
    """

    jaxpr: ClosedJaxpr
    sites: tuple
    by_sums: bool


class CheckedTraced(Traced):
    """A signature whose program returns two more results: the first failed check, and its values.

    If there is a `screen`, it is compiled first; the program with all checks is compiled only when
    a check of the screen fails.
    """

    __slots__ = ("sites", "plain", "names", "screen", "whole")
    sites: tuple
    plain: ClosedJaxpr  # the program without checks
    names: tuple | None
    screen: Screen | None
    whole: Program | None

    def attach(self, sites: tuple, plain: ClosedJaxpr, names: tuple | None) -> None:
        self.sites, self.plain, self.names, self.whole = sites, plain, names, None
        self.screen = screen_of(plain, names) if self.may_run_twice() else None

    def may_run_twice(self) -> bool:
        effects = [e for e in self.plain.effects if not isinstance(e, (CheckEffect, SinkEffect))]
        return not self.donated and not effects

    def lowered_program(self) -> ClosedJaxpr:
        return self.jaxpr if self.screen is None else self.screen.jaxpr

    def run_bare(self, leaves):
        screen = self.screen
        outs = super().run_bare(leaves)
        if screen is None:
            return self.results(outs)
        *outs, code, _ = outs
        return self._run_with_all_checks(leaves, screen) if _checks.has_failed(code) else outs

    def run_as(self, program, leaves):
        return self.results(super().run_as(program, leaves))

    def results(self, outs) -> list:
        """The function's results, without those of the checks; raises if a check failed."""
        *outs, code, words = outs
        _checks.raise_found(code, words, self.sites)
        return outs

    def _run_with_all_checks(self, leaves, screen: Screen) -> list:
        """Raise the error of the first check that fails; if none does, return the results.

        A screen that was wrong once is replaced by one that looks at each element.
        """
        with self.log.lock:
            if self.whole is None:
                self.whole = Program(
                    simplify(self.jaxpr),
                    self.name,
                    keep_unused=self.keep_unused,
                    compiler_options=self.options,
                )
        outs = self.results(self.whole([*self.consts, *leaves]))
        with self.log.lock:
            if screen.by_sums and self.screen is screen:
                self.screen, self.program = screen_of(self.plain, self.names, by_sums=False), None
        return outs


def screen_of(closed: ClosedJaxpr, names: tuple | None, by_sums: bool = True) -> Screen | None:
    """The program with fewer checks for NaN; None if it has none."""
    if not _NAN & set(names or ()):
        return None
    jaxpr, sites = _checks.with_checks(closed, names, is_screen=True, by_sums=by_sums)
    return Screen(jaxpr, sites, by_sums)


def checked(closed: ClosedJaxpr, names: tuple | None) -> tuple[ClosedJaxpr, tuple]:
    """The program with the two further results, and its checks.

    A program with nothing to check is returned unchanged. If `names` is None, only the checks of
    inner functions that were jitted with `check` apply.
    """
    if names is None and _RAISES not in closed.effects:
        return closed, ()
    return _checks.with_checks(closed, names)


def refuse_refs(refs, name: str) -> None:
    """Raise for mutable arrays: a call that fails would not write their values."""
    if refs:
        raise NotImplementedError(
            f"{name} is jitted with check, or calls a function that is, and uses mutable "
            "arrays: after an error their values would be undefined. Take the values as "
            "arguments and return the new ones."
        )


def refuse_other(**options: Any) -> None:
    """Raise for arguments of `jit` that cannot be combined with `check`."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise ValueError(
                f"jit cannot have both check and {name}={value!r}. Leave out one of them, or use "
                "checkify.checkify(f), whose errors are results."
            )
