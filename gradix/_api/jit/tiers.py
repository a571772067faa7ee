"""Tiers before the whole compilation: what the first calls of a function run by.

The host tier runs the first calls of a tiny function operation by operation, if asked for. In the
quick tier a program is compiled in a fraction of the time, and compiled whole when it has been
called some times: the sizes of `jit(symbolic=...)` are, and all functions if asked for.
"""

from __future__ import annotations

from gradix._base import config
from gradix._control.call import jit_p
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from gradix._runtime.dispatch import evaluate
from gradix._transforms.cse import simplify


def _at_least_none(name: str, value) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(
            f"option {name} is how many calls, 0 for none; got {value!r} of type {type(value).__name__}."
        )
    return value


config.define("gradix_tier", "xla", ("xla", "auto", "quick"), traced=True)
config.define("gradix_quick_calls", 32, _at_least_none, traced=True)
_options = config.state

# of a signature, before it is compiled: counted, so that runs of a program repeat exactly
HOST_CALLS = 2
_EQUATIONS = 256
_ELEMENTS = 1 << 12  # of an equation's operands and results


def first_calls_on_host(closed: ClosedJaxpr) -> int:
    """How many calls of a program run on the host where `gradix_tier` is "auto": none unless it is tiny."""
    is_large = closed.effects or _size(simplify(closed).jaxpr) > _EQUATIONS
    return 0 if is_large else HOST_CALLS


def quick_calls(traced) -> int:
    """How many calls run by a program that is compiled quickly, where the tier is meant for the function."""
    is_plain = not (traced.donated or traced.options or traced.jaxpr.effects)
    return _options.gradix_quick_calls if is_plain and _options.gradix_tier != "auto" else 0


def _size(jaxpr: Jaxpr) -> int:
    """The number of equations; more than any limit where one is large, or has no host rule."""
    size = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive is jit_p:
            size += _size(eqn.params["jaxpr"].jaxpr)
        elif (
            eqn.primitive.host is None
            or sum([v.aval.size for v in (*eqn.invars, *eqn.outvars)]) > _ELEMENTS
        ):
            return _EQUATIONS + 1
        size += 1
    return size


def run_on_host(closed: ClosedJaxpr, args: list) -> list:
    """The results of a program on concrete arrays, an operation at a time."""
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, closed.consts))
    env.update(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        ins = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        if eqn.primitive is jit_p:
            env.update(zip(eqn.outvars, run_on_host(eqn.params["jaxpr"], ins)))
            continue
        out = evaluate(eqn.primitive, ins, eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out))
        else:
            env[eqn.outvars[0]] = out
    outs = [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]
    # of their own, to be deleted or donated
    return [ArrayImpl(x.host, v.aval) for x, v in zip(outs, jaxpr.outvars)]
