"""Maxima and minima that XLA:CPU leaves to a library, and how they keep NaN.

From 4096 elements of float32 or float64 on, XLA hands a reduction whose body comes to one maximum or minimum to a library that drops
NaN: also bodies of the user's, as `max(max(a, b), a)`, and reductions over windows. A body of comparisons and selections it keeps.
"""
from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.jaxpr import Literal, jaxprs_in_params
from gradix._core.trace import bind
from gradix._ops.comparison import gt, lt, ne
from gradix._ops.select import select_n

LIBRARY_FLOATS = (np.dtype("float32"), np.dtype("float64"))
_SIZE = 1 << 12
_BETTER = {"max": gt, "min": lt}


def is_left_to_library(platform: str, aval) -> bool:
    """Whether extrema among the elements of an array of this type may be the library's."""
    return platform == "cpu" and aval.dtype in LIBRARY_FLOATS and prod(aval.shape) >= _SIZE


def emit_body(em, closed, avals):
    """The body that joins elements of arrays of the given types by a program, as `em.reduce` takes it."""
    if any(is_left_to_library(em.tuned_platform, a) for a in avals) and has_extremum(closed.jaxpr):
        return lambda *scalars: em.expand(partial(evaluate_keeping_nan, closed.jaxpr, closed.consts), *scalars)
    return lambda *scalars: em.inline(closed.jaxpr, closed.consts, scalars)


def emit_extremum(em, hlo: str):
    """The body of a reduction: the extremum of two numbers, or the NaN among them."""
    direction = "GT" if hlo == "maximum" else "LT"
    truth = make_aval((), np.dtype(bool))
    return lambda x, y: [em.select(em.op("or", truth, em.compare(x, y, direction), em.compare(x, x, "NE")), x, y)]


def has_extremum(jaxpr) -> bool:
    """Whether a program takes the maximum or minimum of two numbers anywhere."""
    return any(e.primitive.name in _BETTER or any(map(has_extremum, jaxprs_in_params(e.params))) for e in jaxpr.eqns)


def extremum(name: str, x, y):
    """`max` or `min` of two numbers, or the NaN among them, by comparisons and selections."""
    return select_n(ne(x, x), select_n(_BETTER[name](x, y), y, x), x)


def evaluate_keeping_nan(jaxpr, consts, *args) -> list:
    """The results of a program on scalars, its maxima and minima of floats taken by `extremum`."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    for eqn in jaxpr.eqns:
        ins = [v.val if type(v) is Literal else values[v] for v in eqn.invars]
        prim, params = eqn.primitive, eqn.params
        if prim.name in _BETTER and ins[0].aval.dtype in LIBRARY_FLOATS:
            outs = [extremum(prim.name, *ins)]
        elif prim.call_primitive:
            inner = params.get("jaxpr") or params["call_jaxpr"]
            outs = evaluate_keeping_nan(inner.jaxpr, inner.consts, *ins)
        else:
            found = bind(prim, ins, params)
            outs = found if prim.multiple_results else [found]
        values.update(zip(eqn.outvars, outs))
    return [v.val if type(v) is Literal else values[v] for v in jaxpr.outvars]
