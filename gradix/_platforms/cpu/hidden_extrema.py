"""Extrema that may drop NaN, as all that depends on them is NaN anyway: softmax and logsumexp.

XLA's library for extrema drops NaN, and a check for NaN takes as long as the extremum. But
exp(x - max(x)) is NaN where x is, whatever the maximum is. So its sum is NaN too, and so is
everything divided by the sum. All other values in a row with NaN depend on the maximum. If none of
these is a result of the program, the maximum that was taken makes no difference. A derivative that
compares the operand with its maximum keeps the exact extremum, which blocks compute faster than the
library.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import ml_dtypes
import numpy as np

from gradix._core.jaxpr import Literal
from gradix._ops.basis import broadcast_in_dim_p, reduce_sum_p
from gradix._ops.convert import convert_element_type_p
from gradix._ops.shape import reshape_p, squeeze_p

# What is known of a value in those rows (over the reduced axes) where the operand has a NaN:
_ALL_NAN = 2  # all NaN, whatever the extremum is
_NAN_THERE = 1  # NaN where the operand is; other elements may depend on the extremum
_ANYTHING = 0  # elements may depend on the extremum

_WITH_NAN = frozenset(map(np.dtype, ("float16", ml_dtypes.bfloat16, "float32", "float64")))


def is_hidden(eqn, users) -> bool:
    """Whether no result of a program depends on whether the extremum of an equation kept NaN."""
    (x,), (out,) = eqn.invars, eqn.outvars
    rows = _Rows(x.aval.shape, eqn.params["axes"])
    if type(x) is Literal or users.is_result(out) or rows.kept == rows.shape:
        return False
    states = {out: _ANYTHING}
    waiting = dict(users.of(out))
    places = [*waiting]
    # Equations are visited in program order, so that all operands are known.
    heapify(places)
    while places:
        eqn = waiting.pop(heappop(places))
        operands = [v for v in eqn.invars if type(v) is not Literal]
        state = rows.state(eqn, [_NAN_THERE if v is x else states.get(v) for v in operands])
        if state is None:
            if any(states.get(v, _ALL_NAN) != _ALL_NAN for v in operands):
                return False
            continue
        (result,) = eqn.outvars
        if state != _ALL_NAN and users.is_result(result):
            return False
        states[result] = state
        for place, user in users.of(result).items():
            if place not in waiting:
                waiting[place] = user
                heappush(places, place)
    return True


class _Rows:
    """The shapes of an operand's rows: in full, and reduced with or without `keepdims`."""

    __slots__ = ("axes", "kept", "others", "reduced", "shape")

    def __init__(self, shape: tuple, axes):
        self.shape, self.axes = shape, frozenset(axes)
        self.others = tuple([i for i in range(len(shape)) if i not in self.axes])
        self.kept = tuple([1 if i in self.axes else n for i, n in enumerate(shape)])
        self.reduced = tuple([shape[i] for i in self.others])

    def state(self, eqn, states) -> int | None:
        """The state of an equation's result, from those of its operands.

        It is None where the state is not known.
        """
        prim, shape = eqn.primitive, eqn.outvars[0].aval.shape
        if prim.multiple_results or shape not in (self.shape, self.kept, self.reduced):
            return None
        known = [s for s in states if s is not None]
        if prim.values.keeps_nan:
            return max(known)
        before = eqn.invars[0].aval.shape
        if prim is convert_element_type_p:
            return known[0] if eqn.params["new_dtype"] in _WITH_NAN else None
        if prim is reduce_sum_p:
            if self.axes != set(eqn.params["axes"]) or before not in (self.shape, self.kept):
                return None
            return _ALL_NAN if known[0] == _NAN_THERE else known[0]
        if prim is broadcast_in_dim_p:
            axes = eqn.params["broadcast_dimensions"]
            same = before == self.reduced and axes == self.others or before == self.kept and len(axes) == len(shape)
        else:
            same = prim in (reshape_p, squeeze_p) and before in (self.kept, self.reduced) and shape != self.shape
        return known[0] if same else None
