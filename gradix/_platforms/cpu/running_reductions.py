"""Running reductions on the CPU: as loops, and as native kernels that go through rows in chunks."""

from __future__ import annotations

from functools import partial
from math import prod

from gradix._core.aval import make_aval
from gradix._core.dtypes import COMPLEX
from gradix._ops.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p, recurrence_p
from gradix._ops.cumulative_lowering import emit_loop
from gradix._platforms.cpu.kernel_loops import Loops
from gradix._platforms.records import Rewrite

# The elements of a chunk, which is reduced before the total of earlier chunks is added, and of those
# the elements that each pass combines. Smaller numbers mean less work in more passes.
_CHUNK, _RADIX = 256, 4
_COSTLY_CHUNK, _COSTLY_RADIX = 64, 2
# A margin has at least so many elements, so that the elements behind it are aligned.
_ALIGNED = 16


def _by_loop(em, x, axis: int, reverse: bool, combine, identity):
    """A loop over the steps, which XLA compiles to one kernel."""
    return emit_loop(em, [x], axis, reverse, identity, lambda rows, total: _combined(em, combine, total, rows[0]))


def _by_kernel(em, x, axis: int, reverse: bool, combine, identity, *, costly: bool = False):
    """A native kernel of the CPU, which goes through each row in chunks."""
    aval = x.aval
    n, ndim = aval.shape[axis], aval.ndim
    order = [*[i for i in range(ndim) if i != axis], axis]
    rows = em.reshape(em.transpose(x, order), (aval.size // n, n))

    def kernel(rows):
        return _Running(em, combine, identity, reverse, costly, rows.aval.dtype).rows(rows)

    (out,) = em.kernel("running", [rows.aval], kernel, rows)
    out = em.reshape(out, tuple([aval.shape[i] for i in order]))
    return em.transpose(out, [order.index(i) for i in range(ndim)])


class _Running:
    """The parts of the kernel.

    A chunk is reduced in passes over whole vectors. The first pass combines each element with the
    three before it. The second combines each result with those 4, 8 and 12 places before, so that
    it covers 16 elements; the next one takes steps of 16, and so on. If combining is costly, each
    pass combines two elements instead of four. In each pass a margin of the identity stands before
    the chunk. So each result takes part of every element once, in few additions. The total of the
    earlier chunks is added last.
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
        """Reduce a row chunk by chunk.

        The last chunk ends with the row, and may overlap the one before.
        """
        loops, size = self.loops, self.size

        def place(g):
            """The start of chunk g."""
            at = loops.do("minimum", loops.do("multiply", g, size), n - size)
            return loops.do(
                "add", start, self.em.op("subtract", at.aval, loops.number(n - size), at) if self.reverse else at
            )

        def step(g, total, out, *margins):
            made, margins = self._chunk(loops.block(x, (size,), place(g)), margins)
            out = loops.put_block(out, self._combined(self.em.broadcast(total, (size,)), made), place(g))
            before = loops.do("add", place(loops.do("add", g, 1)), size if self.reverse else -1)
            return [loops.get(out, before), out, *margins]

        _, out, *margins = loops.count(-(-n // size), [self.identity, out, *margins], step)
        return [out, *margins]

    def _chunk(self, part, margins) -> tuple:
        """The running reduction of one chunk, and the arrays with margins that it used."""
        size, used = part.aval.shape[0], []
        for distance, array in zip(self.steps, margins):
            margin = 0 if self.reverse else self._margin(distance)
            array = self.loops.put_block(array, part, self.loops.number(margin))
            used.append(array)
            terms = [
                self._slice(array, margin + k * distance * (1 if self.reverse else -1), size) for k in range(self.radix)
            ]
            while len(terms) > 1:
                terms = [self._combined(later, now) for now, later in zip(terms[::2], terms[1::2])]
            part = terms[0]
        return part, used

    def _slice(self, x, start: int, size: int):
        return self.em.op(
            "slice",
            make_aval((size,), x.aval.dtype),
            x,
            attrs=(
                f"start_indices = array<i64: {start}>, limit_indices = array<i64: {start + size}>, "
                "strides = array<i64: 1>"
            ),
        )

    def _combined(self, before, after):
        return _combined(self.em, self.combine, before, after)


def _combined(em, combine, x, y):
    return em.op(combine, x.aval, x, y) if isinstance(combine, str) else combine(em, x, y)


# -- which -----------------------------------------------------------------------------------------

_LOOP_STEPS, _LOOP_SIZE, _LOOP_ROW, _KERNEL_STEPS = 4096, 1 << 11, 64, 12


def _writer(primitive, aval, axis: int):
    """The lowering to use, by the number of steps and the elements of each; None for windows."""
    steps, inner = aval.shape[axis], prod(aval.shape[axis + 1 :])
    rows = inner == 1 and steps > _KERNEL_STEPS
    has_kernel = primitive is not cumlogsumexp_p or aval.dtype not in COMPLEX
    if has_kernel and _LOOP_SIZE < aval.size < 1 << 31 and (rows or steps > _LOOP_STEPS):
        costly = primitive is cumlogsumexp_p
        return partial(_by_kernel, costly=costly) if inner < _LOOP_ROW else _by_loop
    return _by_loop if steps <= _LOOP_STEPS else None


def _has_writer(site) -> bool:
    (x,) = site.values
    return type(x.aval.size) is int and _writer(site.primitive, x.aval, site.params["axis"]) is not None


def _running(em, site, x):
    p, axis = site.primitive, site.params["axis"]
    x = p.widened(em, x)
    write = _writer(p, x.aval, axis)
    return em.convert(write(em, x, axis, site.params["reverse"], p.combine, p.identity(x.aval.dtype)), site.out.dtype)


def _recurrence(em, site, a, b):
    def step(rows, y):
        return em.op("add", y.aval, em.op("multiply", y.aval, rows[0], y), rows[1])

    return emit_loop(em, [a, b], site.params["axis"], site.params["reverse"], 0, step)


REWRITES = (
    Rewrite(
        "running_reductions_by_loops",
        (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p),
        _running,
        _has_writer,
        native=True,
    ),
    Rewrite("recurrences_by_loops", (recurrence_p,), _recurrence, native=True),
)
