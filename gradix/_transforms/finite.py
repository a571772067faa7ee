"""Which values of a program may be infinite or NaN: those that depend on a singular operation."""

from __future__ import annotations

import numpy as np

from gradix._core.array import ArrayImpl
from gradix._core.dtypes import INEXACT
from gradix._core.jaxpr import Jaxpr, Literal, SuspectVar, holds, jaxprs_in_params
from gradix._core.primitive import Linear
from gradix._transforms.batch import BatchTracer
from gradix._transforms.jvp import JVPTracer
from gradix._transforms.staging import StagingTracer

_LOOK = 1 << 16  # a concrete array is checked if it has at most so many elements


def is_suspect(x, divides: bool = False) -> bool:
    """Whether a value, or a tangent it carries, may be infinite or NaN; with `divides`, or zero."""
    kind = type(x)
    if kind is ArrayImpl:
        return x.aval.size > _LOOK or not np.isfinite(x.host).all() or (divides and not x.host.all())
    if divides:
        return True
    if kind is StagingTracer:
        return x._var in _suspects_of(x._trace)
    if kind is JVPTracer:
        return is_suspect(x.primal) or is_suspect(x.tangent)
    return is_suspect(x.val) if kind is BatchTracer else _is_suspect_tape(x._trace)


def _is_suspect_tape(tape) -> bool:
    """Whether any equation of a tape may have a coefficient that is not finite."""
    found, seen = getattr(tape, "suspects", (False, 0))
    if not found and seen < len(tape.eqns):
        found = any(map(may_be_infinite, tape.eqns[seen:]))
        tape.suspects = found, len(tape.eqns)
    return found


def may_be_infinite(e) -> bool:
    """Whether a recorded equation may have an infinite or NaN coefficient."""
    prim, divides = e.primitive, bool(e.primitive.values.neutral)
    if len(e.inputs) < len(e.args):
        for a in e.args:
            if type(a) is not Linear and a.aval.dtype in INEXACT and is_suspect(a, divides):
                return True
    return prim.multiple_results and any(has_singularities(j) for j in jaxprs_in_params(e.params))


def _suspects_of(trace) -> set:
    """The variables recorded so far that may not be finite.

    The trace keeps the set between calls.
    """
    found, seen = getattr(trace, "suspects", (None, 0))
    if found is None:
        found = {v for v in trace.invars if type(v) is SuspectVar}
    if seen < len(trace.eqns) or not seen:
        for eqn in trace.eqns[seen:]:
            if not found.isdisjoint(eqn.invars) or _is_singular(eqn):
                found.update([v for v in eqn.outvars if v.aval.dtype in INEXACT])
        trace.suspects = found, len(trace.eqns)
    return found


def _is_singular(eqn) -> bool:
    prim = eqn.primitive
    singular = prim.values.singular
    if singular is True:
        return True
    if singular is not False:
        return singular([v.val if type(v) is Literal else None for v in eqn.invars], eqn.params)
    return prim.multiple_results and any(has_singularities(j) for j in jaxprs_in_params(eqn.params))


def has_singularities(jaxpr: Jaxpr) -> bool:
    """Whether any operation of a program may give infinite or NaN results for finite operands."""
    found = jaxpr.memo.get("singular")
    if found is None:
        marked = any(type(v) is SuspectVar for v in jaxpr.invars)
        found = jaxpr.memo["singular"] = marked or any(map(_is_singular, jaxpr.eqns))
    return found


def holds_selection(jaxpr: Jaxpr) -> bool:
    """Whether a program, or a program in its parameters, holds a selection."""
    return holds(jaxpr, _selects)


def _selects(eqn) -> bool:
    return eqn.primitive.live == "cases"


def mark(var) -> None:
    """Note that an input may be infinite or NaN."""
    var.__class__ = SuspectVar
