"""Values that a rule captures from a transformation inside that of its arguments.

In `vmap(lambda x: f(z))` with a rule of f that reads x, the arguments may have only the tangents of
a derivative around `vmap`, which then would run the rule and lose the mapped axis of x. Such values
become arguments, so that the innermost transformation interprets the call first.
"""

from __future__ import annotations

from collections.abc import Callable

from gradix._control.custom_jvp import is_deeper
from gradix._transforms.batch import BatchTracer, batch, mapped_aval
from gradix._transforms.staging import eval_closed, stage_open


def captured(functions: list[tuple[Callable, list]], trace) -> list:
    """The deeper values that functions from lists to lists capture, each with its operands' types."""
    found: list = []
    for function, avals in functions:
        for c in stage_open(function, avals)[1]:
            if is_deeper(c, trace) and not any(c is f for f in found):
                found.append(c)
    return found


def with_captured(function: Callable, values: list) -> Callable:
    """The function with `values`, which it captures, as further operands before its own."""
    n = len(values)

    def explicit(*xs):
        given, own = xs[:n], xs[n:]
        closed, consts = stage_open(function, [x.aval for x in own])
        filled = [next((g for v, g in zip(values, given) if v is c), c) for c in consts]
        return eval_closed(closed, *filled, *own)

    return explicit


def batch_rule(rule: Callable, axis, args, in_axes) -> tuple[list, list]:
    """As `batch`, for a rule that may capture values that are mapped over the same axis."""
    outs, out_axes = batch(rule, axis, args, in_axes)
    if not any(_is_mapped_over(axis, o) for o in outs):
        return outs, out_axes
    avals = [x.aval if a is None else mapped_aval(axis.size, a, x.aval) for x, a in zip(args, in_axes)]
    closed, consts = stage_open(rule, avals)
    places = [c.axis if _is_mapped_over(axis, c) else None for c in consts]
    values = [c if a is None else c.val for c, a in zip(consts, places)]
    return batch(lambda *xs: eval_closed(closed, *xs), axis, [*values, *args], [*places, *in_axes])


def _is_mapped_over(axis, x) -> bool:
    return type(x) is BatchTracer and getattr(x._trace, "axis", None) is axis
