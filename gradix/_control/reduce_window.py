"""`reduce_window_p`: reduces windows of arrays by a program on scalars."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from gradix._control.inner_programs import split
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, to_axis
from gradix._ops.indexing.slicing import pad, slice as slice_
from gradix._ops.select import select_n
from gradix._ops.windows.lowering import emit_reduce_window
from gradix._ops.windows.reduce_windows import Window
from gradix._transforms.batch import AxisData, batch, batch_jaxpr
from gradix._transforms.jvp import LinearizeTrace, jvp
from gradix._transforms.staging import eval_closed


class ReduceWindow(Primitive):
    """A windowed reduction; its operands are arrays of one shape, then an initial scalar for each.

    `jaxpr` combines two groups of scalars. XLA may combine elements in any order, so `jaxpr` must
    be associative, and the initial scalars its identity.
    """

    multiple_results = True

    def abstract(self, *avals, **params):
        w = _window(params)
        return [make_aval(w.result_shape(x.shape), x.dtype) for x in avals[: len(avals) // 2]]

    def jvp(self, primals, tangents, **params):
        return jvp(lambda *args: folded(args, **params), primals, tangents)

    def linearize(self, primals, tangents, **params):
        return jvp(lambda *args: folded(args, **params), primals, tangents, LinearizeTrace())

    def batch(self, size, args, axes, *, jaxpr, **params):
        n = len(args) // 2
        if any(a is not None for a in axes[n:]):  # XLA takes only scalars as initial values
            return batch(lambda *xs: folded(xs, jaxpr=jaxpr, **params), AxisData(None, size), args, axes)
        axis = next(a for a in axes if a is not None)
        xs = [to_axis(size, x, a, axis) for x, a in zip(args[:n], axes)]
        w = _window(params).with_axis(axis)
        return bind(self, (*xs, *args[n:]), {"jaxpr": jaxpr, "consts": (), **w.params()}), [axis] * n

    def lower(self, em, outs, *args, jaxpr, **params):
        n = len(outs)
        return emit_reduce_window(
            em,
            outs,
            args[:n],
            args[n:],
            _window(params),
            lambda *scalars: em.inline(jaxpr.jaxpr, jaxpr.consts, scalars),
        )


reduce_window_p = ReduceWindow("reduce_window")


def _window(params) -> Window:
    return Window(*[params[name] for name in Window._fields])


def folded(args, *, jaxpr, **params) -> list:
    """The reduction as elementwise steps; derivatives are those of this form.

    The first elements of all windows are combined with the second elements, and so on. Padding is
    left out as in XLA, which matters if the initial value is not an identity.
    """
    xs, inits = split(args, len(args) // 2)
    w, n = _window(params), len(xs)
    shape = w.result_shape(xs[0].aval.shape)
    carry = [broadcast_in_dim(i, shape, ()) if shape else i for i in inits]
    if not prod(shape):
        return carry
    edges = [(low, high, b - 1) for (low, high), b in zip(w.padding, w.base_dilation)]
    xs = [pad(x, i, edges) for x, i in zip(xs, inits)]
    for size in reversed(shape):
        jaxpr, _ = batch_jaxpr(jaxpr, AxisData(None, size), (0,) * (2 * n), (0,) * n)
    for place in product(*map(range, w.window_dimensions)):
        inside = _inside(w, args[0].aval.shape, shape, place)
        if not inside.any():
            continue
        start = [k * d for k, d in zip(place, w.window_dilation)]
        limit = [a + (m - 1) * s + 1 for a, m, s in zip(start, shape, w.window_strides)]
        joined = eval_closed(jaxpr, *carry, *[slice_(x, start, limit, w.window_strides) for x in xs])
        carry = joined if inside.all() else [select_n(as_array(inside), c, j) for c, j in zip(carry, joined)]
    return carry


def _inside(w: Window, sizes, shape, place) -> np.ndarray:
    """The mask of windows that have an element, not padding, at this position in the window."""
    inside = np.ones(shape, bool)
    for axis, (n, m, k, s, (low, _), b, d) in enumerate(zip(sizes, shape, place, *w[1:])):
        at = np.arange(m) * s + k * d - low
        there = (at >= 0) & (at <= (n - 1) * b) & (at % b == 0)
        inside &= there.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return inside
