"""`jit(f, check=...)`: compiled programs that report which of their checks failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._core.effects import CheckEffect, SinkEffect
from gradix._core.jaxpr import ClosedJaxpr

if TYPE_CHECKING:
    from gradix._api.jit.traced import Run, Staged, Traced

_checks = lazy_module("gradix._api.checks.jitted")  # few programs are checked
_options = config.state
NAMES = ("user", "nan", "div", "index", "float", "automatic", "all")
_NAN = {"nan", "float", "automatic", "all"}
_RAISES = CheckEffect("raise")


def names_of_all() -> tuple[str, ...] | None:
    """The kinds of errors that the option `gradix_check` asks for, in functions that ask for none."""
    return names_of(_options.gradix_check) if _options.gradix_check else None


def names_of(check: str) -> tuple[str, ...]:
    """The kinds of errors named in a text, where they are joined with commas."""
    names = tuple([n.strip() for n in check.split(",")]) if isinstance(check, str) else ()
    if not names or any(n not in NAMES for n in names):
        raise ValueError(
            f"check must name kinds of errors, of {', '.join(NAMES)}, joined with commas; got "
            f'{check!r}. Write, for example, check="nan,index".'
        )
    return names


class Checks(NamedTuple):
    """The checks in a program, which returns two more results: the first that failed, and values.

    Attributes:
        sites: the checks.
        plain: the program without them.
        names: the kinds of errors that are looked for; None where only inner functions ask.
    """

    sites: tuple
    plain: ClosedJaxpr
    names: tuple[str, ...] | None

    def around(self, run: Run) -> Run:
        """The run without the results of the checks; it raises if a check failed."""

        def run_checked(args):
            *outs, code, words = run(args)
            _checks.raise_found(code, words, self.sites)
            return outs

        return run_checked

    def may_run_twice(self, traced: Traced) -> bool:
        """Whether the program may be run again, so that a screen tells whether this is needed."""
        effects = [e for e in self.plain.effects if not isinstance(e, (CheckEffect, SinkEffect))]
        return bool(_NAN & set(self.names or ())) and not traced.donated_inputs and not effects


def screened(traced: Traced, run: Run) -> Run:
    """The run with all checks, behind one that tells whether any of them fails.

    The program with just enough checks for this, the screen, is compiled first; the one with all
    checks is run, and compiled, only when a check of the screen fails. A screen for NaN looks at
    sums, and may tell of a failure where there is none: a sum of infinities of both signs is NaN as
    well. One that was wrong once is replaced by a screen that looks at each element.
    """
    assert traced.checks is not None
    _, plain, names = traced.checks
    current: Traced | None = None
    by_sums, has_screen = True, True

    def screen() -> Traced:
        nonlocal current, has_screen
        with traced.owner.log.lock:
            if current is None:
                jaxpr, sites = _checks.with_checks(plain, names, is_screen=True, by_sums=by_sums)
                current, has_screen = traced.with_program(jaxpr), bool(sites)
            return current

    def run_screened(args):
        nonlocal current, by_sums
        look = current or screen()
        if not has_screen:
            return run(args)
        outs = look.base(args)
        if not _checks.has_failed(outs[-2]):
            return outs[:-2]
        outs = run(args)  # raises, unless the screen was wrong
        if by_sums:
            with traced.owner.log.lock:
                current, by_sums = None, False
        return outs

    return run_screened


def with_checks(staged: Staged, names: tuple[str, ...] | None) -> Staged:
    """The trace with the checks of these kinds in its program.

    A program with nothing to check is returned unchanged. If `names` is None, only the checks of
    inner functions that were jitted with `check` apply.
    """
    plain = staged.jaxpr
    if names is None and _RAISES not in plain.effects:
        return staged
    jaxpr, sites = _checks.with_checks(plain, names)
    return staged._replace(jaxpr=jaxpr, checks=Checks(sites, plain, names)) if sites else staged
