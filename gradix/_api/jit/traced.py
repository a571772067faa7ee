"""One signature of a jitted function: its trace, and the program compiled at its first call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gradix._api.jit import donation
from gradix._api.jit.stats import TraceLog
from gradix._api.jit.tiers import first_calls_on_host, quick_calls, run_on_host
from gradix._base import config as _config, source
from gradix._base.lazy import lazy_module
from gradix._core.jaxpr import ClosedJaxpr
from gradix._runtime import dispatch
from gradix._runtime.program import Donation, Program, lower
from gradix._transforms.cse import simplify
from gradix._transforms.staging import eval_closed

if TYPE_CHECKING:
    from gradix._api.jit.placed import Placing

_keys = lazy_module("gradix._core.key_flow")
_options = _config.state


class Owner(NamedTuple):
    """What all signatures of one jitted function share."""

    name: str
    keep_unused: bool
    compiler_options: dict | None
    donate_strict: bool  # whether a donation that cannot be used is an error
    log: TraceLog


class Traced:
    """One signature of a jitted function: its jaxpr, captured constants, and tree of results."""

    __slots__ = (
        "jaxpr",
        "consts",
        "out_tree",
        "debug",
        "program",
        "name",
        "donated",
        "keep_unused",
        "options",
        "avals",
        "call",
        "log",
        "strict",
        "warm",
        "on_host",
        "quick",
        "by_quick",
        "owner",
        "run",
        "is_bare",
        "placing",
    )
    # whether the program takes the leaves of the arguments as they are
    takes_leaves = True
    has_refs = False

    def __init__(
        self,
        owner: Owner,
        jaxpr: ClosedJaxpr,
        consts,
        out_tree,
        debug,
        avals,
        *,
        donated=(),
        placing: Callable[[Traced], Placing] | None = None,
    ):
        self.owner, (self.name, self.keep_unused, self.options, self.strict, self.log) = (
            owner,
            owner,
        )
        self.jaxpr, self.consts, self.out_tree, self.debug = jaxpr, consts, out_tree, debug
        self.avals, self.donated = avals, donated
        self.program: Program | None = None
        # the number of calls so far; frequent signatures get generated code
        self.warm = 0
        # the number of calls left to run on the host before it is compiled
        tier = _options.gradix_tier
        self.on_host = first_calls_on_host(jaxpr) if tier == "auto" and not donated else 0
        # the number of calls left for the quickly compiled program
        self.by_quick = quick_calls(self) if tier == "quick" else 0
        self.quick: Program | None = None
        # the programs for arguments on chosen devices, if these may matter
        self.placing = placing(self) if placing is not None else None
        checks = _checks_asked() if self.takes_leaves else []
        self.is_bare = not checks and self.placing is None and type(self) is Traced
        # maps the leaves of the arguments to those of the results
        self.run: Callable[[list], list] = self.run_bare
        if self.placing is not None:
            self.on_host, self.run = 0, self.placing.run
        for check in checks:
            self.run = check(self, self.run)
        # maps the leaves of the arguments to the function's result
        self.call: Callable[[list], Any] = self.run_whole

    def compiled(self) -> Program:
        # the lock makes threads that call at the same time compile once
        with self.log.lock:
            if self.program is None:
                self._compile()
        assert self.program is not None
        return self.program

    def _compile(self) -> None:
        donated = tuple([i + len(self.consts) for i in self.donated])
        self.program = self._made(donated)
        if not donated and not self.consts and self.is_bare and self.out_tree is not None:
            self.call = _caller(self.program.call, self.out_tree)

    def placed(self, placing: Callable[[Traced], Placing]) -> Traced:
        """The same signature, for arguments on any devices."""
        return Traced(
            self.owner,
            self.jaxpr,
            self.consts,
            self.out_tree,
            self.debug,
            self.avals,
            donated=self.donated,
            placing=placing,
        )

    def lowered_program(self) -> ClosedJaxpr:
        """The program that is compiled for calls with concrete arrays."""
        return self.jaxpr

    def _made(self, donated: tuple, is_quick: bool = False) -> Program:
        """Compile the program, either fully or in the shortest time."""
        start = time.perf_counter()
        closed = simplify(self.lowered_program())
        module = lower(closed, self.name, donated=donated, keep_unused=self.keep_unused)
        if donated:
            donation.check(module, self)
        program = Program(
            closed,
            self.name,
            donated=donated,
            compiler_options=self.options,
            is_quick=is_quick,
            lowered=module,
        )
        self.log.compiled(time.perf_counter() - start, program.is_loaded)
        return program

    def run_whole(self, leaves):
        return self.out_tree.unflatten(self.run(leaves))

    def run_bare(self, leaves):
        """Call the compiled program on concrete arrays, without the checks that options ask for."""
        if self.donated:
            return self.run_donating(self.program or self.compiled(), leaves)
        args = self.consts + leaves if self.consts else leaves
        if self.on_host and self.program is None:
            self.on_host -= 1
            return run_on_host(self.jaxpr, args)
        if self.by_quick and self.program is None:
            return self._run_quick(args)
        return (self.program or self.compiled())(args)

    def _run_quick(self, args):
        """Run one of the first calls by a program that was compiled with few optimisations."""
        with self.log.lock:
            program = self.quick
            if program is None:
                program = self.quick = self._made((), is_quick=True)
            self.by_quick -= 1
            if not self.by_quick:
                self.quick = None
        return program(args)

    def run_as(self, program: Program, leaves):
        """Call another compilation of the program on concrete arrays."""
        return program([*self.consts, *leaves])

    def run_donating(self, program: Program, leaves):
        """As `run`; donated arguments whose memory a result reuses lose their values."""
        n = len(self.consts)
        args = [*self.consts, *leaves]
        if program.home is None:
            if self.strict:
                donation.check_held(args, program.donated, self)
            for i in self.donated:
                args[i + n] = donation.own(args[i + n])
        outs = program(args)
        taken = Donation(self.debug, self.name, source.current())
        for i in program.donated:
            # a view keeps its memory alive where XLA could not reuse it
            args[i]._host = args[i]._buffer = None
            args[i]._extra = taken, i - n
        return outs


def _caller(run: Callable[[list], list], out_tree) -> Callable[[list], Any]:
    unflatten = out_tree.unflatten

    def call(leaves):
        return unflatten(run(leaves))

    return call


# -- checks around a run, which options ask for ----------------------------------------------------


def _checks_asked() -> list[Callable]:
    """Functions that put a check around the run of a signature, the innermost first."""
    found = []
    if _options.jax_debug_nans or _options.jax_debug_infs:
        found.append(_with_float_checks)
    if _options.jax_debug_key_reuse:
        found.append(_with_key_checks)
    return found


def _with_float_checks(traced: Traced, run: Callable[[list], list]) -> Callable[[list], list]:
    """Under jax_debug_nans or jax_debug_infs: results with such values raise."""

    def checked(leaves):
        outs = run(leaves)
        check_results(outs, traced.name, traced.jaxpr, [*traced.consts, *leaves])
        return outs

    return checked


def _with_key_checks(traced: Traced, run: Callable[[list], list]) -> Callable[[list], list]:
    """Under jax_debug_key_reuse: no random key may be consumed twice."""
    flow, n = _keys.key_flow(traced.jaxpr), len(traced.consts)
    name = f"jit-compiled function {traced.name}"

    def checked(leaves):
        args = [*traced.consts, *leaves]
        return _keys.call_checked(flow, name, args, lambda: run(leaves), n)

    return checked


def check_results(outs, name: str, jaxpr: ClosedJaxpr, args) -> None:
    """Raise for a NaN or infinity in the results.

    If no argument was donated, the program is run again eagerly, so the error names the operation.
    """
    try:
        dispatch.check_floats(f"the jit-compiled function {name}", outs)
    except FloatingPointError:
        if not any(x.is_deleted() for x in args):
            eval_closed(jaxpr, *args)
        raise
