"""Finding the elements of given ranks without sorting, by a native loop.

The answer is built from its leading bit on: a bit is set if no more elements lie below the number so far than the rank
says. Counting them is a matter of whole vectors, 16 numbers of 16 bits in one instruction, so keys are taken 16 bits at a
time: of the next 16, those whose bits so far differ stand for the largest. The neighbour of an element that is known is
found by one pass over all.
"""
from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import INT, Loops

_PART = 16                              # bits of a key that are taken together
_I16, _U16 = np.dtype("int16"), np.dtype("uint16")
_LEAST = -1 << 15
_TERMS = 8                              # vectors that one step of a count takes
_SCANNED = 64                           # keys that are looked at one by one if any of them is wanted
_STEPS = (1 << 15) // _TERMS - 1        # steps whose counts fit in 16 bits


def find_ranks(em, rows, ranks):
    """The `ranks[i, j]`-th smallest of the unsigned integers `rows[i]`, for matrices of equally many rows."""
    (count, n), (_, m), dtype = rows.aval.shape, ranks.aval.shape, rows.aval.dtype
    out_aval = make_aval((count, m), dtype)

    def kernel(rows, ranks):
        loops, zero = Loops(em), em.constant(0, make_aval((), INT))
        columns = em.transpose(ranks, (1, 0)) if count > 1 else ranks

        def row(i, out, keys):
            wanted = em.reshape(loops.block(columns, (m, 1), zero, i) if count > 1 else ranks, (m,))
            found, keys = _Ranks(loops, rows, i, keys).find(wanted, m)
            return [loops.put_block(out, em.reshape(found, (1, m)), i, zero), keys]
        return loops.count(count, [em.constant(0, out_aval), _padded(em, n, dtype)], row)[:1]
    return em.kernel("find_ranks", [out_aval], kernel, rows, ranks)[0]


def find_smallest(em, rows, k: int):
    """Where the `k` smallest of the unsigned integers `rows[i]` are, in order of place; of equal ones the first."""
    (count, n), out_aval = rows.aval.shape, make_aval((rows.aval.shape[0], k), INT)

    def kernel(rows):
        loops = Loops(em)

        def row(i, out, keys):
            places, keys = _Ranks(loops, rows, i, keys).smallest(k)
            return [loops.put_block(out, em.reshape(places, (1, k)), i, loops.number(0)), keys]
        return loops.count(count, [em.constant(0, out_aval), _padded(em, n, rows.aval.dtype)], row)[:1]
    return em.kernel("find_smallest", [out_aval], kernel, rows)[0]


def _block(n: int) -> int:
    """How many keys are counted in one step."""
    return (64 if n <= 2048 else 256) * _TERMS


def _groups(n: int) -> int:
    """How many times is counted in 16 bits."""
    return -(-n // (_block(n) * _STEPS))


def _padded(em, n: int, dtype):
    """Room for a row, as many keys as there are in whole blocks and groups; the largest stand for those that are not."""
    unit = _block(n) * _groups(n)
    return em.constant(np.iinfo(dtype).max, make_aval((-(-n // unit) * unit,), dtype))


class _Ranks:
    """The parts of the kernels, for one row of keys."""

    def __init__(self, loops: Loops, rows, i, room):
        (count, n), em = rows.aval.shape, loops.em
        self.loops, self.em, self.block, self.groups, self.real = loops, em, _block(n), _groups(n), n
        row = em.reshape(loops.block(rows, (1, n), i, loops.number(0)) if count > 1 else rows, (n,))
        self.keys = loops.put_block(room, row, loops.number(0))
        self.n, self.dtype = self.keys.aval.shape[0], self.keys.aval.dtype
        self.bits = 8 * self.dtype.itemsize

    def find(self, wanted, m: int) -> tuple:
        """Each rank's element. Known are always an element, the ranks from and up to which it is the one, and the next."""
        loops, em = self.loops, self.em

        def one(j, out, element, first, end, following):
            rank = loops.get(wanted, j)
            near = em.select(em.compare(rank, end, "LT"), loops.number(0), loops.number(1))
            far = em.op("or", make_aval((), np.dtype(bool)), em.compare(rank, first, "LT"), em.compare(rank, end, "GT"))
            element, first = em.case(em.select(far, loops.number(2), near), [
                lambda: [element, first], lambda: [following, end], lambda: self._search(rank)], [element.aval, first.aval])
            return [loops.put(out, j, element), element, first, *self._above(element)]
        nothing = loops.number(0, self.dtype)
        start = [loops.zeros((m,), self.dtype), nothing, loops.number(-1), loops.number(-1), nothing]
        return loops.count(m, start, one)[0], self.keys

    def smallest(self, k: int) -> tuple:
        """The places of all keys below the one of rank k - 1, and of so many equal to it."""
        loops, em = self.loops, self.em
        limit, below = self._search(loops.number(k - 1))

        def one(i, places, found, ties):
            key = loops.get(self.keys, i)
            tie = em.convert(em.compare(key, limit, "EQ"), INT)
            tie = loops.do("minimum", tie, ties)
            taken = loops.do("add", em.convert(em.compare(key, limit, "LT"), INT), tie)
            places = loops.put(places, found, i)                 # each is written, and kept by moving on
            return [places, loops.do("add", found, taken), em.op("subtract", ties.aval, ties, tie)]

        def some(g, *carry):
            start = loops.do("multiply", g, _SCANNED)
            keys = loops.block(self.keys, (_SCANNED,), start)
            hits = em.convert(em.compare(keys, em.broadcast(limit, keys.aval.shape), "LE"), INT)
            steps = loops.do("multiply", loops.do("minimum", self._total(hits, "add", 0), 1), _SCANNED)
            return em.while_loop([loops.number(0), *carry], lambda j, *_: [em.compare(j, steps, "LT")],
                                 lambda j, *carry: [loops.do("add", j, 1), *one(loops.do("add", start, j), *carry)])[1:]
        start = [loops.zeros((k + 1,)), loops.number(0), em.op("subtract", below.aval, loops.number(k), below)]
        places = loops.count(-(-self.real // _SCANNED), start, some)[0]
        return self._slice(places, 0, k), self.keys

    def _search(self, rank) -> list:
        loops, em, width = self.loops, self.em, min(self.bits, _PART)

        def part(k, element, left):
            shift = loops.do("multiply", em.op("subtract", k.aval, loops.number(self.bits // width - 1), k), width)
            shift = em.convert(shift, self.dtype)
            number, below = self._search_part(self._parts(element, shift), left)
            return [self._with_part(element, number, shift), loops.do("subtract", left, below)]
        element, left = loops.count(self.bits // width, [loops.number(0, self.dtype), rank], part)
        return [element, loops.do("subtract", rank, left)]

    def _parts(self, element, shift):
        """16 bits of each key, in the order of signed integers; the largest where the bits before differ from the element's."""
        em = self.em
        if self.bits < _PART:
            return em.convert(self.keys, _I16)
        low = self._shifted(self.keys, shift)
        part = em.bitcast(em.convert(low, _U16), make_aval((self.n,), _I16))
        part = em.op("xor", part.aval, part, em.constant(_LEAST, part.aval))
        if self.bits == _PART:
            return part
        sixteen = em.constant(_PART, shift.aval)
        before = self._shifted(self._shifted(element, shift), sixteen)
        same = em.compare(self._shifted(low, sixteen), em.broadcast(before, (self.n,)), "EQ")
        return em.select(same, part, em.constant(-1 - _LEAST, part.aval))

    def _shifted(self, x, by):
        return self.em.op("shift_right_logical", x.aval, x, self.em.broadcast(by, x.aval.shape))

    def _with_part(self, element, part, shift):
        loops, em = self.loops, self.em
        if self.bits < _PART:
            return em.convert(part, self.dtype)
        part = em.convert(em.bitcast(loops.do("xor", part, _LEAST), make_aval((), _U16)), self.dtype)
        return loops.do("or", element, em.op("shift_left", part.aval, part, shift))

    def _search_part(self, parts, rank) -> list:
        """The largest number with no more than `rank` parts below it, and how many there are."""
        loops, em = self.loops, self.em
        width = min(self.bits, _PART)

        def step(_, bit, number, below):
            trial = loops.do("xor", number, bit)
            count = self._count(parts, trial)
            fits = em.compare(count, rank, "LE")
            return [loops.do("shift_right_logical", bit, 1), em.select(fits, trial, number), em.select(fits, count, below)]
        first, start = (_LEAST, _LEAST) if width == _PART else (1 << (width - 1), 0)
        return loops.count(width, [loops.number(first, _I16), loops.number(start, _I16), loops.number(0)], step)[1:]

    def _count(self, parts, limit):
        """How many parts lie below the limit."""
        return self._hits(parts, lambda values: self.em.compare(values, self.em.broadcast(limit, values.aval.shape), "LT"))

    def _above(self, element) -> list:
        """How many keys are no larger than the element, and the smallest of the larger ones."""
        em, largest = self.em, np.iinfo(self.dtype).max

        def larger(values):
            return em.compare(values, em.broadcast(element, values.aval.shape), "GT")

        def candidates(values):
            return em.select(larger(values), values, em.constant(largest, values.aval))
        lanes = self._fold(self.keys, candidates, "minimum", self.dtype, largest, self.loops.number(0), self.n)
        end = self.loops.do("subtract", self.loops.number(self.n), self._hits(self.keys, larger))
        return [end, self._total(lanes, "minimum", largest)]

    def _hits(self, values, of):
        """For how many values `of` holds: counted in 16 bits, for vectors of as many numbers as there are parts in one."""
        loops, em, size = self.loops, self.em, self.n // self.groups

        def some(g, total):
            counts = self._fold(values, lambda v: em.convert(of(v), _I16), "add", _I16, 0, loops.do("multiply", g, size), size)
            return [loops.do("add", total, self._total(em.convert(counts, INT), "add", 0))]
        return loops.count(self.groups, [loops.number(0)], some)[0]

    def _fold(self, values, of, combine: str, dtype, initial: int, start, size: int):
        """What `of` makes of all values, combined into one vector."""
        loops, em = self.loops, self.em
        lanes = self.block // _TERMS

        def step(g, total):
            at = loops.do("add", loops.do("multiply", g, self.block), start)
            terms = [of(loops.block(values, (lanes,), loops.do("add", at, k * lanes))) for k in range(_TERMS)]
            return [em.op(combine, total.aval, total, self._halved(terms, combine))]
        return loops.count(size // self.block, [em.constant(initial, make_aval((lanes,), dtype))], step)[0]

    def _total(self, lanes, name: str, initial: int):
        lanes = self._halved([self._slice(lanes, k, 32) for k in range(0, lanes.aval.shape[0], 32)], name)
        dtype = lanes.aval.dtype
        return self.em.reduce([lanes], [self.loops.number(initial, dtype)], (0,), [make_aval((), dtype)], name)[0]

    def _halved(self, terms: list, combine: str):
        while len(terms) > 1:
            terms = [self.em.op(combine, a.aval, a, b) for a, b in zip(terms[::2], terms[1::2])]
        return terms[0]

    def _slice(self, x, start: int, size: int):
        return self.em.op("slice", make_aval((size,), x.aval.dtype), x, attrs=(
            f"start_indices = array<i64: {start}>, limit_indices = array<i64: {start + size}>, strides = array<i64: 1>"))
