"""Sharing of equal work in derivatives of third and higher order.

Each order of derivative repeats the primal work and that of the lower orders, so that without
sharing a k-th derivative has c·2ᵏ operations. Here a trace remembers its results, and returns the
same result for the same operation on the same operands. Then the number of operations stays
polynomial in k. Below the third order the bookkeeping costs more than it saves.
"""

from __future__ import annotations

from gradix._core.array import ArrayImpl
from gradix._core.dtypes import FLOAT, ExtendedDType
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.keys import exact_items
from gradix._transforms.cse import simplify

_DEPTH = 2  # share when a derivative is taken inside of so many others


def key_of(prim, args, params):
    """A key of an operation: arrays and tracers by identity, scalars by value.

    It is None for an operation that cannot be shared.
    """
    if prim.effectful and prim.effects(params):
        return None
    operands = tuple(
        [
            (a.aval, a.host.tobytes())
            if type(a) is ArrayImpl and not a.aval.shape and not isinstance(a.aval.dtype, ExtendedDType)
            else id(a)
            for a in args
        ]
    )
    key = (prim, operands, exact_items(params)) if params else (prim, operands)
    try:
        hash(key)
    except TypeError:
        return None
    return key


class Done:
    """The results of the operations that a trace has done, by `key_of`."""

    __slots__ = ("results",)

    def __init__(self):
        self.results: dict = {}  # key -> result, and operands so that their ids stay

    def once(self, do, prim, args, params):
        """`do(prim, args, params)`, or its remembered result."""
        key = key_of(prim, args, params)
        if key is None:
            return do(prim, args, params)
        found = self.results.get(key)
        if found is None:
            found = self.results[key] = do(prim, args, params), args
        return found[0]


def of_higher_order(closed: ClosedJaxpr, of: ClosedJaxpr) -> ClosedJaxpr:
    """The derivative `closed` of the program `of`, simplified from the second order on."""
    order = of.memo.get("order", 0) + 1
    if order >= _DEPTH:
        closed = simplify(closed)
    closed.memo["order"] = order
    return closed


def depth_of(x) -> int:
    """How many nested derivatives a value is traced by."""
    depth = 0
    while x is not None:
        depth += hasattr(x, "primal")
        x = getattr(x, "primal", None) if hasattr(x, "primal") else getattr(x, "val", None)
    return depth


def is_slope(program, inputs) -> bool:
    """Whether to take a gradient by one scalar in forward mode, by pushing the tangent 1 forward.

    This is done from the third order on: reverse mode of reverse mode triples a program with each
    order, while forward mode shares work.
    """
    if len(inputs) != 1 or inputs[0].aval.shape or inputs[0].aval.dtype not in FLOAT:
        return False
    return depth_of(inputs[0]) >= _DEPTH and program.can_push()


def share(values, *traces) -> bool:
    """From the third derivative on, let these traces and those of the values share equal work."""
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
