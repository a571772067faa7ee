"""One signature of a jitted function: its trace, and the program compiled at its first call.

How a signature is run is put together when it is made, from the inside out: the program of the
first device or of the arguments' places; checks that options ask for; the values of mutable arrays.
Each is a function that takes a run, which is a function from lists of arrays to lists of arrays,
and returns another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradix._api.jit import donation, tiers
from gradix._api.jit.stats import TraceLog
from gradix._base import config as _config
from gradix._base.lazy import lazy_module
from gradix._control.call import jit_p
from gradix._core.jaxpr import ClosedJaxpr, DebugInfo, axis_names
from gradix._core.trace import Tracer, bind, state
from gradix._runtime import dispatch
from gradix._runtime.program import Program, lower
from gradix._transforms.cse import simplify
from gradix._transforms.staging import eval_closed

if TYPE_CHECKING:
    from gradix._api.jit.checked import Checks
    from gradix._api.jit.placed import Placing
    from gradix._api.jit.with_refs import Refs

_blame = lazy_module("gradix._api.blame")
_captured = lazy_module("gradix._api.jit.captured")
_checked = lazy_module("gradix._api.jit.checked")
_keys = lazy_module("gradix._core.key_flow")
_options = _config.state
Run = Callable[[list], list]
_PUT_TOGETHER = ("unplaced", "base", "run", "call")


class Owner(NamedTuple):
    """What all signatures of one jitted function share."""

    name: str
    keep_unused: bool
    compiler_options: dict | None
    donate_strict: bool  # whether a donation that cannot be used is an error
    log: TraceLog
    inline: bool = False


class Staged(NamedTuple):
    """What tracing a function for arguments of some types gave.

    Attributes:
        jaxpr: the program. Its operands are the constants, the leaves of the arguments that are
            arrays, and the values of mutable arrays. It returns the results of the function, the
            last values of mutable arrays that are written to, and those of its checks.
        consts: the values of its constants.
        out_tree: the structure of the function's result.
        debug: the names of the function and of its arguments.
        avals: the types of the leaves of the arguments.
        donated: the numbers of the leaves that are donated.
        checks: the checks in the program, if there are any.
        refs: the mutable arrays that the function uses, if there are any.
    """

    jaxpr: ClosedJaxpr
    consts: list
    out_tree: Any
    debug: DebugInfo
    avals: Sequence
    donated: tuple[int, ...] = ()
    checks: Checks | None = None
    refs: Refs | None = None


class Traced:
    """One signature of a jitted function.

    Args:
        owner: what it shares with the other signatures of the function.
        staged: what tracing gave.
        placing: makes the programs for arguments on chosen devices, where these may matter.
        is_quick: whether the first calls run by a program that is compiled in the shortest time.

    Attributes:
        operands: for each operand after the constants, the number of the leaf that gives it, or
            None for the value of a captured mutable array.
        donated_inputs: the numbers of the program's inputs that are donated.
        program: the program of the first device, if it is compiled.
        written: the constants that are written into programs, by their numbers, once that is decided.
        base: maps the operands, except the constants, to the results of the program.
        run: maps the leaves of the arguments to those of the function's results.
        call: maps the leaves of the arguments to the function's result.
        is_direct: whether `run` is the mere call of a program, whose constants are not traced.
        is_bare: whether this program is that of the first device, whatever the arguments are.
        asked: the checks around a run that options asked for when the function was traced.
        is_shared: whether other functions may find it.
        reads_mesh: whether the function read over which mesh its arguments are divided.
    """

    __slots__ = (
        *Owner._fields[:3],
        *Staged._fields,
        "owner",
        "staged",
        "operands",
        "donated_inputs",
        "placing",
        "is_quick",
        "program",
        "written",
        "warm",
        "unplaced",
        "base",
        "run",
        "call",
        "is_direct",
        "is_bare",
        "asked",
        "is_shared",
        "reads_mesh",
        "__weakref__",
    )
    name: str
    jaxpr: ClosedJaxpr
    consts: list
    out_tree: Any
    debug: DebugInfo
    avals: Sequence
    donated: tuple[int, ...]
    checks: Checks | None
    refs: Refs | None
    unplaced: Run
    base: Run
    run: Run
    call: Callable[[list], Any]

    def __init__(
        self, owner: Owner, staged: Staged, placing: Callable[[Traced], Placing] | None = None, is_quick: bool = False
    ):
        self.owner, self.staged, self.is_quick = owner, staged, is_quick
        self.name, self.keep_unused, self.compiler_options = owner[:3]
        (self.jaxpr, self.consts, self.out_tree, self.debug, self.avals) = staged[:5]
        self.donated, self.checks, self.refs = staged[5:]
        n, refs = len(self.consts), self.refs
        self.operands: Sequence[int | None] = range(len(self.avals)) if refs is None else refs.operands
        # the value of a mutable array may be in use elsewhere
        given = self.operands if refs is None else self.operands[: refs.count]
        self.donated_inputs = tuple([k + n for k, i in enumerate(given) if i in self.donated]) if self.donated else ()
        self.program: Program | None = None
        self.written: dict[int, np.ndarray] | None = None
        # the number of calls so far; frequent signatures get generated code
        self.warm = 0
        self.asked = _checks_asked()
        self.is_shared = self.reads_mesh = False
        self.placing = None if placing is None else placing(self)
        self.is_direct = (
            not self.asked and self.checks is refs is None and not any(isinstance(c, Tracer) for c in self.consts)
        )
        self.is_bare = self.is_direct and self.placing is None

    def put_together(self) -> None:
        """Make the functions that run the signature, when the first of them is asked for; they hold it alive."""
        self.unplaced = self._run_donating if self.donated_inputs else tiers.around(self, self._run_bare)
        self.base = self.unplaced if self.placing is None else self.placing.run
        concrete = self.without_checks(self.base)
        if self.checks is not None and self.checks.may_run_twice(self):
            concrete = _checked.screened(self, concrete)
        for check in self.asked:
            concrete = check(self, concrete)
        self.run = concrete if self.refs is None else self.refs.around(self, self._of_any(concrete))
        self.call = self.run_whole

    def take_apart(self) -> None:
        """Drop these functions, so that arrays and programs are freed with the last one who uses the signature.

        Whoever still runs it finds them made anew.
        """
        # no name of the module is there any more where this is called as the process ends
        try:
            del self.unplaced, self.base, self.run, self.call
        except AttributeError:  # taken apart already
            return

    def __getattr__(self, name: str) -> Any:
        if name not in _PUT_TOGETHER:
            raise AttributeError(f"'Traced' object has no attribute {name!r}")
        self.put_together()
        return getattr(self, name)

    def with_program(self, jaxpr: ClosedJaxpr) -> Traced:
        """A signature with another program, of the same operands and places."""
        staged = self.staged._replace(jaxpr=jaxpr, checks=None)
        return Traced(self.owner, staged, None if self.placing is None else self.placing.of)

    def placed(self, placing: Callable[[Traced], Placing]) -> Traced:
        """The same signature, for arguments on any devices."""
        return Traced(self.owner, self.staged, placing, self.is_quick)

    # -- runs, from the inside out -----------------------------------------------------------------

    def _run_bare(self, args: list) -> list:
        """Call the compiled program of the first device on concrete arrays."""
        args = self.consts + args if self.consts else args
        return (self.program or self.compiled())(args)

    def _run_donating(self, args: list) -> list:
        return self.execute(self.program or self.compiled(), args)

    def execute(self, program: Program, args: list) -> list:
        """Call one of the compilations of the program on concrete arrays."""
        args = [*self.consts, *args]
        return donation.run(self, program, args) if self.donated_inputs else program(args)

    def inside(self, args: list) -> list:
        """The results of the program as a part of another one, for operands that may be traced."""
        asked = None if self.placing is None else self.placing.asked
        if asked is not None:
            args = self.placing.constrained(args)  # type: ignore[union-attr]
        every = [*self.consts, *args]
        if self.compiler_options and state.stage is not None:
            raise ValueError(
                "`compiler_options` can only be passed to the outermost `jit`, whose program is compiled: "
                f"{self.name}, called inside of another program, has {self.compiler_options}."
            )
        if self.owner.inline and asked is None:
            return eval_closed(self.jaxpr, *every)
        params = {"jaxpr": self.jaxpr, "name": self.name}
        if self.refs is not None and state.stand_ins:
            params["refs"] = state.stand_ins  # type: ignore[assignment]
        outs = bind(jit_p, every, params)
        return outs if asked is None else self.placing.constrained_results(outs)  # type: ignore[union-attr]

    def is_traced(self, args: list) -> bool:
        """Whether a call with these operands is a part of another program."""
        return (
            state.stage is not None
            or any(isinstance(x, Tracer) for x in (*args, *self.consts))
            or (bool(state.axes) and self._is_over_bound_axes())
        )

    def _is_over_bound_axes(self) -> bool:
        """Whether it communicates over a named axis in scope, which its operands need not have."""
        return any(name in state.axes for name in axis_names(self.jaxpr.effects))

    def without_checks(self, run: Run) -> Run:
        """The run without the results of checks, which raise the errors that these tell of."""
        return run if self.checks is None else self.checks.around(run)

    def _of_any(self, concrete: Run) -> Run:
        traced = self.without_checks(self.inside)
        return lambda args: (traced if self.is_traced(args) else concrete)(args)

    def around(self, run: Run) -> Run:
        """A function from leaves to results, around another one from operands to all results."""
        run = self.without_checks(run)
        return run if self.refs is None else self.refs.around(self, run)

    def run_whole(self, leaves: list) -> Any:
        return self.out_tree.unflatten(self.run(leaves))

    def call_any(self, leaves: list) -> Any:
        """The function's result, as `call` gives it; leaves may be traced."""
        if self.refs is None and self.is_traced(leaves):
            return self.out_tree.unflatten(self.around(self.inside)(leaves))
        return self.call(leaves)

    # -- the program -------------------------------------------------------------------------------

    def simplified(self) -> ClosedJaxpr:
        """The program as it is compiled, for the same operands; small captured arrays may be constants of it."""
        if not self.consts:
            return simplify(self.jaxpr)
        if self.written is None:
            self.written = _captured.written(self.jaxpr, self.consts)
        return _captured.with_constants(self.jaxpr, self.written)

    def compiled(self) -> Program:
        # the lock makes threads that call at the same time compile once
        with self.owner.log.lock:
            if self.program is None:
                self.program = self.make_program()
                if self.is_bare and not (self.donated_inputs or self.consts or self.out_tree is None):
                    self.call = _caller(self.program.call, self.out_tree)
        return self.program

    def plain_program(self, avals: Sequence) -> Program | None:
        """The program that a call with leaves of these types runs on their buffers as they are.

        It is None if there is more to such a call, and as long as the program is not compiled.
        """
        if not self.is_direct:
            return None
        program = self.program if self.placing is None else self.placing.made_for(tuple(avals))
        return program if program is not None and program.is_plain else None

    def make_program(self, is_quick: bool = False) -> Program:
        """Compile the program for the first device, either fully or in the shortest time."""
        start = time.perf_counter()
        closed = self.simplified()
        donated = self.donated_inputs
        module = lower(closed, self.name, donated=donated, keep_unused=self.keep_unused)
        if donated:
            donation.check(module, self)
        program = Program(
            closed,
            self.name,
            donated=donated,
            compiler_options=self.compiler_options,
            is_quick=is_quick,
            lowered=module,
        )
        self.owner.log.compiled(time.perf_counter() - start, program.is_loaded)
        return program


def _caller(run: Run, out_tree) -> Callable[[list], Any]:
    unflatten = out_tree.unflatten

    def call(leaves):
        return unflatten(run(leaves))

    return call


# -- checks around a run, which options ask for ----------------------------------------------------


def _checks_asked() -> list[Callable[[Traced, Run], Run]]:
    """Functions that put a check around the run of a signature, the innermost first."""
    found: list[Callable[[Traced, Run], Run]] = []
    if _options.jax_debug_nans or _options.jax_debug_infs:
        found.append(_with_float_checks)
    if _options.jax_debug_key_reuse:
        found.append(_with_key_checks)
    return found


def _with_float_checks(traced: Traced, run: Run) -> Run:
    """Under jax_debug_nans or jax_debug_infs: results with such values raise."""

    def checked(args):
        outs = run(args)
        check_results(outs, traced.name, traced.jaxpr, [*traced.consts, *args])
        return outs

    return checked


def _with_key_checks(traced: Traced, run: Run) -> Run:
    """Under jax_debug_key_reuse: no random key may be consumed twice."""
    flow, n = _keys.key_flow(traced.jaxpr), len(traced.consts)
    name = f"jit-compiled function {traced.name}"

    def checked(args):
        every = [*traced.consts, *args]
        return _keys.call_checked(flow, name, every, lambda: run(args), n)

    return checked


def check_results(outs, name: str, jaxpr: ClosedJaxpr, args) -> None:
    """Raise for a NaN or infinity in the results.

    If no argument was donated, the program is run again eagerly, so the error names the operation.
    """
    try:
        dispatch.check_floats(f"the jit-compiled function {name}", outs)
    except FloatingPointError:
        if not any(x.is_deleted() for x in args):
            _blame.blame(jaxpr, args, name)
        raise
