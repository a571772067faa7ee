"""How running reductions are spelled: as a loop, as a native kernel, as windows, and as doubling steps."""
from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import larger
from gradix._ops.kernel_loops import Loops

_INT = np.dtype("int32")
# Elements reduced on their own before what came before is taken in, and how many meet in each pass that does it. Fewer of
# each do less work in more passes.
_CHUNK, _RADIX = 256, 4
_COSTLY_CHUNK, _COSTLY_RADIX = 64, 2
_ALIGNED = 16             # elements that a margin has at least, so that what stands behind it begins where vectors do


def emit_loop(em, x, axis: int, reverse: bool, combine, identity):
    """One step after the other; XLA:CPU makes one kernel of it."""
    def step(row, total):
        return _combined(em, combine, total, row)
    return _run(em, [x], axis, reverse, identity, lambda rows, total: step(rows[0], total))


def emit_window(em, x, axis: int, reverse: bool, combine, identity):
    """A window over everything before each place, which XLA turns into a tree."""
    aval = x.aval
    n, ndim = larger(aval.shape[axis], 1), aval.ndim
    if not aval.size:
        return x
    sizes = [n if i == axis else 1 for i in range(ndim)]
    padding = [[0, 0] for _ in range(ndim)]
    padding[axis] = [0, n - 1] if reverse else [n - 1, 0]
    initial = em.constant(identity, make_aval((), aval.dtype))
    body = combine if isinstance(combine, str) else lambda a, b: [combine(em, a, b)]
    return em.reduce_window([x], [initial], sizes, padding, [aval], body)[0]


def emit_kernel(em, x, axis: int, reverse: bool, combine, identity, costly: bool = False):
    """Rows one after the other, each in chunks, by a native kernel of the CPU."""
    aval = x.aval
    n, ndim = aval.shape[axis], aval.ndim
    order = [*[i for i in range(ndim) if i != axis], axis]
    rows = em.reshape(em.transpose(x, order), (aval.size // n, n))

    def kernel(rows):
        return _Running(em, combine, identity, reverse, costly, rows.aval.dtype).rows(rows)
    out, = em.kernel("running", [rows.aval], kernel, rows)
    out = em.reshape(out, tuple([aval.shape[i] for i in order]))
    return em.transpose(out, [order.index(i) for i in range(ndim)])


class _Running:
    """The parts of the kernel.

    A chunk is reduced by whole vectors: each element with the three before it; then each of these with those 4, 8 and 12
    places back, which makes it the reduction of the 16 elements up to its place; then by steps of 16, and so on (or with one
    before it, then with that 2 places back, and so on, if combining takes longer than passing over the chunk). Between
    the passes the elements stand behind a margin of the identity, for what would lie before the chunk. An element takes
    part in each result once, in few additions. What came before the chunk is taken in last.
    """

    def __init__(self, em, combine, identity, reverse: bool, costly: bool, dtype):
        self.em, self.loops, self.combine = em, Loops(em), combine
        self.chunk, self.radix = (_COSTLY_CHUNK, _COSTLY_RADIX) if costly else (_CHUNK, _RADIX)
        self.identity, self.reverse = em.constant(identity, make_aval((), dtype)), reverse

    def rows(self, x) -> list:
        loops, em, (count, n) = self.loops, self.em, x.aval.shape
        self.size = min(n, self.chunk)
        self.steps = [1]
        while self.steps[-1] * self.radix < self.size:
            self.steps.append(self.steps[-1] * self.radix)
        margins = [em.broadcast(self.identity, (self._margin(d) + self.size,)) for d in self.steps]

        def row(i, out, *margins):
            start = loops.do("multiply", i, n) if count > 1 else loops.number(0)
            return self._row(flat, out, margins, start, n)
        flat = em.reshape(x, (count * n,))
        out, *_ = loops.count(count, [em.constant(0, flat.aval), *margins], row)
        return [em.reshape(out, (count, n))]

    def _margin(self, distance: int) -> int:
        return max(distance * (self.radix - 1), _ALIGNED)

    def _row(self, x, out, margins, start, n: int) -> list:
        """Chunks in turn; the last ends with the row, and does again some of what the one before it did."""
        loops, size = self.loops, self.size

        def place(g):
            """Where chunk g begins."""
            at = loops.do("minimum", loops.do("multiply", g, size), n - size)
            return loops.do("add", start, self.em.op("subtract", at.aval, loops.number(n - size), at) if self.reverse else at)

        def step(g, total, out, *margins):
            made, margins = self._chunk(loops.block(x, (size,), place(g)), margins)
            out = loops.put_block(out, self._combined(self.em.broadcast(total, (size,)), made), place(g))
            before = loops.do("add", place(loops.do("add", g, 1)), size if self.reverse else -1)
            return [loops.get(out, before), out, *margins]
        _, out, *margins = loops.count(-(-n // size), [self.identity, out, *margins], step)
        return [out, *margins]

    def _chunk(self, part, margins) -> tuple:
        """A chunk reduced alone, and the arrays it stood in behind margins."""
        size, used = part.aval.shape[0], []
        for distance, array in zip(self.steps, margins):
            margin = 0 if self.reverse else self._margin(distance)
            array = self.loops.put_block(array, part, self.loops.number(margin))
            used.append(array)
            terms = [self._slice(array, margin + k * distance * (1 if self.reverse else -1), size) for k in range(self.radix)]
            while len(terms) > 1:
                terms = [self._combined(later, now) for now, later in zip(terms[::2], terms[1::2])]
            part = terms[0]
        return part, used

    def _slice(self, x, start: int, size: int):
        return self.em.op("slice", make_aval((size,), x.aval.dtype), x, attrs=(
            f"start_indices = array<i64: {start}>, limit_indices = array<i64: {start + size}>, strides = array<i64: 1>"))

    def _combined(self, before, after):
        return _combined(self.em, self.combine, before, after)


def emit_costly_kernel(em, x, axis: int, reverse: bool, combine, identity):
    """`emit_kernel` for what takes many instructions to combine."""
    return emit_kernel(em, x, axis, reverse, combine, identity, True)


def emit_recurrence(em, a, b, axis: int, reverse: bool):
    """`y_i = a_i y_(i-1) + b_i`: a loop on the CPU, doubling steps elsewhere."""
    if not em.tunes:
        return _doubling(em, a, b, axis, reverse)

    def step(rows, y):
        return em.op("add", y.aval, em.op("multiply", y.aval, rows[0], y), rows[1])
    return _run(em, [a, b], axis, reverse, 0, step)


def _combined(em, combine, x, y):
    return em.op(combine, x.aval, x, y) if isinstance(combine, str) else combine(em, x, y)


def _run(em, xs, axis: int, reverse: bool, initial, step):
    """Carry `step(rows, carry) -> carry` along `axis`, keeping each carry."""
    aval = xs[0].aval
    n = aval.shape[axis]
    if not aval.size:
        return xs[-1]
    row = make_aval(tuple([1 if i == axis else m for i, m in enumerate(aval.shape)]), aval.dtype)
    scalar = make_aval((), _INT)
    zero, one = em.constant(0, scalar), em.constant(1, scalar)

    def body(i, carry, out):
        place = em.op("subtract", scalar, em.number(n - 1, _INT), i) if reverse else i
        at = [place if k == axis else zero for k in range(aval.ndim)]
        rows = [em.dynamic_slice(x, at, row.shape) for x in xs]
        carry = step(rows, carry)
        return [em.op("add", scalar, i, one), carry, em.dynamic_update_slice(out, carry, at)]

    start = [zero, em.constant(initial, row), em.constant(0, aval)]
    return em.while_loop(start, lambda i, *_: [em.compare(i, em.number(n, _INT), "LT")], body)[2]


def _doubling(em, a, b, axis: int, reverse: bool):
    """After k steps each place has taken in the 2ᵏ before it."""
    distance, n = 1, b.aval.shape[axis]
    if type(n) is not int:

        def step(rows, y):
            return em.op("add", y.aval, em.op("multiply", y.aval, rows[0], y), rows[1])
        return _run(em, [a, b], axis, reverse, 0, step)
    while distance < n:
        b = em.op("add", b.aval, em.op("multiply", b.aval, a, _moved(em, b, axis, distance, reverse, 0)), b)
        a = em.op("multiply", a.aval, a, _moved(em, a, axis, distance, reverse, 1))
        distance *= 2
    return b


def _moved(em, x, axis: int, distance: int, reverse: bool, fill):
    by = -distance if reverse else distance
    low = ", ".join([str(by if i == axis else 0) for i in range(x.aval.ndim)])
    high = ", ".join([str(-by if i == axis else 0) for i in range(x.aval.ndim)])
    none = ", ".join(["0"] * x.aval.ndim)
    return em.op("pad", x.aval, x, em.constant(fill, make_aval((), x.aval.dtype)), attrs=(
        f"edge_padding_low = array<i64: {low}>, edge_padding_high = array<i64: {high}>, "
        f"interior_padding = array<i64: {none}>"))
