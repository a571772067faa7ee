"""How running reductions are spelled: as a loop, as windows, and as doubling steps."""
from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval

_INT = np.dtype("int32")


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
