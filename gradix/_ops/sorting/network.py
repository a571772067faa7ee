"""Sorting by a network of comparisons over many rows at once.

The network (bitonic, with every comparison in one direction) does the same comparisons whatever the data, so that one
instruction does a comparison of 8 or 16 rows; it pays for many short ones.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import INT, Loops

LANES = 128               # rows that go through the network together; fewer than 64 are not vectorised
_PART = 64                 # elements of each of them that are written back at a time, as they stay in the cache

_I64, _U64 = np.dtype("int64"), np.dtype("uint64")


def sort_rows(em, x, axis: int):
    """Sort the rows (axis 1) or columns (axis 0) of a matrix of unsigned integers."""
    shape = x.aval.shape
    lanes = -(-shape[1 - axis] // LANES) * LANES
    own = x.aval.dtype
    x = _signed(em, x) if own == _U64 else x                       # AVX2 compares 64 bits with their sign only
    x = em.pad(x, (lanes, shape[1]) if axis else (shape[0], lanes), 0)
    out, = em.kernel("sort_by_network", [x.aval], lambda x: [_strips(Loops(em), x, axis)], x, whole=True)
    out = em.head(out, shape)
    return _unsigned(em, out) if own == _U64 else out


def _signed(em, x):
    out = make_aval(x.aval.shape, _I64)
    return em.op("xor", out, em.bitcast(x, out), em.constant(np.iinfo(_I64).min, out))


def _unsigned(em, x):
    turned = em.op("xor", x.aval, x, em.constant(np.iinfo(_I64).min, x.aval))
    return em.bitcast(turned, make_aval(x.aval.shape, _U64))


def _strips(loops: Loops, x, axis: int):
    """Some rows after others, as columns of a matrix of their own with a last row that nothing exceeds."""
    em, n, zero = loops.em, x.aval.shape[axis], loops.number(0)
    strip = make_aval((n + 1, LANES), x.aval.dtype)
    passes = np.array(_passes(n), INT)
    table = em.constant(passes.reshape(-1), make_aval((passes.size,), INT))

    def one(g, out):
        start = loops.do("multiply", g, LANES)
        if axis:
            here = em.transpose(loops.block(x, (LANES, n), start, zero), (1, 0))
        else:
            here = loops.block(x, (n, LANES), zero, start)
        here = _network(loops, em.pad(here, strip.shape, np.iinfo(strip.dtype).max), table)
        if axis:
            return [_as_rows(loops, here, out, start)]
        return [loops.put_block(out, em.head(here, (n, LANES)), zero, start)]
    return loops.count(x.aval.shape[1 - axis] // LANES, [em.constant(0, x.aval)], one)[0]


def _as_rows(loops: Loops, columns, rows, start):
    """A matrix with the columns of another put in as rows, a part of each at a time."""
    n, zero = rows.aval.shape[1], loops.number(0)
    length = min(n, _PART)

    def some(k, rows):
        at = loops.do("minimum", loops.do("multiply", k, length), n - length)
        part = loops.em.transpose(loops.block(columns, (length, LANES), at, zero), (1, 0))
        return [loops.put_block(rows, part, start, at)]
    return loops.count(-(-n // length), [rows], some)[0]


class _Pass(NamedTuple):
    """Two stages: row i meets row i ^ first, then row i ^ second, whose highest bit is a lower one; 0: nothing is done."""

    first: int
    second: int
    first_top: int
    second_top: int
    turned: int             # whether `first` has the highest bit of `second`


def _passes(n: int) -> list[_Pass]:
    """An even number of passes, as they go to and fro."""
    passes, size = [], 1
    while size < n:
        steps = [1 << k for k in reversed(range(size.bit_length() - 1))]
        if len(steps) % 2 == 0:
            passes.append(_Pass(2 * size - 1, 0, size, 0, 0))      # the second half is met from its end
        else:
            passes.append(_Pass(2 * size - 1, steps[0], size, steps[0], 1))
            del steps[0]
        passes += [_Pass(a, b, a, b, 0) for a, b in zip(steps[::2], steps[1::2])]
        size *= 2
    return passes + [_Pass(0, 0, 0, 0, 0)] * (len(passes) % 2)


def _network(loops: Loops, here, table):
    """The columns sorted, but for the last row."""
    there, fields = loops.em.constant(np.iinfo(here.aval.dtype).max, here.aval), len(_Pass._fields)

    def two(k, here, there):
        at = loops.do("multiply", k, 2 * fields)
        there = _pass(loops, here, there, loops.block(table, (fields,), at))
        return [_pass(loops, there, here, loops.block(table, (fields,), loops.do("add", at, fields))), there]
    return loops.count(table.aval.size // (2 * fields), [here, there], two)[0]


def _pass(loops: Loops, source, target, fields):
    """Four rows at a time through two stages: read in one matrix, written in another.

    The rows are i, i ^ first, i ^ second and i ^ first ^ second, where i lacks the highest bits of both. Of each pair the
    lower one gets the minimum. Those past the end are the last one, which nothing exceeds.
    """
    em, (n, lanes) = loops.em, source.aval.shape
    limit, zero = loops.number(n - 1), loops.number(0)
    first, second, first_top, second_top, turned = [loops.at(fields, k) for k in range(len(_Pass._fields))]

    def base(t):
        for top in (second_top, first_top):                        # t with a zero put in at that bit
            t = loops.do("add", t, loops.do("and", t, loops.do("subtract", zero, top)))
        return t

    def meet(t, target):
        a = base(t)
        b, c = loops.do("xor", a, first), loops.do("xor", a, second)
        d = loops.do("xor", b, second)
        a, b, c, d = rows = [loops.do("minimum", i, limit) for i in (a, b, c, d)]
        w, x, y, z = [loops.block(source, (1, lanes), i, zero) for i in rows]
        low, high = [(loops.do(name, w, x), loops.do(name, y, z)) for name in ("minimum", "maximum")]
        swap = em.compare(turned, zero, "NE")
        b, d = em.select(swap, d, b), em.select(swap, b, d)
        for i, name, pair in ((a, "minimum", low), (c, "maximum", low), (b, "minimum", high), (d, "maximum", high)):
            target = loops.put_block(target, loops.do(name, *pair), i, zero)
        return [loops.do("add", t, 1), target]
    return em.while_loop([zero, target], lambda t, _: [em.compare(base(t), limit, "LT")], meet)[1]
