"""The order of what a sort by bits tells apart and a sort by value does not: the two zeros, and NaNs.

XLA takes denormal numbers for zeros wherever it flushes them, so here they are what compares equal to zero.
"""
from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import INT, SCALAR, Loops

_BLOCK = 1024               # elements looked at together


def in_order_of_input(em, x, ordered, axis: int):
    """`ordered`, a matrix of floats sorted by bits along an axis, with equal numbers in their order in `x`."""
    n = x.aval.size
    flat = em.pad(em.reshape(ordered, (n,)), (n + 1,), 0)          # with a place for what is not to be moved
    out, = em.kernel("in_order_of_input", [flat.aval], lambda x, out: [_lines(em, x, out, axis)], x, flat, whole=True)
    return em.reshape(em.head(out, (n,)), x.aval.shape)


def _lines(em, x, out, axis: int):
    loops, n, lines = Loops(em), x.aval.shape[axis], x.aval.shape[1 - axis]
    step, apart = (1, n) if axis else (lines, 1)
    values, end = em.reshape(x, (x.aval.size,)), loops.number(x.aval.size)
    length = loops.do("multiply", _is_telling(loops, values), n)   # nothing is done where nothing is to be done

    def line(i, out):
        start = loops.do("multiply", i, apart)
        return [_line(loops, values, out, start, step, length, loops.do("add", start, n * step), end)]
    return loops.count(lines, [out], line)[0]


def _is_telling(loops: Loops, x):
    """1 if a vector has zeros or NaNs whose bits are not those that sorting by bits gives all of them, else 0."""
    em, n = loops.em, x.aval.size
    length = min(n, _BLOCK)
    flag, bits = make_aval((length,), np.dtype(bool)), make_aval((length,), np.dtype(f"uint{8 * x.aval.dtype.itemsize}"))
    nan = em.constant(int(np.array(np.nan, x.aval.dtype).view(bits.dtype)), bits)

    def block(i, found):
        v = loops.block(x, (length,), loops.do("multiply", i, length))       # the last one begins where it still fits
        same = em.bitcast(v, bits)
        zero = em.op("and", flag, em.compare(v, em.constant(0, v.aval), "EQ"), em.compare(same, em.constant(0, bits), "NE"))
        other = em.op("and", flag, em.compare(v, v, "NE"), em.compare(same, nan, "NE"))
        return [loops.do("maximum", found, em.convert(em.op("or", flag, zero, other), INT))]
    found = loops.count(-(-n // length), [loops.zeros((length,))], block)
    return em.reduce(found, [loops.number(0)], (0,), [SCALAR], "maximum")[0]


def _line(loops: Loops, x, out, start, step: int, length, behind, end):
    """Zeros begin behind the negative numbers, NaNs end the line; what is neither is put behind the end of all."""
    em, zero = loops.em, loops.em.constant(0, make_aval((), x.aval.dtype))

    def element(i):
        return loops.get(x, loops.do("add", start, loops.do("multiply", i, step)))

    def counted(condition):
        return loops.do("multiply", em.convert(condition, INT), step)

    def tally(i, zeros, nans):
        v = element(i)
        return [loops.do("add", zeros, counted(em.compare(v, zero, "LT"))),
                loops.do("subtract", nans, counted(em.compare(v, v, "NE")))]

    def send(i, zeros, nans, out):
        v = element(i)
        is_zero, is_nan = em.compare(v, zero, "EQ"), em.compare(v, v, "NE")
        place = em.select(is_zero, zeros, em.select(is_nan, nans, end))
        return [loops.do("add", zeros, counted(is_zero)), loops.do("add", nans, counted(is_nan)), loops.put(out, place, v)]
    starts = loops.count(length, [start, behind], tally)
    return loops.count(length, [*starts, out], send)[-1]
