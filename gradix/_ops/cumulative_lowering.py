"""Lowering of running reductions as windows, and of recurrences as doubling steps or loops."""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import larger
from gradix._ops.windows.lowering import emit_windows

_INT = np.dtype("int32")
_FEW = 256  # elements of which each may look at all others, in no time


def emit_window(em, x, axis: int, reverse: bool, combine, identity):
    """A reduction over the window of all elements up to each place, which XLA makes a tree of.

    XLA makes none of an axis that it divides over devices. There each device gets a block of the axis, reduces
    that, and combines it with what the blocks before amount to.
    """
    n = x.aval.shape[axis]
    if not em.is_divided or type(n) is not int or n <= _FEW:
        return _window(em, x, axis, reverse, combine, identity)
    aval, ndim = x.aval, x.aval.ndim
    count = len(em.meshes.devices)
    size = -(-n // count)
    whole = [count * size if i == axis else m for i, m in enumerate(aval.shape)]
    x = em.pad_to(x, whole, identity)
    blocks = em.reshape(x, (*whole[:axis], count, size, *whole[axis + 1 :]))
    inside = _window(em, blocks, axis + 1, reverse, combine, identity)
    place = 0 if reverse else size - 1
    ends = [(place, place + 1) if i == axis + 1 else (0, m) for i, m in enumerate(blocks.aval.shape)]
    totals = _moved(em, em.slice(inside, *zip(*ends)), axis, 1, reverse, identity)
    totals = em.gathered(_window(em, totals, axis, reverse, combine, identity), (axis,))
    before = em.broadcast_in_dim(totals, inside.aval, range(ndim + 1))
    pair = (inside, before) if reverse else (before, inside)
    found = em.op(combine, inside.aval, *pair) if isinstance(combine, str) else combine(em, *pair)
    return em.head(em.reshape(found, whole), aval.shape)


def _window(em, x, axis: int, reverse: bool, combine, identity):
    aval = x.aval
    n, ndim = larger(aval.shape[axis], 1), aval.ndim
    if not aval.size:
        return x
    sizes = [n if i == axis else 1 for i in range(ndim)]
    padding = [[0, 0] for _ in range(ndim)]
    padding[axis] = [0, n - 1] if reverse else [n - 1, 0]
    initial = em.constant(identity, make_aval((), aval.dtype))
    body = combine if isinstance(combine, str) else lambda a, b: [combine(em, a, b)]
    return emit_windows(em, [aval], [x], [initial], (sizes, (), padding, (), ()), body)[0]


def emit_loop(em, xs, axis: int, reverse: bool, initial, step):
    """Loop `carry = step(rows, carry)` along `axis` and collect every carry."""
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


def emit_recurrence(em, a, b, axis: int, reverse: bool):
    """`y_i = a_i y_(i-1) + b_i`: after k steps each place includes the 2ᵏ before it."""
    distance, n = 1, b.aval.shape[axis]
    if type(n) is not int:

        def step(rows, y):
            return em.op("add", y.aval, em.op("multiply", y.aval, rows[0], y), rows[1])

        return emit_loop(em, [a, b], axis, reverse, 0, step)
    while distance < n:
        b = em.op("add", b.aval, em.op("multiply", b.aval, a, _moved(em, b, axis, distance, reverse, 0)), b)
        a = em.op("multiply", a.aval, a, _moved(em, a, axis, distance, reverse, 1))
        distance *= 2
    return b


def _moved(em, x, axis: int, distance: int, reverse: bool, fill):
    by = -distance if reverse else distance
    low = [by if i == axis else 0 for i in range(x.aval.ndim)]
    fill = em.constant(fill, make_aval((), x.aval.dtype))
    return em.pad(x, fill, low, [-n for n in low], [0] * x.aval.ndim, x.aval)
