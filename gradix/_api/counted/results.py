"""Results whose sizes values decide, as they leave a compiled program and reach Python.

A program returns a buffer of the greatest size, and after its results the values of its sizes. On
the outside, the result has its true size; inside of another program it has a size that this
program's values decide.
"""

from __future__ import annotations

from gradix._base.config import state as _options
from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._core.dimensions.counts import bound_of, counts_in, substituted
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.trace import NeedsProgram, Tracer, state
from gradix._ops.counted import buffer_p, define, prefix, prefix_p, whole_p
from gradix._ops.creation import full
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._runtime.dispatch import is_host_apart
from gradix._transforms.counted import Closing, Renamed
from gradix._transforms.staging import StagingTracer


class CountedTree:
    """The tree of a function's results, some of which have sizes that values decide.

    Args:
        tree: the tree of the results.
        shapes: for each result its shape with these sizes; None for one without.
        dims: the counts in these shapes, whose values follow the results.

    Attributes:
        axes: for each result the axes whose sizes values decide, with these sizes.
    """

    __slots__ = ("tree", "shapes", "dims", "axes")

    def __init__(self, tree, shapes, dims):
        self.tree, self.shapes, self.dims = tree, shapes, dims
        self.axes = [_axes(s) for s in shapes]

    num_leaves = property(lambda self: self.tree.num_leaves)

    def unflatten(self, outs):
        """The results, with their true sizes, from the buffers and the values of the sizes."""
        outs = list(outs)
        n = len(self.shapes)
        if len(outs) == n:  # types, names or places for the results
            return self.tree.unflatten(outs)
        return self.tree.unflatten(self.opened(outs[:n], outs[n:]))

    def avals(self, avals) -> list:
        """The types of the results, of those of buffers."""
        return [a if s is None else a.update(shape=s) for a, s in zip(avals, self.shapes)]

    def opened(self, outs, values) -> list:
        if any(isinstance(v, Tracer) for v in values):
            if state.stage is None:
                raise NeedsProgram
            sizes = {d: define(v, _bound(d)) for d, v in zip(self.dims, values)}
            cut = prefix
        else:
            sizes = {d: int(v.host if type(v) is ArrayImpl else v) for d, v in zip(self.dims, values)}
            cut = sliced
        return [x if not axes else _cut(x, axes, sizes, cut) for x, axes in zip(outs, self.axes)]


def _bound(dim):
    return bound_of(dim.scope.counted[str(dim)].bound)


def _axes(shape) -> list:
    """The axes of a result whose sizes values decide, with these sizes."""
    return [(i, d) for i, d in enumerate(shape or ()) if type(d) is SymbolicDim and counts_in(d)]


def _cut(x, axes: list, sizes: dict, cut):
    for axis, d in axes:
        size = sizes.get(d)
        if size is None:
            size = sizes[d] = substituted(d, {str(k): v for k, v in sizes.items()})
        x = cut(x, size, axis)
    return x


_FEW = 8  # a part of at most one in so many elements is copied, so that the buffer can be freed


def sliced(x, size: int, axis: int):
    """The first elements of a concrete buffer along an axis.

    Where the host reads the buffer, they are a view of its memory: a program for a slice would be
    compiled for each size that is met.
    """
    n = x.aval.shape[axis]
    if n == size:
        return x
    if type(x) is not ArrayImpl or x.aval.place is not None or is_host_apart():
        return slice_in_dim(x, 0, size, axis=axis)
    part = x.host[:size] if axis == 0 else x.host[(*[slice(None)] * axis, slice(size))]
    aval = make_aval((*x.aval.shape[:axis], size, *x.aval.shape[axis + 1 :]), x.aval.dtype, x.aval.weak_type)
    return ArrayImpl(part.copy() if _FEW * size <= n else part, aval)


class Numbers(Renamed):
    """The sizes that values decide as numbers, where a program runs one operation after another."""

    def __init__(self):
        super().__init__({})

    def apply(self, eqn, operands, apply):
        """The results of an equation, which `apply` evaluates where its types have no such size."""
        prim, p = eqn.primitive, eqn.params
        if prim.defines_size:
            (n,), dim = operands, p["dim"]
            self.new[dim] = self.names[str(dim)] = int(n.host)
            self.scopes.add(dim.scope)
            return [n]
        if not self.new:
            return apply(eqn, operands)
        if prim is prefix_p:
            return [sliced(operands[0], self.value(p["dim"]), p["axis"])]
        if prim is whole_p or prim is buffer_p:
            (x,), axis = operands, p["axis"]
            pads = [(0, self.value(p["bound"]) - n if i == axis else 0, 0) for i, n in enumerate(x.aval.shape)]
            return [pad(x, full((), 0, x.aval.dtype), pads)]
        return apply(eqn.replace(params={k: self.value(v) for k, v in p.items()}), operands)


def close(outs: list, tree) -> tuple[list, object]:
    """Results that leave the program being traced, and their tree."""
    closing = Closing(StagingTracer)
    own = [closing.concerns(x) for x in outs]
    if not any(own):
        return outs, tree
    shapes = [x.aval.shape if o else None for x, o in zip(outs, own)]
    needed = frozenset().union(*[counts_in(d) for s in shapes if s is not None for d in s])
    pairs = [(d, v) for d, v in zip(closing.dims, closing.values) if d in needed]
    dims, values = [d for d, _ in pairs], [v for _, v in pairs]
    # what looks for NaN looks at the buffers
    is_filled = _options.jax_debug_nans or _options.jax_debug_infs
    outs = [closing.close(x, is_filled) if o else x for x, o in zip(outs, own)]
    return [*outs, *values], CountedTree(tree, shapes, dims)
