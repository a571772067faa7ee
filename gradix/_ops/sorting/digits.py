"""Sorting by digits, least significant first: an element costs the same however many there are, and equal keys keep order.

All digits are counted in one pass over the keys, which gives each digit's starting places; then the elements are sent to
their places digit by digit. A digit that all keys share is left out.
"""
from __future__ import annotations

import numpy as np

from gradix._ops.kernel_loops import INT, Loops

_U32 = np.dtype("uint32")
_STEP = 4                  # elements per turn of a loop: XLA stores a loop's whole state in memory at each turn
_HALVES = 2                # counters of each digit: neighbours, often alike, do not wait for each other's


def digit_bits(bits: int, n: int) -> int:
    """How many bits a digit has, for so many keys of so many bits: the counters take time of their own."""
    return 8 if bits <= 16 or n < 1 << 14 else 11


def sort_by_digits(em, key, bits: range, value=None) -> list:
    """Sort the rows of a matrix of unsigned integers by some of their bits, a second matrix along with it."""
    xs = [key] if value is None else [key, value]
    rows, n = key.aval.shape
    whole = -(-n // _STEP) * _STEP
    last = [np.iinfo(key.aval.dtype).max, 0]                       # stays behind the row's end
    xs = [em.pad(x, (rows, whole), fill) for x, fill in zip(xs, last)]
    avals = [x.aval for x in xs]
    outs = em.kernel("sort_by_digits", avals, lambda *xs: _rows(em, xs, bits), *xs, whole=True)
    return [em.head(x, (rows, n)) for x in outs]


def _rows(em, xs, bits: range) -> list:
    loops, (rows, n) = Loops(em), xs[0].aval.shape
    if rows == 1:
        return [em.reshape(y, (1, n)) for y in _Row(loops, n, bits).sort([em.reshape(x, (n,)) for x in xs])]

    def row(i, *outs):
        zero = loops.number(0)
        line = _Row(loops, n, bits).sort([em.reshape(loops.block(x, (1, n), i, zero), (n,)) for x in xs])
        return [loops.put_block(o, em.reshape(y, (1, n)), i, zero) for o, y in zip(outs, line)]
    return loops.count(rows, [em.constant(0, x.aval) for x in xs], row)


class _Row:
    """The parts of the kernel for vectors of `n` elements."""

    def __init__(self, loops: Loops, n: int, bits: range):
        self.loops, self.em, self.n, self.bits = loops, loops.em, n, bits
        self.width = digit_bits(len(bits), n)
        self.values = 1 << self.width
        self.places = len(range(bits.start, bits.stop, self.width))

    def sort(self, xs: list) -> list:
        """Vectors sorted together by the first."""
        counts = self._tally(xs[0])
        wanted, many = self._digits_that_differ(xs[0], counts)
        starts = self._starts(counts)
        em, loops, m = self.em, self.loops, len(xs)

        def by_digit(k, starts, *state):
            p = loops.get(wanted, k)
            outs = self._distribute(p, starts, state[:m], state[m:])
            return [loops.do("add", k, 1), outs[0], *outs[1:], *outs[1:]]
        carry = [loops.number(0), starts, *xs, *[loops.zeros((self.n,), x.aval.dtype) for x in xs]]
        return em.while_loop(carry, lambda k, *_: [em.compare(k, many, "LT")], by_digit)[2:2 + m]

    def _digit(self, key, place, shift):
        """Where a key's digit is counted, if those of its place are counted from `place` on."""
        loops = self.loops
        digit = loops.em.convert(loops.do("and", loops.do("shift_right_logical", key, shift), self.values - 1), _U32)
        return loops.do("add", digit, place)

    def _tally(self, keys):
        """How many elements have each digit: twice, of every other element."""
        loops = self.loops
        size = self.places * self.values

        def step(i, counts):
            block = loops.block(keys, (_STEP,), loops.do("multiply", i, _STEP))
            for k in range(_STEP):
                key = loops.at(block, k)
                for p in range(self.places):
                    own = (k % _HALVES) * size + p * self.values
                    digit = self._digit(key, own, self.bits.start + p * self.width)
                    counts = loops.put(counts, digit, loops.do("add", loops.get(counts, digit), 1))
            return [counts]
        return loops.count(self.n // _STEP, [loops.zeros((_HALVES * size,), _U32)], step)[0]

    def _counted(self, counts, i):
        loops = self.loops
        size = self.places * self.values
        return loops.do("add", loops.get(counts, i), loops.get(counts, loops.do("add", i, size)))

    def _digits_that_differ(self, keys, counts) -> tuple:
        """The places of the digits that not all keys share, in front of a vector, and how many they are."""
        loops, em = self.loops, self.em
        wanted, many = loops.zeros((self.places,)), loops.number(0)
        first = loops.get(keys, loops.number(0))
        for p in range(self.places):
            digit = self._digit(first, p * self.values, self.bits.start + p * self.width)
            differ = em.compare(self._counted(counts, digit), loops.number(self.n, _U32), "NE")
            wanted = loops.put(wanted, many, loops.number(p))
            many = loops.do("add", many, em.convert(differ, INT))
        return wanted, many

    def _starts(self, counts):
        """Where the elements with each digit begin."""
        loops = self.loops

        def step(i, starts, *totals):
            after = []
            for p, total in enumerate(totals):
                digit = loops.em.convert(loops.do("add", i, p * self.values), _U32)
                starts = loops.put(starts, digit, total)
                after.append(loops.do("add", total, self._counted(counts, digit)))
            return [starts, *after]
        zeros = [loops.number(0, _U32)] * self.places
        return loops.count(self.values, [loops.zeros((self.places * self.values,), _U32), *zeros], step)[0]

    def _distribute(self, p, starts, xs, outs) -> list:
        """The elements in order of a digit."""
        loops, em = self.loops, self.em
        shift = em.convert(loops.do("add", loops.do("multiply", p, self.width), self.bits.start), xs[0].aval.dtype)
        base = em.convert(loops.do("multiply", p, self.values), _U32)

        def step(i, starts, *outs):
            at = loops.do("multiply", i, _STEP)
            blocks = [loops.block(x, (_STEP,), at) for x in xs]
            for k in range(_STEP):
                values = [loops.at(b, k) for b in blocks]
                digit = self._digit(values[0], base, shift)
                place = loops.fetched(starts, digit)
                starts = loops.put(starts, digit, loops.do("add", place, 1))
                outs = [loops.put(o, place, v) for o, v in zip(outs, values)]
            return [starts, *outs]
        return loops.count(self.n // _STEP, [starts, *outs], step)
