"""Finding the elements of given ranks without sorting, by a native loop.

The elements are counted by their leading bits; those in the group that holds the rank are gathered, counted by their next
bits, and so on: two passes over all elements, and a few over what is left of them.
"""
from __future__ import annotations

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import INT, Loops

_FIRST, _NEXT = 11, 8                   # bits


def find_ranks(em, rows, ranks):
    """The `ranks[i, j]`-th smallest of the unsigned integers `rows[i]`, for matrices of equally many rows."""
    (count, n), (_, m), dtype = rows.aval.shape, ranks.aval.shape, rows.aval.dtype
    out_aval = make_aval((count, m), dtype)

    def kernel(rows, ranks):
        loops, zero = Loops(em), em.constant(0, make_aval((), INT))
        columns = em.transpose(ranks, (1, 0)) if count > 1 else ranks

        def row(i, out):
            keys = em.reshape(loops.block(rows, (1, n), i, zero) if count > 1 else rows, (n,))
            wanted = em.reshape(loops.block(columns, (m, 1), zero, i) if count > 1 else ranks, (m,))
            found = _Ranks(loops, keys).find(wanted, m)
            return [loops.put_block(out, em.reshape(found, (1, m)), i, zero)]
        return loops.count(count, [em.constant(0, out_aval)], row)
    return em.kernel("find_ranks", [out_aval], kernel, rows, ranks)[0]


class _Ranks:
    """The parts of the kernel, for the keys of one row."""

    def __init__(self, loops: Loops, keys):
        self.loops, self.keys, self.n = loops, keys, keys.aval.shape[0]
        self.bits = 8 * keys.aval.dtype.itemsize

    def find(self, wanted, m: int):
        loops = self.loops
        shift = max(self.bits - _FIRST, 0)
        groups = self._tally(self.keys, loops.number(self.n), shift, self.bits - shift)

        def one(j, found):
            return [loops.put(found, j, self._of_rank(groups, loops.get(wanted, j), shift))]
        return loops.count(m, [loops.zeros((m,), self.keys.aval.dtype)], one)[0]

    def _of_rank(self, groups, rank, shift: int):
        group, rank = self._group(groups, rank)
        left, count = self._gather(self.keys, self.loops.number(self.n), group, shift, self.bits - shift)
        while shift:
            width = min(_NEXT, shift)
            shift -= width
            group, rank = self._group(self._tally(left, count, shift, width), rank)
            left, count = self._gather(left, count, group, shift, width)
        return self.loops.get(left, self.loops.number(0))

    def _digit(self, key, shift: int, width: int):
        key = self.loops.do("shift_right_logical", key, shift) if shift else key
        if shift + width < self.bits:
            key = self.loops.do("and", key, (1 << width) - 1)
        return self.loops.em.convert(key, INT)

    def _tally(self, keys, count, shift: int, width: int):
        """How many of the first `count` keys have each digit."""
        loops = self.loops

        def step(i, counts):
            digit = self._digit(loops.get(keys, i), shift, width)
            return [loops.do("add", i, 1), loops.put(counts, digit, loops.do("add", loops.get(counts, digit), 1))]
        return self._up_to(count, [loops.zeros((1 << width,))], step)[0]

    def _group(self, counts, rank) -> list:
        """The digit of the element of a rank, and its rank among those with that digit."""
        loops = self.loops

        def further(digit, before):
            return [loops.em.compare(loops.do("add", before, loops.get(counts, digit)), rank, "LE")]

        def step(digit, before):
            return [loops.do("add", digit, 1), loops.do("add", before, loops.get(counts, digit))]
        digit, before = loops.em.while_loop([loops.number(0), loops.number(0)], further, step)
        return [digit, loops.do("subtract", rank, before)]

    def _gather(self, keys, count, digit, shift: int, width: int) -> list:
        """The keys with a digit, in front, and how many they are; each is written, and kept by moving on."""
        loops = self.loops

        def step(i, kept, out):
            key = loops.get(keys, i)
            hit = loops.em.compare(self._digit(key, shift, width), digit, "EQ")
            out = loops.put(out, kept, key)
            return [loops.do("add", i, 1), loops.do("add", kept, loops.em.convert(hit, INT)), out]
        kept, out = self._up_to(count, [loops.number(0), loops.zeros((self.n,), keys.aval.dtype)], step)
        return [out, kept]

    def _up_to(self, count, carry, step) -> list:
        em = self.loops.em
        return em.while_loop([self.loops.number(0), *carry], lambda i, *_: [em.compare(i, count, "LT")], step)[1:]
