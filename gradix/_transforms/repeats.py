"""Doing things once: traces that know what they have done, for derivatives of third and higher order.

Each order asks for the same primal and lower-order work again, so that without sharing a k-th
derivative is a program of c·2ᵏ operations. A trace that gives an operation on the same operands the
same result keeps it polynomial, as what is made of equal values is then equal too, order after
order. Below the third order the bookkeeping costs more than it saves.
"""

from __future__ import annotations

from gradix._core.array import ArrayImpl
from gradix._core.dtypes import FLOAT, ExtendedDType
from gradix._core.jaxpr import ClosedJaxpr
from gradix._transforms.cse import simplify

_DEPTH = 2  # derivatives around a further one from which on to share


def key_of(prim, args, params):
    """The identity of an operation: its operands by identity, numbers by value; None if unknown."""
    if prim.effectful and prim.effects(params):
        return None
    operands = tuple(
        [
            (a.aval, a.host.tobytes())
            if type(a) is ArrayImpl
            and not a.aval.shape
            and not isinstance(a.aval.dtype, ExtendedDType)
            else id(a)
            for a in args
        ]
    )
    key = (prim, operands, *params.items()) if params else (prim, operands)
    try:
        hash(key)
    except TypeError:
        return None
    return key


class Done:
    """What a trace has done, by `key_of`."""

    __slots__ = ("results",)

    def __init__(self):
        self.results: dict = {}  # key -> result, operands (kept, since known by identity)

    def once(self, do, prim, args, params):
        """`do(prim, args, params)`, or the result of having done so."""
        key = key_of(prim, args, params)
        if key is None:
            return do(prim, args, params)
        found = self.results.get(key)
        if found is None:
            found = self.results[key] = do(prim, args, params), args
        return found[0]


def of_higher_order(closed: ClosedJaxpr, of: ClosedJaxpr) -> ClosedJaxpr:
    """A program that is a derivative of another; from the second order on what it repeats is done once."""
    order = of.memo.get("order", 0) + 1
    if order >= _DEPTH:
        closed = simplify(closed)
    closed.memo["order"] = order
    return closed


def depth_of(x) -> int:
    """How many derivatives are being taken around a value."""
    depth = 0
    while x is not None:
        depth += hasattr(x, "primal")
        x = getattr(x, "primal", None) if hasattr(x, "primal") else getattr(x, "val", None)
    return depth


def is_slope(program, inputs) -> bool:
    """Whether to push 1 through a linear program in place of pulling it back: the same, in one number.

    From the third order on, since reverse mode of reverse mode triples programs with each, and
    forward mode shares.
    """
    if len(inputs) != 1 or inputs[0].aval.shape or inputs[0].aval.dtype not in FLOAT:
        return False
    return depth_of(inputs[0]) >= _DEPTH and program.can_push()


def share(values, *traces) -> bool:
    """From the third derivative on, make these traces, and those around the values, do equal things once."""
    if max(map(depth_of, values), default=0) < _DEPTH:
        return False
    around = list(traces)
    for x in values:
        while x is not None and hasattr(x, "_trace"):
            around += [x._trace, getattr(getattr(x, "tangent", None), "_trace", None)]
            x = getattr(x, "primal", None) if hasattr(x, "primal") else getattr(x, "val", None)
    for trace in around:
        if trace is not None and trace.done is None:
            trace.remember(Done())
    return True
