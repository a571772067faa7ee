"""Tiers: how the first calls of a function run, before it is compiled with all optimisations.

With the option `gradix_tier="auto"`, the first calls of a tiny function run on the host, one
operation after another. In the quick tier, a program is first compiled with few optimisations, and
compiled fully after some calls. The quick tier applies to the sizes of `jit(symbolic=...)`, and to
all functions with `gradix_tier="quick"`.
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
            f"option {name} must be a number of calls, 0 for none; got {value!r} of type {type(value).__name__}."
        )
    return value


config.define("gradix_tier", "xla", ("xla", "auto", "quick"), traced=True)
config.define("gradix_quick_calls", 32, _at_least_none, traced=True)
_options = config.state

# the calls of a signature before it is compiled; they are counted so that runs repeat exactly
HOST_CALLS = 2
_EQUATIONS = 256
_ELEMENTS = 1 << 12  # the limit for the operands and results of one equation


def first_calls_on_host(closed: ClosedJaxpr) -> int:
    """The number of calls that run on the host if `gradix_tier` is "auto": 0 unless it is tiny."""
    is_large = closed.effects or _size(simplify(closed).jaxpr) > _EQUATIONS
    return 0 if is_large else HOST_CALLS


def quick_calls(traced) -> int:
    """The number of calls that the quickly compiled program serves, in the quick tier."""
    is_plain = not (traced.donated or traced.options or traced.jaxpr.effects)
    return _options.gradix_quick_calls if is_plain and _options.gradix_tier != "auto" else 0


def _size(jaxpr: Jaxpr) -> int:
    """The number of equations; above the limit if an equation is large or has no host rule."""
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
    """Run a program on concrete arrays, one operation after another."""
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
    # these are new array objects, which can be deleted or donated
    return [ArrayImpl(x.host, v.aval) for x, v in zip(outs, jaxpr.outvars)]
