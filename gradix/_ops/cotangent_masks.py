"""Masks of live elements, which keep the cotangents of elements that a selection dropped at zero.

An element that `select_n` did not choose has no part in the result. Its cotangent is zero, but zero
times an infinite derivative, such as that of a root at zero, is NaN. So reverse mode keeps masks of
the live elements from a selection on. Where an element is not live, it replaces a coefficient that
may be infinite by a harmless one.

The attribute `live` of a primitive says how the mask of a result gives that of an operand:

- "cases": a selection; a case's cotangent is live where it was chosen.
- "elements": elementwise; an element of the operand is live where one of the result is.
- "moves": the result's elements are elements of the operand, or sums of them.
- "call": a program; `transpose_live` follows its equations.
- None: not known; only a mask for the whole cotangent is passed on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from gradix._core.array import scalar_array
from gradix._core.primitive import Linear
from gradix._ops.basis import broadcast_to, unbroadcast, zeros
from gradix._ops.bitwise import bitwise_and, bitwise_not, bitwise_or
from gradix._ops.clamp import clamp
from gradix._ops.comparison import eq, ne
from gradix._ops.convert import convert
from gradix._ops.select import choose

_COUNT = np.dtype(np.int32)


class Live:
    """A lazily computed boolean mask, whose `shape` is () or that of the cotangent."""

    __slots__ = ("shape", "_make", "_made")

    def __init__(self, shape: tuple, make: Callable):
        self.shape, self._make, self._made = shape, make, None

    @classmethod
    def of(cls, mask) -> Live:
        return cls(mask.aval.shape, lambda: mask)

    def mask(self):
        if self._made is None:
            self._made = self._make()
        return self._made


def _both(a, b, shape):
    """The conjunction of masks of shape `shape` or ()."""
    if a.aval.shape != b.aval.shape:
        a, b = (broadcast_to(m, shape) if not m.aval.shape else m for m in (a, b))
    return bitwise_and(a, b)


def joined(a: Live, b: Live) -> Live:
    """The mask of the sum of two cotangents."""
    if a is b:
        return a
    shape = a.shape or b.shape

    def make():
        x, y = (broadcast_to(m, shape) if m.aval.shape != shape else m for m in (a.mask(), b.mask()))
        return bitwise_or(x, y)

    return Live(shape, make)


def joined_all(lives) -> Live | None:
    """The mask of elements live in any of several cotangents; None if unknown or shapes differ."""
    if not lives or any(live is None or live.shape != lives[0].shape for live in lives):
        return None
    return functools.reduce(joined, lives)


def passed(prim, position: int, args, params, out_aval, before: Live | None) -> Live | None:
    """The mask of an operand's cotangent, from the mask `before` of the result's.

    It is None where nothing is known.
    """
    if prim.live == "cases":
        return _of_case(position, args, before)
    if before is None or not before.shape:
        return before
    shape = args[position].aval.shape
    if prim.live == "elements":
        return before if shape == before.shape else Live(shape, lambda: _any_over(before.mask(), args[position].aval))
    if prim.live == "moves":
        return Live(shape, lambda: _moved(prim, position, args, params, out_aval, before.mask()))
    return None


def _of_case(position: int, args, before: Live | None) -> Live:
    which, *cases = args
    aval = args[position].aval
    shape = next((c.aval.shape for c in cases if c.aval.shape), ())

    def make():
        chosen = _chosen(which, position - 1, len(cases))
        if before is not None:
            chosen = _both(chosen, before.mask(), shape)
        return chosen if chosen.aval.shape in ((), aval.shape) else _any_over(chosen, aval)

    scalar = not which.aval.shape and (before is None or not before.shape)
    return Live(() if scalar else aval.shape, make)


def _chosen(which, case: int, count: int):
    if which.aval.dtype == bool:
        return which if case else bitwise_not(which)
    number = lambda n: scalar_array(n, which.aval.dtype, False)
    return eq(clamp(number(0), which, number(count - 1)), number(case))


def _any_over(mask, aval):
    """The mask of an operand that was broadcast: an element is live where any of its copies is."""
    return ne(unbroadcast(convert(mask, _COUNT), aval), scalar_array(0, _COUNT, False))


def _moved(prim, position: int, args, params, out_aval, mask):
    """The mask of an operand that was moved: transpose the mask, as numbers, by the operation."""
    weight = convert(mask, out_aval.dtype, out_aval.weak_type)
    back = prim.transpose(weight, *args, **params)[position]
    return ne(back, scalar_array(0, back.aval.dtype, False))


def guarded(prim, args, live: Live) -> list:
    """Operands with coefficients replaced by the neutral one where the cotangent is not live."""
    return [a if type(a) is Linear else _guarded(a, live, prim.values.neutral) for a in args]


def _guarded(coefficient, live: Live, neutral):
    mask, aval = live.mask(), coefficient.aval
    if mask.aval.shape not in ((), aval.shape):
        coefficient = broadcast_to(coefficient, mask.aval.shape)
    return choose(mask, scalar_array(neutral, aval.dtype, aval.weak_type), coefficient)


def cut(ct, live: Live):
    """The cotangent `ct` set to zero where it is not live."""
    mask = live.mask()
    return choose(mask, zeros(ct.aval.update(shape=())), ct)
