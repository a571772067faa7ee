"""Programs that compute their checks: two further results, the state, tell which failed first.

The state is an int32 `code`, which is 0 while nothing failed and otherwise 1 + the place of the
check in a list, and a row of `words`, the values that the check met. An inner program starts with
an empty state. The outer program takes over its state unless it has an error already.
"""

from __future__ import annotations

import itertools

import numpy as np

from gradix._api.checks.coverage import covered, is_looked_at
from gradix._api.checks.errors import NaNError, OOBError
from gradix._api.checks.rules import BEFORE, has_doubtful_sum, has_plain_sum, nan_of
from gradix._control.check import Site, check_p
from gradix._control.kernel_call import pallas_call_p
from gradix._core.array import as_array
from gradix._core.dtypes import INEXACT
from gradix._core.effects import CheckEffect
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, fold, jaxprs_in_params
from gradix._core.trace import bind, state
from gradix._ops.arithmetic import add
from gradix._ops.basis import broadcast_in_dim
from gradix._ops.comparison import eq, ne
from gradix._ops.joining import concatenate
from gradix._ops.select import select
from gradix._transforms.staging import stage_closed

_INDEX_WORDS = 2


def zero_code():
    return as_array(np.int32(0))


class Found:
    """The first error so far in the program being written."""

    __slots__ = ("checker", "code", "words", "summed")

    def __init__(self, checker: Checker, code=None, words=None):
        self.checker, self.code, self.words = checker, code, words
        # the values of which only a sum is checked, after the last equation
        self.summed: list = []

    def add(self, bad, words, site: Site) -> None:
        """Add a check of this program."""
        self.checker.sites.append(site)
        self.take(select(bad, as_array(np.int32(len(self.checker.sites))), zero_code()), words)

    def take(self, code, words) -> None:
        """Take over another state, unless there is an error already."""
        if words is not None:
            words = self.checker.filled(words)
        if self.code is None:
            self.code, self.words = code, words
            return
        none = eq(self.code, zero_code())
        if words is not None:
            own = self.checker.no_words() if self.words is None else self.words
            taken = broadcast_in_dim(none & ne(code, zero_code()), own.aval.shape, ())
            self.words = select(taken, words, own)
        self.code = select(none, code, self.code)

    def close(self) -> None:
        """Take note of the check of all sums together."""
        if self.summed:
            bad = has_doubtful_sum(self.summed)
            self.add(bad, None, Site(NaNError, lambda words: NaNError("nan in a sum"), None))

    def state(self) -> list:
        return [
            zero_code() if self.code is None else self.code,
            self.checker.no_words() if self.words is None else self.words,
        ]


class Checker:
    """Writes programs with checks of some kinds; `sites` lists all checks written.

    Args:
        errors: the kinds of errors looked for.
        closed: the whole program, from which the largest number of words of a check is found.
        kinds: which of the user's checks become part of the state: "check", "debug", "raise".
        is_screen: leave out checks for NaN that others imply. The check that fails is then not
            always the first.
        by_sums: check only sums for NaN; infinities of both signs make these NaN, too.
    """

    def __init__(
        self,
        errors: frozenset,
        closed: ClosedJaxpr,
        kinds=("check", "debug", "raise"),
        *,
        is_screen: bool = False,
        by_sums: bool = False,
    ):
        self.errors, self.kinds = errors, kinds
        self.is_screen = is_screen and NaNError in errors
        self.by_sums = by_sums
        self.sites: list[Site] = []
        self.width = max(_INDEX_WORDS if OOBError in errors else 0, _widest(closed.jaxpr))
        self._written: dict = {}

    def no_words(self):
        return as_array(np.zeros(self.width, np.uint32))

    def filled(self, words):
        """The words, filled up with zeros to the length of all rows."""
        missing = self.width - words.aval.shape[-1]
        return words if not missing else concatenate([words, as_array(np.zeros(missing, np.uint32))], 0)

    def program(self, closed: ClosedJaxpr) -> ClosedJaxpr | None:
        """The program with the state as two further results; None if it has nothing to check."""
        key = id(closed.jaxpr)
        if key not in self._written:
            seen: list = []

            def function(*args):
                found = Found(self)
                outs = self.run(closed, args, found)
                found.close()
                seen.append(found.code)
                return [*outs, *found.state()]

            written = stage_closed(function, closed.in_avals, closed.jaxpr.debug_info)
            # `run` may have left out checks of the user's, so the program written counts as well
            has_checks = seen[0] is not None or any(type(e) is CheckEffect for e in closed.effects)
            self._written[key] = (written if has_checks else closed), has_checks
        written, checks = self._written[key]
        return written if checks else None

    def run(self, closed: ClosedJaxpr, args, found: Found) -> list:
        """The program's results, in the current trace; what its checks find goes to `found`."""
        jaxpr = closed.jaxpr
        before, left_out = state.place, covered(jaxpr) if self.is_screen else ()
        places = itertools.count()

        def apply(eqn, operands):
            state.place = eqn.source
            return self.equation(eqn, operands, found, next(places) not in left_out)

        try:
            return fold(jaxpr, closed.consts, args, apply)
        finally:
            state.place = before

    def equation(self, eqn, args, found: Found, looks_for_nan: bool = True) -> list:
        prim = eqn.primitive
        rule = PROGRAM_RULES.get(prim)
        if rule is not None:
            outs = rule(self, eqn, args, found)
            if outs is not None:
                return outs
        kind, check = BEFORE.get(prim, (None, None))
        if kind in self.errors:
            self._note(check(eqn, args), kind, eqn, found)
        out = bind(prim, args, eqn.params)
        outs = out if prim.multiple_results else [out]
        if looks_for_nan and NaNError in self.errors and rule is None:
            if self.by_sums and is_looked_at(eqn) and all(has_plain_sum(o) for o in outs):
                found.summed += [o for o in outs if o.aval.dtype in INEXACT]
                return outs
            self._note(nan_of(eqn, outs), NaNError, eqn, found)
        return outs

    def _note(self, finding, kind, eqn, found: Found) -> None:
        if finding is not None:
            place, make = eqn.source, finding.exception
            found.add(finding.bad, finding.words, Site(kind, lambda words: make(words, place), place))


# primitive that holds programs, or `check` -> its rule
PROGRAM_RULES: dict = {}


def _user_check(checker: Checker, eqn, args, found: Found):
    sites, kind = eqn.params["sites"], eqn.params["kind"]
    if kind not in checker.kinds:
        return None
    if kind != "raise" and not any(s.category in checker.errors for s in sites):
        return []
    code, words = args
    if checker.sites:
        code = select(ne(code, zero_code()), add(code, as_array(np.int32(len(checker.sites)))), zero_code())
    checker.sites += sites
    found.take(code, words)
    return []


PROGRAM_RULES[check_p] = _user_check


def _widest(jaxpr: Jaxpr) -> int:
    widths = [0]
    for eqn in jaxpr.eqns:
        if eqn.primitive is check_p:
            widths.append(eqn.invars[1].aval.shape[-1])
        inner = [_widest(program) for program in jaxprs_in_params(eqn.params)]
        if eqn.primitive is pallas_call_p:  # errors of kernels name a place in the grid, too
            inner = [max(_INDEX_WORDS, *inner) + len(eqn.params["grid"])]
        widths += inner
    return max(widths)
