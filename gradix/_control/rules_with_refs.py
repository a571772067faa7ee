"""Functions with a derivative rule that write to refs (mutable arrays).

The program of such a function takes the values of the refs, and returns their last values first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._core.aval import seen
from gradix._core.jaxpr import ClosedJaxpr, DebugInfo, no_debug
from gradix._core.refs import Ref
from gradix._transforms.staging import eval_jaxpr, hoist, stage_with_refs, with_refs, written


def stage_ruled(function, args, debug: DebugInfo) -> tuple[ClosedJaxpr, list, list[Ref], Any]:
    """The program of a function, its constants, and the refs whose values it takes and returns.

    The last of the results is the `Sealing` of results with sizes that are decided inside, or None.
    """
    jaxpr, consts, used = stage_with_refs(function, [a.aval for a in args], debug)
    refs = written(used)
    jaxpr, consts = with_refs(jaxpr, consts, used, refs)
    sealing = None
    if seen.counts is not None:
        n = len(refs)
        sealing = seen.counts.sealing([jaxpr], n, len(jaxpr.outvars) - n) or None
    if sealing is not None:
        jaxpr, consts = sealing.program(jaxpr, consts)
    return *hoist(jaxpr, consts), refs, sealing


def forward_through(fwd: Callable, refs: list[Ref], name: str) -> Callable:
    """The rule `fwd` as a function that takes the values of `refs` before the arguments."""
    n = len(refs)

    def forward(*args, perturbed=None):
        def rule(*xs):
            return fwd(*xs) if perturbed is None else fwd(*xs, perturbed=perturbed[n:])

        last, outs, residuals = _run(rule, refs, name, args[:n], args[n:])
        return [*last, *outs], residuals

    return forward


def backward_through(bwd: Callable, refs: list[Ref]) -> Callable:
    """The rule `bwd` for such a function: the values of `refs` get no cotangents."""
    n = len(refs)
    return lambda residuals, cts: [*[None] * n, *bwd(residuals, cts[n:])]


def jvp_through(jvp: Callable, refs: list[Ref], name: str) -> Callable:
    """The forward-mode rule `jvp`, which takes the values of `refs` before the arguments."""
    n = len(refs)

    def through(primals, tangents):
        given, ts = list(primals[n:]), list(tangents[n:])

        def rule(*xs):
            rest = iter(xs[len(given) :])
            return jvp(list(xs[: len(given)]), [None if t is None else next(rest) for t in ts])

        args = [*given, *[t for t in ts if t is not None]]
        last, outs, tangents = _run(rule, refs, name, primals[:n], args)
        return [*last, *outs], [*[None] * n, *tangents]

    return through


def _run(rule, refs, name: str, values, args) -> tuple[list, list, list]:
    """The last values of `refs`, and both lists that `rule` returns; the second may hold None."""
    seen: list = []

    def flat(*xs):
        outs, others = rule(*xs)
        seen[:] = len(outs), [o is not None for o in others]
        return [*outs, *[o for o in others if o is not None]]

    debug = DebugInfo.of(name) if name else no_debug
    jaxpr, consts, used = stage_with_refs(flat, [a.aval for a in args], debug)
    unknown = next((r for r in written(used) if r not in refs), None)
    if unknown is not None:
        raise NotImplementedError(
            f"the derivative rule of {name} writes to {unknown._name()}, which {name} itself does not. "
            "Where it is traced, as in jit and loops, let both write to it, or return the value."
        )
    results = eval_jaxpr(*with_refs(jaxpr, consts, used, refs), *values, *args)
    n, (n_outs, there) = len(refs), seen
    rest = iter(results[n + n_outs :])
    return results[:n], results[n : n + n_outs], [next(rest) if t else None for t in there]
