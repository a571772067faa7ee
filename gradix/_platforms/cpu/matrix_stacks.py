"""Factorizations of many small matrices by native loops of the CPU, with one matrix in each lane.

LAPACK is called once for each matrix, which costs more than the arithmetic on a few rows. Here the
matrices of a chunk are transposed, so that the elements at one place are one contiguous vector. The
textbook algorithms run on these vectors. Their loops over rows are not unrolled, which keeps the
compilation short.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.linalg.lu import lu_p
from gradix._ops.linalg.triangular import cholesky_p, triangular_solve_p
from gradix._platforms.cpu.kernel_loops import INT, Loops
from gradix._platforms.records import Rewrite

# The matrices of a chunk. With fewer, LLVM unrolls the loops, which makes them slower.
_LANES = 128
_REAL = (np.dtype("float32"), np.dtype("float64"))
# So many matrices make up for the longer compilation; so many bytes per matrix keep a chunk in
# cache.
_FEWEST, _BYTES = 256, 576


def _is_stack(matrices, columns: int = 1) -> bool:
    """Whether these loops are quicker than LAPACK on square matrices, with right sides if any."""
    shape = matrices.shape
    if matrices.dtype not in _REAL or not all(type(n) is int for n in (*shape, columns)) or not matrices.size:
        return False
    rows, matrix_columns = shape[-2:]
    fits = rows == matrix_columns and rows * max(rows, columns) * matrices.dtype.itemsize <= _BYTES
    return fits and prod(shape[:-2]) >= _FEWEST


def _is_stack_of_systems(site) -> bool:
    return bool(site.out.size) and _is_stack(
        site.values[0].aval, site.out.shape[-1 if site.params["left_side"] else -2]
    )


def emit_lu(em, outs, x) -> list:
    """The LU factors, the row exchanges counted from 0, and the permutation they make."""
    return _by_lanes(em, "lu_of_stack", outs, lambda a: _Lanes(em, a).lu(a), [x])


def emit_triangular_solve(em, out, a, b, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool):
    """X with `op(a) X = b`, or `X op(a) = b`, which is `op(a)ᵀ Xᵀ = bᵀ`."""
    flip = transpose_a == left_side
    return _by_lanes(
        em,
        "triangular_solve_of_stack",
        [out],
        lambda a, b: [_Lanes(em, a).solve(a, b, lower != flip, unit_diagonal)],
        [a, b],
        flips=(flip, not left_side),
        out_flip=not left_side,
    )[0]


def emit_cholesky(em, out, x):
    """The lower factors; NaN where a matrix is not positive definite."""
    return _by_lanes(em, "cholesky_of_stack", [out], lambda a: [_Lanes(em, a).cholesky(a)], [x])[0]


def _by_lanes(em, name: str, outs, function, operands, flips=(False, False), *, out_flip: bool = False) -> list:
    """Apply `function`, on arrays whose last axis is the lanes, to stacks of matrices.

    A flip transposes each matrix of an operand or result.
    """
    loops, lead = Loops(em), operands[0].aval.ndim - 2
    count = prod(operands[0].aval.shape[:lead])
    lanes = min(_LANES, count)
    flat = [em.reshape(x, (count, *x.aval.shape[lead:])) for x in operands]
    avals = [make_aval((count, *t.shape[lead:]), t.dtype) for t in outs]

    def kernel(*xs):
        def chunk(i, *results):
            # The last chunk starts early enough to be full. Matrices of two chunks get the same
            # result twice.
            at = loops.do("minimum", loops.do("multiply", i, lanes), count - lanes)

            def starts(x):
                return [at, *[loops.number(0)] * (x.aval.ndim - 1)]

            blocks = [loops.block(x, (lanes, *x.aval.shape[1:]), *starts(x)) for x in xs]
            found = function(*[em.transpose(b, (2, 1, 0) if flip else (1, 2, 0)) for b, flip in zip(blocks, flips)])
            found = [
                em.transpose(f, (1, 0) if f.aval.ndim == 2 else (2, 1, 0) if out_flip else (2, 0, 1)) for f in found
            ]
            return [loops.put_block(r, em.convert(f, r.aval.dtype), *starts(r)) for r, f in zip(results, found)]

        return loops.count(-(-count // lanes), [em.constant(0, a) for a in avals], chunk)

    return [em.reshape(f, t.shape) for f, t in zip(em.kernel(name, avals, kernel, *flat), outs)]


class _Lanes(Loops):
    """Elimination on arrays (n, n, lanes).

    Row numbers are floats, so that all vectors have one width.
    """

    __slots__ = ("dtype", "lanes", "n")

    def __init__(self, em, a):
        super().__init__(em)
        self.n, self.lanes, self.dtype = a.aval.shape[0], a.aval.shape[-1], a.aval.dtype

    # -- words -------------------------------------------------------------------------------------

    def row(self, x, i):
        """`x[i]`, for an index of the running loop."""
        rest = x.aval.shape[1:]
        return self.em.reshape(self.block(x, (1, *rest), i, *[self.number(0)] * len(rest)), rest)

    def put_row(self, x, value, i):
        starts = [self.number(0)] * value.aval.ndim
        return self.put_block(x, self.em.reshape(value, (1, *value.aval.shape)), i, *starts)

    def column(self, x, k):
        """`x[:, k]`."""
        zero = self.number(0)
        return self.em.reshape(self.block(x, (self.n, 1, self.lanes), zero, k, zero), (self.n, self.lanes))

    def part(self, x, start: int, stop: int, axis: int = 0):
        """`x[start:stop]`."""
        shape = list(x.aval.shape)
        low, high = [0] * len(shape), list(shape)
        low[axis], high[axis], shape[axis] = start, stop, stop - start
        attrs = ", ".join(
            [
                f"{name} = array<i64: {', '.join(map(str, v))}>"
                for name, v in (("start_indices", low), ("limit_indices", high), ("strides", [1] * len(shape)))
            ]
        )
        return self.em.op("slice", make_aval(tuple(shape), x.aval.dtype), x, attrs=attrs)

    def at(self, x, i: int):
        """`x[i]`, for an index known when the program is written."""
        return self.em.reshape(self.part(x, i, i + 1), x.aval.shape[1:])

    def spread(self, x, like):
        """A vector or a number, broadcast to every row."""
        return self.em.broadcast(x, like.aval.shape)

    def fill(self, value, like):
        return self.em.constant(value, make_aval(like.aval.shape, self.dtype))

    def equal(self, x, y):
        return self.em.compare(x, y, "EQ")

    def minus_product(self, x, y, z):
        """`x - y z`."""
        return self.do("subtract", x, self.do("multiply", y, z))

    def as_float(self, i):
        return self.em.convert(i, self.dtype)

    # -- factorizations ----------------------------------------------------------------------------

    def lu(self, a) -> list:
        """Factors, exchanges and permutation.

        Each row carries its number, which moves in exchanges.
        """
        em, n = self.em, self.n
        numbers = em.iota(make_aval((n, 1, self.lanes), self.dtype), 0)
        a = em.op("concatenate", make_aval((n, n + 1, self.lanes), self.dtype), a, numbers, attrs="dimension = 1 : i64")
        exchanges = em.constant(0, make_aval((n, self.lanes), self.dtype))
        a, exchanges = self.count(n, [a, exchanges], self._lu_step)
        order = em.reshape(self.part(a, n, n + 1, 1), (n, self.lanes))
        return [self.part(a, 0, n, 1), exchanges, order]

    def _lu_step(self, k, a, exchanges):
        column, first = self.column(a, k), self.row(a, k)
        pivot = self._pivot(column, k)
        top = self.at(a, self.n - 1)
        for i in range(self.n - 1):
            top = self.em.select(self.equal(self.spread(pivot, top), self.fill(i, top)), self.at(a, i), top)
        # The column of L, after the exchange of rows. A zero pivot leaves zeros.
        here = self.equal(self.spread(pivot, column), self.em.iota(column.aval, 0))
        head = self.row(top, k)
        head = self.em.select(self.equal(head, self.fill(0, head)), self.fill(1, head), head)
        factors = self.do(
            "divide", self.em.select(here, self.spread(self.row(first, k), column), column), self.spread(head, column)
        )

        def eliminate(i, a, k):
            row, factor = self.row(a, i), self.spread(self.row(factors, i), first)
            row = self.em.select(self.equal(self.spread(pivot, row), self.spread(self.as_float(i), row)), first, row)
            at = self.em.iota(make_aval(row.aval.shape, INT), 0)
            inside = self.do(
                "and",
                self.em.compare(at, self.spread(k, at), "GT"),
                self.em.compare(at, self.em.constant(self.n, at.aval), "LT"),
            )
            row = self.em.select(
                inside,
                self.minus_product(row, factor, top),
                self.em.select(self.equal(at, self.spread(k, at)), factor, row),
            )
            # The minimum leaves k unchanged, but hides this from XLA, which would otherwise compute
            # the masks of `at` once and load them in each step.
            return [self.put_row(a, row, i), self.do("minimum", k, i)]

        a, _ = self.count(self.n, [a, k], eliminate, self.do("add", k, 1))
        return [self.put_row(a, top, k), self.put_row(exchanges, pivot, k)]

    def _pivot(self, column, k):
        """The row from k on with the largest element, as in BLAS: the first, or k if it is NaN."""
        best, size = (self.spread(self.as_float(k), self.at(column, 0)), self.em.op("abs", column.aval, column))
        largest = self.row(size, k)
        for i in range(1, self.n):
            larger = self.em.compare(self.at(size, i), largest, "GT")
            larger = self.do("and", larger, self.em.broadcast(self.em.compare(self.number(i), k, "GT"), (self.lanes,)))
            largest = self.em.select(larger, self.at(size, i), largest)
            best = self.em.select(larger, self.fill(i, best), best)
        return best

    def solve(self, a, b, lower: bool, unit_diagonal: bool):
        """X with `a X = b` for `b` (n, columns, lanes), by rows."""

        def step(j, x):
            k = j if lower else self.do("subtract", self.number(self.n - 1), j)
            known = self.row(x, k)
            if not unit_diagonal:
                known = self.do("divide", known, self.spread(self.row(self.row(a, k), k), known))
            number = make_aval(known.aval.shape, INT)

            def eliminate(i, x):
                row, factor = self.row(x, i), self.spread(self.row(self.row(a, i), k), known)
                here = self.equal(self.em.broadcast(i, number.shape), self.em.broadcast(k, number.shape))
                return [self.put_row(x, self.em.select(here, known, self.minus_product(row, factor, known)), i)]

            after = self.do("add", k, 1)
            return self.count(self.n if lower else after, [x], eliminate, k if lower else 0)

        return self.count(self.n, [b], step)[0]

    def cholesky(self, a):
        """The lower factor.

        A pivot that is not positive leaves 0 or NaN there, and makes all NaN.
        """
        em, n = self.em, self.n

        def step(k, a):
            column = self.column(a, k)
            head = self.row(column, k)
            root, number = (em.op("sqrt", head.aval, head), em.iota(make_aval(column.aval.shape, INT), 0))
            factors = em.select(
                self.equal(number, self.spread(k, number)),
                self.spread(root, column),
                self.do("divide", column, self.spread(root, column)),
            )

            def eliminate(i, a, k):
                row, factor = self.row(a, i), self.spread(self.row(factors, i), factors)
                at = em.iota(number.aval, 0)
                row = em.select(
                    em.compare(at, self.spread(k, at), "GT"),
                    self.minus_product(row, factor, factors),
                    em.select(self.equal(at, self.spread(k, at)), factor, row),
                )
                return [self.put_row(a, row, i), self.do("minimum", k, i)]

            return self.count(n, [a, k], eliminate, k)[:1]

        (a,) = self.count(n, [a], step)
        scale = em.constant(1, make_aval((self.lanes,), self.dtype))
        for k in range(n):
            head = self.at(self.at(a, k), k)
            scale = em.select(em.compare(head, self.fill(0, head), "GT"), scale, self.fill(np.nan, scale))
        at = make_aval(a.aval.shape, INT)
        lower = em.compare(em.iota(at, 0), em.iota(at, 1), "GE")
        return em.select(lower, self.do("multiply", a, self.spread(scale, a)), em.constant(0, a.aval))


def _triangular_solve(em, site, a, b):
    p = site.params
    return emit_triangular_solve(
        em,
        site.out,
        a,
        b,
        left_side=p["left_side"],
        lower=p["lower"],
        transpose_a=p["transpose_a"],
        unit_diagonal=p["unit_diagonal"],
    )


REWRITES = (
    Rewrite(
        "lu_of_stacks",
        (lu_p,),
        lambda em, site, x: emit_lu(em, site.out, x),
        lambda site: _is_stack(site.out[0]),
        native=True,
    ),
    Rewrite(
        "cholesky_of_stacks",
        (cholesky_p,),
        lambda em, site, x: emit_cholesky(em, site.out, x),
        lambda site: _is_stack(site.out),
        native=True,
    ),
    Rewrite("triangular_solves_of_stacks", (triangular_solve_p,), _triangular_solve, _is_stack_of_systems, native=True),
)
