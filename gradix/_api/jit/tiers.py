"""Tiers: how the first calls of a function run, before it is compiled with all optimisations.

With the option `gradix_tier="auto"`, the first calls of a tiny function run on the host, one
operation after another. In the quick tier, a program is first compiled with few optimisations, and
compiled fully after some calls. The quick tier applies to the sizes of `jit(symbolic=...)`, and to
all functions with `gradix_tier="quick"`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._control.call import jit_p
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr
from gradix._transforms.cse import simplify
from gradix._transforms.staging import eval_closed

if TYPE_CHECKING:
    from gradix._api.jit.traced import Run, Traced
    from gradix._runtime.program import Program


def _at_least_none(name: str, value) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(
            f"option {name} must be a number of calls, 0 for none; got {value!r} of type {type(value).__name__}."
        )
    return value


config.define("gradix_tier", "xla", ("xla", "auto", "quick"), traced=True)
config.define("gradix_quick_calls", 32, _at_least_none, traced=True)
_coverage = lazy_module("gradix._api.checks.coverage")
_options = config.state

# the calls of a signature before it is compiled; they are counted so that runs repeat exactly
HOST_CALLS = 2
_EQUATIONS = 256
_ELEMENTS = 1 << 12  # the limit for the operands and results of one equation


def around(traced: Traced, run: Run) -> Run:
    """The run of a signature whose first calls are served before it is compiled, if any are.

    Once its program is compiled, whoever asked for that, it serves all calls.
    """
    tier = _options.gradix_tier
    if tier == "auto":
        left, first = first_calls_on_host(traced.jaxpr), _on_host(traced)
    elif tier == "quick" or traced.is_quick:
        left, first = quick_calls(traced), _by_quick_program(traced)
    else:
        return run
    if not left:
        return run

    def run_first(args):
        nonlocal left
        if left and traced.program is None:
            left -= 1
            return first(args, not left)
        return run(args)

    return run_first


def _on_host(traced: Traced) -> Callable[[list, bool], list]:
    closed = _coverage.flattened(simplify(traced.jaxpr))

    def run(args, is_last):
        outs = eval_closed(closed, *traced.consts, *args)
        # these are new array objects, which can be deleted or donated
        return [ArrayImpl(x.host, a) for x, a in zip(outs, closed.out_avals)]

    return run


def _by_quick_program(traced: Traced) -> Callable[[list, bool], list]:
    """Runs a program that is compiled with few optimisations at its first call."""
    quick: Program | None = None

    def run(args, is_last):
        nonlocal quick
        with traced.owner.log.lock:
            program = quick = quick or traced.make_program(is_quick=True)
            if is_last:
                quick = None
        return program([*traced.consts, *args])

    return run


def first_calls_on_host(closed: ClosedJaxpr) -> int:
    """The number of calls that run on the host if `gradix_tier` is "auto": 0 unless it is tiny."""
    is_large = closed.effects or _size(simplify(closed).jaxpr) > _EQUATIONS
    return 0 if is_large else HOST_CALLS


def quick_calls(traced: Traced) -> int:
    """The number of calls that the quickly compiled program serves, in the quick tier."""
    is_plain = not (traced.compiler_options or traced.jaxpr.effects)
    return _options.gradix_quick_calls if is_plain else 0


def _size(jaxpr: Jaxpr) -> int:
    """The number of equations; above the limit if an equation is large or has no host rule."""
    size = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive is jit_p:
            size += _size(eqn.params["jaxpr"].jaxpr)
        elif eqn.primitive.host is None or sum([v.aval.size for v in (*eqn.invars, *eqn.outvars)]) > _ELEMENTS:
            return _EQUATIONS + 1
        size += 1
    return size
