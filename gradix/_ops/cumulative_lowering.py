"""How running reductions are spelled: as a loop, as a native kernel, as windows, and as doubling steps."""
from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.kernel_loops import Loops

_INT = np.dtype("int32")
_CHUNK = 1024             # elements summed on their own before what came before is taken in: keeps sums accurate


def emit_loop(em, x, axis: int, reverse: bool, combine, identity):
    """One step after the other; XLA:CPU makes one kernel of it."""
    def step(row, total):
        return _combined(em, combine, total, row)
    return _run(em, [x], axis, reverse, identity, lambda rows, total: step(rows[0], total))


def emit_window(em, x, axis: int, reverse: bool, combine, identity):
    """A window over everything before each place, which XLA turns into a tree."""
    aval = x.aval
    n, ndim = aval.shape[axis], aval.ndim
    if not aval.size:
        return x
    sizes = [n if i == axis else 1 for i in range(ndim)]
    padding = [[0, 0] for _ in range(ndim)]
    padding[axis] = [0, n - 1] if reverse else [n - 1, 0]
    initial = em.constant(identity, make_aval((), aval.dtype))
    body = combine if isinstance(combine, str) else lambda a, b: [combine(em, a, b)]
    return em.op("reduce_window", aval, x, initial, regions=(em.reducer([aval.dtype], body),), attrs=(
        f"window_dimensions = array<i64: {', '.join(map(str, sizes))}>, "
        f"padding = dense<{padding}> : tensor<{ndim}x2xi64>"))


def emit_kernel(em, x, axis: int, reverse: bool, combine, identity):
    """Rows one after the other, each in vectors of neighbours, by a native kernel of the CPU."""
    aval = x.aval
    n, ndim = aval.shape[axis], aval.ndim
    order = [*[i for i in range(ndim) if i != axis], axis]
    rows = em.reshape(em.transpose(x, order), (aval.size // n, n))

    def kernel(rows):
        return _Running(em, combine, identity, reverse, rows.aval.dtype).rows(rows)
    out, = em.kernel("running", [rows.aval], kernel, rows)
    out = em.reshape(out, tuple([aval.shape[i] for i in order]))
    return em.transpose(out, [order.index(i) for i in range(ndim)])


class _Running:
    """The parts of the kernel.

    A step reduces `vector` elements together, in log₂(vector) shifts; `chunked` says that the result depends on the order.
    """

    def __init__(self, em, combine, identity, reverse: bool, dtype):
        self.em, self.loops, self.combine = em, Loops(em), combine
        self.chunked = isinstance(combine, str)
        self.vector = 8 if self.chunked else 4
        self.identity, self.reverse = em.constant(identity, make_aval((), dtype)), reverse

    def rows(self, x) -> list:
        loops, (count, n) = self.loops, x.aval.shape

        def row(i, out):
            start = loops.do("multiply", i, n) if count > 1 else loops.number(0)
            return [self._row(flat, out, start, n)]
        flat = self.em.reshape(x, (count * n,))
        out, = loops.count(count, [self.em.constant(0, flat.aval)], row)
        return [self.em.reshape(out, (count, n))]

    def _row(self, x, out, start, n: int):
        """Whole chunks, and then what is left over."""
        chunks, rest = divmod(n, _CHUNK)
        total = self.identity
        if chunks:
            first = self.loops.do("add", start, rest) if self.reverse else start

            def step(g, total, out):
                place = self.em.op("subtract", g.aval, self.loops.number(chunks - 1), g) if self.reverse else g
                at = self.loops.do("add", first, self.loops.do("multiply", place, _CHUNK))
                return self._chunk(x, out, at, total, _CHUNK)
            total, out = self.loops.count(chunks, [total, out], step)
        if rest:
            at = start if self.reverse else self.loops.do("add", start, chunks * _CHUNK)
            total, out = self._chunk(x, out, at, total, rest)
        return out

    def _chunk(self, x, out, at, total, size: int) -> list:
        """Reduce a chunk alone, and combine each element with the total before."""
        em, loops = self.em, self.loops
        whole = -(-size // self.vector) * self.vector
        part = self._moved(loops.block(x, (size,), at), *((whole - size, 0) if self.reverse else (0, whole - size)))

        def step(i, before, made):
            i = em.op("subtract", i.aval, loops.number(whole // self.vector - 1), i) if self.reverse else i
            place = loops.do("multiply", i, self.vector)
            vector = self._vector(loops.block(part, (self.vector,), place))
            vector = self._combined(em.broadcast(before, (self.vector,)), vector)
            return [self._end(vector), loops.put_block(made, vector, place)]
        first = self.identity if self.chunked else total
        last, made = loops.count(whole // self.vector, [first, em.constant(0, part.aval)], step)
        made = self._moved(made, *((size - whole, 0) if self.reverse else (0, size - whole)))
        if not self.chunked:
            return [last, loops.put_block(out, made, at)]
        made = self._combined(em.broadcast(total, (size,)), made)
        return [self._combined(total, last), loops.put_block(out, made, at)]

    def _vector(self, v):
        distance = 1
        while distance < self.vector:
            before = self._moved(v, *((-distance, distance) if self.reverse else (distance, -distance)))
            v, distance = self._combined(before, v), 2 * distance
        return v

    def _end(self, vector):
        return self.loops.get(vector, self.loops.number(0 if self.reverse else self.vector - 1))

    def _combined(self, before, after):
        return _combined(self.em, self.combine, before, after)

    def _moved(self, v, low: int, high: int):
        """`v` with elements of no effect added at the ends, or elements there taken away."""
        if not low and not high:
            return v
        aval = make_aval((v.aval.shape[0] + low + high,), v.aval.dtype)
        return self.em.op("pad", aval, v, self.identity, attrs=(
            f"edge_padding_low = array<i64: {low}>, edge_padding_high = array<i64: {high}>, "
            "interior_padding = array<i64: 0>"))


def emit_recurrence(em, a, b, axis: int, reverse: bool):
    """`y_i = a_i y_(i-1) + b_i`: a loop on the CPU, doubling steps elsewhere."""
    if em.platform != "cpu":
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
    sizes = ", ".join(map(str, row.shape))

    def body(i, carry, out):
        place = em.op("subtract", scalar, em.constant(n - 1, scalar), i) if reverse else i
        at = [place if k == axis else zero for k in range(aval.ndim)]
        rows = [em.op("dynamic_slice", row, x, *at, attrs=f"slice_sizes = array<i64: {sizes}>") for x in xs]
        carry = step(rows, carry)
        return [em.op("add", scalar, i, one), carry, em.op("dynamic_update_slice", aval, out, carry, *at)]

    start = [zero, em.constant(initial, row), em.constant(0, aval)]
    return em.while_loop(start, lambda i, *_: [em.compare(i, em.constant(n, scalar), "LT")], body)[2]


def _doubling(em, a, b, axis: int, reverse: bool):
    """After k steps each place has taken in the 2ᵏ before it."""
    distance, n = 1, b.aval.shape[axis]
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
