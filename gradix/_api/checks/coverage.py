"""Which checks for NaN may be left out, because a later check finds the same NaN.

Most operations give NaN where an operand is NaN. A value that only such operations use need not be
checked itself, since a NaN in it shows in their results, which are checked. Once a NaN is found,
the program runs again with all checks, which tell the operation that made it.
"""

from __future__ import annotations

import math

from gradix._control.call import jit_p
from gradix._control.custom_jvp import custom_jvp_call_p
from gradix._control.custom_vjp import custom_vjp_call_p
from gradix._core.dtypes import FLOAT
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal, fold
from gradix._core.trace import bind_equation, state
from gradix._ops.arithmetic import max_p, min_p
from gradix._ops.basis import broadcast_in_dim_p, reduce_sum_p, transpose_p
from gradix._ops.convert import convert_element_type_p
from gradix._ops.dot import dot_general_p
from gradix._ops.joining import concatenate_p
from gradix._ops.shape import reshape_p, rev_p, squeeze_p
from gradix._ops.sorting.sort import sort_p
from gradix._transforms.staging import stage_closed

# Each element of an operand is part of some element of the result.
_KEEP_ALL = frozenset(
    (
        max_p,
        min_p,
        broadcast_in_dim_p,
        reduce_sum_p,
        transpose_p,
        convert_element_type_p,
        dot_general_p,
        concatenate_p,
        reshape_p,
        rev_p,
        squeeze_p,
    )
)
_HAVE_NAN = frozenset(d for d in FLOAT if d.itemsize >= 2)


_CALLED = {jit_p: "jaxpr", custom_jvp_call_p: "call_jaxpr", custom_vjp_call_p: "call_jaxpr"}


def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the equations of the programs it calls in place of the calls."""

    def run(closed, args):
        return fold(closed.jaxpr, closed.consts, args, apply)

    def apply(eqn, operands):
        state.place = eqn.source
        inner = _CALLED.get(eqn.primitive)
        return bind_equation(eqn, operands) if inner is None else run(eqn.params[inner], operands)

    before = state.place
    try:
        return stage_closed(lambda *args: run(closed, args), closed.in_avals, closed.jaxpr.debug_info)
    finally:
        state.place = before


def covered(jaxpr: Jaxpr) -> frozenset:
    """The places of the equations whose results need not be checked for NaN."""
    # the variables of which a NaN shows in a result that is checked
    known: set = set()
    left_out = []
    for i, eqn in reversed(list(enumerate(jaxpr.eqns))):
        floats = [v for v in eqn.outvars if v.aval.dtype in _HAVE_NAN]
        if floats and len(floats) == len(eqn.outvars) and all(v in known for v in floats):
            left_out.append(i)
            shows = True
        else:
            shows = is_looked_at(eqn)
        if shows and _keeps(eqn):
            known.update(v for v in eqn.invars if type(v) is not Literal and v.aval.dtype in _HAVE_NAN)
    return frozenset(left_out)


def is_looked_at(eqn) -> bool:
    """Whether the results of an equation are checked for NaN: not if it only moves elements."""
    return not eqn.primitive.rearranges and eqn.primitive is not sort_p


def _keeps(eqn) -> bool:
    """Whether a NaN anywhere in an operand gives one in the result."""
    prim = eqn.primitive
    if prim.multiple_results:
        return False
    out = eqn.outvars[0].aval
    if out.dtype not in _HAVE_NAN or not all(type(n) is int for n in out.shape):
        return False
    return math.prod(out.shape) > 0 and (prim.values.keeps_nan or prim in _KEEP_ALL)
