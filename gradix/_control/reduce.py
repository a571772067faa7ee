"""`reduce_p`: reduces axes of arrays by a program on scalars."""

from __future__ import annotations

from gradix._control.inner_programs import split
from gradix._control.scan import bind_scan
from gradix._core.aval import make_aval
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, drop_axes, free_axes, transpose
from gradix._transforms.batch import AxisData, batch, batch_jaxpr
from gradix._transforms.jvp import LinearizeTrace, jvp
from gradix._transforms.staging import eval_closed, stage_closed


class Reduce(Primitive):
    """A reduction; its operands are arrays of one shape, then an initial scalar for each.

    `jaxpr` combines two groups of scalars. XLA may combine elements in any order, so `jaxpr` must
    be associative, and the initial scalars its identity.
    """

    multiple_results = True

    def abstract(self, *avals, dimensions, **_):
        xs = avals[: len(avals) // 2]
        return [make_aval(drop_axes("reduce", x, dimensions), x.dtype) for x in xs]

    def jvp(self, primals, tangents, **params):
        return jvp(lambda *args: folded(args, **params), primals, tangents)

    def linearize(self, primals, tangents, **params):
        return jvp(lambda *args: folded(args, **params), primals, tangents, LinearizeTrace())

    def batch(self, size, args, axes, *, dimensions, **params):
        n = len(args) // 2
        if any(a is not None for a in axes[n:]):
            return batch(lambda *xs: folded(xs, dimensions=dimensions, **params), AxisData(None, size), args, axes)
        at = next(a for a in axes if a is not None)
        shape = (*args[axes.index(at)].aval.shape,)
        xs = [x if a == at else _aligned(x, a, at, shape) for x, a in zip(args[:n], axes)]
        moved = tuple([d + (d >= at) for d in dimensions])
        outs = bind(self, [*xs, *args[n:]], {"dimensions": moved, **params})
        return outs, [at - sum(d < at for d in moved)] * n

    def lower(self, em, outs, *args, jaxpr, dimensions, **_):
        xs, inits = split(args, len(outs))
        return em.reduce(xs, inits, dimensions, outs, lambda *scalars: em.inline(jaxpr.jaxpr, jaxpr.consts, scalars))

    def show(self, params):
        return {k: params[k] for k in ("computation", "dimensions", "jaxpr")}


reduce_p = Reduce("reduce")


def _aligned(x, axis, at: int, shape):
    """An operand with its batch axis at `at`; an unbatched operand is broadcast."""
    if axis is None:
        return broadcast_in_dim(x, shape, free_axes(len(shape), (at,)))
    order = [i for i in range(len(shape)) if i != axis]
    order.insert(at, axis)
    return transpose(x, tuple(order))


def folded(args, *, jaxpr, dimensions, **_) -> list:
    """The reduction as loops over `dimensions`; derivatives are those of this form."""
    xs, inits = split(args, len(args) // 2)
    ndim = xs[0].aval.ndim
    rest = free_axes(ndim, dimensions)
    order = (*dimensions, *rest)
    xs = [x if order == tuple(range(ndim)) else transpose(x, order) for x in xs]
    lengths, shape = xs[0].aval.shape[: len(dimensions)], xs[0].aval.shape[len(dimensions) :]
    n = len(xs)
    for size in reversed(shape):
        jaxpr, _ = batch_jaxpr(jaxpr, AxisData(None, size), (0,) * (2 * n), (0,) * n)
    carry = [broadcast_in_dim(i, shape, ()) if shape else i for i in inits]
    return _fold(jaxpr, lengths, carry, xs)


def _fold(jaxpr, lengths, carry, xs) -> list:
    if not lengths:
        return eval_closed(jaxpr, *carry, *xs)
    n = len(carry)
    row_avals = [make_aval(x.aval.shape[1:], x.aval.dtype) for x in xs]
    body = stage_closed(
        lambda *args: _fold(jaxpr, lengths[1:], list(args[:n]), list(args[n:])), [*[c.aval for c in carry], *row_avals]
    )
    return bind_scan(body, [], carry, xs, lengths[0], False, unroll=1)
