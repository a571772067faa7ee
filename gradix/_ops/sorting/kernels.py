"""Which way of sorting is the quickest for so much work: a model of their times, fitted to measurements."""
from __future__ import annotations

import math
from typing import NamedTuple

from gradix._ops.sorting.digits import digit_bits
from gradix._ops.sorting.network import LANES

_SMALL = 1 << 11                    # elements in all below which XLA's sort is kept: a kernel compiles in 0.1 s more

# Nanoseconds, measured: of one digit of one element, and of one of a digit's counters; of one comparison of one row by the
# network, per byte and of 64 bits, and of bringing an element there and back; of one comparison by XLA's own sort, of
# integers, of floats, and of several operands.
_DIGIT, _COUNTER = 5.0, 8.0
_COMPARISON, _WIDE_COMPARISON, _CARRYING = 0.065, 0.65, 2.0
_XLA, _XLA_FLOATS, _XLA_TUPLES = 4.5, 16.0, 22.0
# Of selecting by rank: deciding a bit, per element and per row; and finding the next element, likewise.
_BIT, _BIT_OF_ROW, _NEXT, _NEXT_OF_ROW = 0.1, 100.0, 0.4, 200.0
# Of finding the largest: looking at an element; and in XLA's partial sort scanning one, and one level of its heap.
_LOOK, _SCAN, _HEAP = 2.0, 2.3, 30.0
_WORTH = 5e6                        # what must be saved for half a second more of compilation


class Work(NamedTuple):
    """How much there is to sort: `rows` rows of `n`, by keys of so many bits, carrying other operands or not, floats or not."""

    rows: int
    n: int
    bits: int
    carries: bool = False
    floats: bool = False


def best_method(work: Work) -> str:
    """'digits', 'network' or 'xla': what the model of their times says is quickest."""
    if work.n < 2 or work.rows * work.n < _SMALL:
        return "xla"
    times = _times(work)
    return min(times, key=times.__getitem__)


def selection_pays(work: Work, ranks: int) -> bool:
    """Whether finding so many elements of each row by their ranks is quicker than sorting."""
    if work.rows * work.n < 1 << 8:
        return False
    searches = -(-ranks // 2)                                     # every other rank is the one after
    selecting = work.rows * (searches * work.bits * (work.n * _BIT + _BIT_OF_ROW) + ranks * (work.n * _NEXT + _NEXT_OF_ROW))
    return selecting < min(_times(work).values())


def largest_pays(work: Work, k: int) -> bool:
    """Whether finding the k-th largest of each row, and then all before it, is quicker than XLA's partial sort."""
    n = work.n
    selecting = work.bits * (n * _BIT + _BIT_OF_ROW) + min(n, 64 * k) * _LOOK + k * _DIGIT * 10
    return work.rows * (n * _SCAN + k * math.log2(n) * _HEAP - selecting) > _WORTH


def _times(work: Work) -> dict[str, float]:
    """Nanoseconds by method."""
    levels = math.log2(work.n)
    elements = work.rows * work.n
    width = digit_bits(work.bits, work.n)
    digits = -(-work.bits // width)
    comparison = _XLA_TUPLES if work.carries else _XLA_FLOATS if work.floats else _XLA
    times = {"digits": digits * (elements * _DIGIT * (1.4 if work.carries else 1) + work.rows * _COUNTER * (1 << width)),
             "xla": elements * levels * comparison}
    wide = work.bits + 32 * work.carries
    if wide <= 64 and work.n <= 1 << 13:
        rows = -(-work.rows // LANES) * LANES
        one = _WIDE_COMPARISON if wide > 32 else _COMPARISON * work.bits / 8
        times["network"] = rows * work.n * (levels * (levels + 1) / 4 * one + _CARRYING)
    return times
