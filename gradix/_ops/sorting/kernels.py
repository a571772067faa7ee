"""Sorting by native loops: by digits, and by a network of comparisons over many columns at once.

By digits (least significant first, 8 bits at a time) an element costs the same however many there are, and equal keys
keep their order. The network (bitonic, with every comparison in one direction) does the same comparisons whatever the
data, so that one instruction does 16 columns; it pays for many short ones. Both take keys as integers.
"""
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import INT, Loops

_BITS = 8
_DIGITS = 1 << _BITS
_LANES = 128                        # columns that one pass of the network takes; fewer than 64 are not vectorised

# Nanoseconds of one step, measured: of one digit of one element, of one digit's 256 counters, of one comparison of one
# column in 32 and in 64 bits, and of one comparison of XLA's own sort of integers and of tuples by a long comparator.
_DIGIT, _COUNTERS, _COMPARISON, _WIDE_COMPARISON, _XLA, _XLA_TUPLES = 3.2, 900.0, 0.26, 0.5, 4.0, 9.0
# Of selecting by rank: deciding a bit, per element and per row; and finding the next element, likewise.
_BIT, _BIT_OF_ROW, _NEXT, _NEXT_OF_ROW = 0.1, 100.0, 0.4, 200.0


class Work(NamedTuple):
    """How much there is to sort: `rows` rows of `n`, by keys of so many bits, carrying other operands or not."""

    rows: int
    n: int
    bits: int
    carries: bool = False


def best_method(work: Work) -> str:
    """'digits', 'network' or 'xla': what the model of their times says is quickest."""
    if work.n < 2 or work.rows * work.n < 1 << 9:
        return "xla"                                              # does not pay for the longer compilation
    times = _times(work)
    return min(times, key=times.__getitem__)


def selection_pays(work: Work, ranks: int) -> bool:
    """Whether finding so many elements of each row by their ranks is quicker than sorting."""
    if work.rows * work.n < 1 << 8:
        return False
    searches = -(-ranks // 2)                                     # every other rank is the one after
    selecting = work.rows * (searches * work.bits * (work.n * _BIT + _BIT_OF_ROW) + ranks * (work.n * _NEXT + _NEXT_OF_ROW))
    return selecting < min(_times(work).values())


def _times(work: Work) -> dict[str, float]:
    """Nanoseconds by method."""
    levels = math.log2(work.n)
    elements = work.rows * work.n
    digits = -(-work.bits // _BITS)
    times = {"digits": digits * (elements * _DIGIT * (1.4 if work.carries else 1) + work.rows * _COUNTERS),
             "xla": elements * levels * (_XLA_TUPLES if work.carries else _XLA)}
    if work.bits + 32 * work.carries <= 64 and work.n <= 1 << 13:
        columns = -(-work.rows // _LANES) * _LANES
        one = _WIDE_COMPARISON if work.bits + 32 * work.carries > 32 else _COMPARISON
        times["network"] = columns * work.n / 4 * levels * (levels + 1) * one + 2 * elements
    return times


# -- by digits ----------------------------------------------------------------------------------------------------

def sort_by_digits(em, key, bits: range, value=None) -> list:
    """Sort the rows of a matrix of unsigned integers by some of their bits, a second matrix along with it."""
    shifts = range(bits.start, bits.stop, _BITS)
    avals = [key.aval] if value is None else [key.aval, value.aval]
    rows, n = key.aval.shape

    def kernel(*xs):
        loops = Loops(em)
        if rows == 1:
            return [em.reshape(y, (1, n)) for y in _digits(loops, [em.reshape(x, (n,)) for x in xs], shifts)]

        def row(i, *outs):
            zero = loops.number(0)
            line = _digits(loops, [em.reshape(loops.block(x, (1, n), i, zero), (n,)) for x in xs], shifts)
            return [loops.put_block(o, em.reshape(y, (1, n)), i, zero) for o, y in zip(outs, line)]
        return loops.count(rows, [em.constant(0, a) for a in avals], row)
    return em.kernel("sort_by_digits", avals, kernel, *([key] if value is None else [key, value]))


def _digits(loops: Loops, xs: list, shifts) -> list:
    """Sort vectors together by the first: the elements with each digit are counted, then sent to their places."""
    n = xs[0].aval.shape[0]
    for shift, starts in zip(shifts, _starts(loops, xs[0], shifts)):
        xs = _unless_alike(loops, xs, n, shift, starts)
    return xs


def _unless_alike(loops: Loops, xs: list, n: int, shift: int, starts) -> list:
    """Distribute by a digit, unless all have the same, as the leading ones of small integers."""
    em, digit = loops.em, _digit(loops, loops.get(xs[0], loops.number(0)), shift)
    after = loops.do("minimum", loops.do("add", digit, 1), _DIGITS - 1)
    end = em.select(em.compare(digit, loops.number(_DIGITS - 1), "EQ"), loops.number(n), loops.get(starts, after))
    alike = em.compare(loops.do("subtract", end, loops.get(starts, digit)), loops.number(n), "EQ")
    return em.case(em.convert(alike, INT), [lambda: _distribute(loops, xs, n, shift, starts), lambda: xs],
                   [x.aval for x in xs])


def _digit(loops: Loops, key, shift: int):
    digit = loops.do("shift_right_logical", key, shift) if shift else key
    return loops.em.convert(loops.do("and", digit, _DIGITS - 1), INT)


def _starts(loops: Loops, keys, shifts) -> list:
    """For each digit place, where the elements with each digit value begin."""
    nothing = [loops.zeros((_DIGITS,))] * len(shifts)

    def tally(i, *counts):
        key = loops.get(keys, i)
        places = [_digit(loops, key, shift) for shift in shifts]
        return [loops.put(c, d, loops.do("add", loops.get(c, d), 1)) for c, d in zip(counts, places)]
    counts = loops.count(keys.aval.shape[0], nothing, tally)

    def add_up(i, *carry):
        starts, totals = carry[:len(shifts)], carry[len(shifts):]
        return [*[loops.put(s, i, t) for s, t in zip(starts, totals)],
                *[loops.do("add", t, loops.get(c, i)) for t, c in zip(totals, counts)]]
    return loops.count(_DIGITS, [*nothing, *[loops.number(0)] * len(shifts)], add_up)[:len(shifts)]


def _distribute(loops: Loops, xs: list, n: int, shift: int, starts) -> list:
    def send(i, starts, *outs):
        values = [loops.get(x, i) for x in xs]
        digit = _digit(loops, values[0], shift)
        starts = loops.put(starts, digit, loops.do("add", loops.get(starts, digit), 1))
        place = loops.do("subtract", loops.get(starts, digit), 1)     # read after the write, so that nothing is copied
        return [starts, *[loops.put(o, place, v) for o, v in zip(outs, values)]]
    return loops.count(n, [starts, *[loops.zeros((n,), x.aval.dtype) for x in xs]], send)[1:]


# -- by a network -------------------------------------------------------------------------------------------------

def sort_columns(em, x):
    """Sort the columns of a matrix of integers."""
    n, columns = x.aval.shape
    whole = -(-columns // _LANES) * _LANES
    if whole != columns:
        x = em.op("pad", make_aval((n, whole), x.aval.dtype), x, em.constant(0, make_aval((), x.aval.dtype)), attrs=(
            f"edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 0, {whole - columns}>, "
            "interior_padding = array<i64: 0, 0>"))
    out, = em.kernel("sort_columns", [x.aval], lambda x: _network(Loops(em), x), x)
    if whole == columns:
        return out
    return em.op("slice", make_aval((n, columns), x.aval.dtype), out, attrs=(
        f"start_indices = array<i64: 0, 0>, limit_indices = array<i64: {n}, {columns}>, strides = array<i64: 1, 1>"))


def _network(loops: Loops, x) -> list:
    n, columns = x.aval.shape
    stages = _stages(n)
    distances, partners = [loops.em.constant(np.array(v, INT), make_aval((len(stages),), INT)) for v in zip(*stages)]

    def strip(g, out):
        start, zero = loops.do("multiply", g, _LANES), loops.number(0)

        def two(s, here, there):
            first = loops.do("multiply", s, 2)
            there = _stage(loops, here, there, loops.get(distances, first), loops.get(partners, first))
            second = loops.do("add", first, 1)
            here = _stage(loops, there, here, loops.get(distances, second), loops.get(partners, second))
            return [here, there]
        here = loops.block(x, (n, _LANES), zero, start)
        here, _ = loops.count(len(stages) // 2, [here, loops.zeros((n, _LANES), x.aval.dtype)], two)
        return [loops.put_block(out, here, zero, start)]
    return loops.count(columns // _LANES, [loops.em.constant(0, x.aval)], strip)



def _stages(n: int) -> list[tuple[int, int]]:
    """(d, m): row i, which lacks the bit d, meets row i ^ m. An even number of them, as they go to and fro."""
    stages, size = [], 1
    while size < n:
        stages.append((size, 2 * size - 1))                        # the second half is met from its end
        stages += [(1 << k, 1 << k) for k in reversed(range(size.bit_length() - 1))]
        size *= 2
    return stages + [(1 << 30, 0)] * (len(stages) % 2)             # every row meets itself: a copy


def _stage(loops: Loops, source, target, distance, partner):
    """Each pair of rows in order: read in one matrix, written in another."""
    em, (n, lanes) = loops.em, source.aval.shape
    limit, zero, below = loops.number(n), loops.number(0), loops.do("subtract", distance, 1)

    def row_of(t):                                                 # t with a zero put in at the bit `distance`
        low = loops.do("and", t, below)
        return loops.do("add", t, loops.do("subtract", t, low))

    def meet(t, target):
        i = row_of(t)
        j = loops.do("xor", i, partner)
        j = em.select(em.compare(j, limit, "LT"), j, i)            # who would meet a row past the end stays
        a, b = [loops.block(source, (1, lanes), k, zero) for k in (i, j)]
        target = loops.put_block(target, loops.do("minimum", a, b), i, zero)
        target = loops.put_block(target, loops.do("maximum", a, b), j, zero)
        return [loops.do("add", t, 1), target]

    def condition(t, _):
        return [em.compare(row_of(t), limit, "LT")]
    return em.while_loop([zero, target], condition, meet)[1]


