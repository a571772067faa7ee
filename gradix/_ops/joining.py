"""concatenate and split, stack and unstack, which are each other's transpose; and tile."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.divisions import entries, merged, resized, undivided
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind, divided_like
from gradix._ops.basis import instantiate, reduce_sum, to_axis, zeros
from gradix._ops.canonicalization import canonical_axis, canonical_shape, memoised
from gradix._ops.convert import convert
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.families import Structural
from gradix._ops.indexing.slicing import slice_in_dim, slice_p
from gradix._ops.operands import arrays
from gradix._ops.shape import reshape

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Size


def _check_operands(name: str, avals) -> None:
    first = avals[0]
    if any(a.ndim != first.ndim for a in avals):
        raise TypeError(
            f"Cannot {name} arrays with different numbers of dimensions: got "
            f"{', '.join([str(a.shape) for a in avals])}."
        )
    if any(a.dtype != first.dtype for a in avals):
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{', '.join([dtypes.dtype_name(a.dtype) for a in avals])}. "
            f"gradix.numpy.{name} promotes them."
        )


class _Joining(Primitive):
    """An operation on several arrays that is linear in each of them."""

    live = "moves"

    def jvp(self, primals, tangents, **params):
        out = bind(self, primals, params)
        if all(t is None for t in tangents):
            return out, None
        return out, bind(self, [instantiate(t, x.aval) for t, x in zip(tangents, primals)], params)


class Concatenate(_Joining):
    """Concatenate arrays along an axis."""

    rearranges = True

    @memoised
    def abstract(self, *xs, dimension):
        if not xs:
            raise TypeError("concatenate expects at least one operand, got 0.")
        _check_operands("concatenate", xs)
        shapes = [x.shape for x in xs]
        if not 0 <= dimension < xs[0].ndim:
            raise TypeError(
                f"concatenate dimension out of bounds: dimension {dimension} for shapes {', '.join(map(str, shapes))}."
            )
        rest = [s[:dimension] + s[dimension + 1 :] for s in shapes]
        if any(r != rest[0] for r in rest):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
                f"concatenated: concatenating along dimension {dimension} for shapes "
                f"{', '.join(map(str, shapes))}."
            )
        total = sum([s[dimension] for s in shapes[1:]], shapes[0][dimension])
        return make_aval((*rest[0][:dimension], total, *rest[0][dimension:]), xs[0].dtype, all(x.weak_type for x in xs))

    def specialise(self, *xs, dimension):
        return (
            (lambda x, y: np.concatenate((x, y), dimension))
            if len(xs) == 2
            else lambda *xs: np.concatenate(xs, dimension)
        )

    def host(self, *xs, dimension):
        return np.concatenate(xs, dimension)

    def transpose(self, ct, *xs, dimension):
        cts, start = [], 0
        for x in xs:
            n = x.aval.shape[dimension]
            cts.append(slice_in_dim(ct, start, start + n, 1, dimension) if type(x) is Linear else None)
            start = start + n
        return cts

    def batch(self, size, args, axes, *, dimension):
        axis = next(a for a in axes if a is not None)
        xs = [to_axis(size, x, a, axis) for x, a in zip(args, axes)]
        return bind(self, xs, {"dimension": dimension + (dimension >= axis)}), axis

    def divide(self, mesh, avals, outs, params):
        for a in avals:
            resized(self.name, a, outs[0].shape, mesh)
        return [merged(self.name, avals, outs[0].shape)]

    def lower(self, em, out, *xs, dimension):
        return em.concatenate(xs, dimension, out)


class Split(Primitive):
    """An array cut into pieces of given sizes along an axis."""

    rearranges = True
    multiple_results = True
    mesh = MeshTraits(sums="kept")

    @memoised
    def _types(self, x, sizes, axis):
        if any(type(n) is int and n < 0 for n in sizes):
            raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
        if sum(sizes) != x.shape[axis]:
            raise ValueError(
                f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape {list(x.shape)}"
            )
        return [make_aval((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes]

    def abstract(self, x, *, sizes, axis):
        return list(self._types(x, sizes, axis))

    def host(self, x, *, sizes, axis):
        return [x[cut] for cut in _cuts(sizes, axis)]

    def jvp(self, primals, tangents, **params):
        out, (t,) = bind(self, primals, params), tangents
        return out, [None] * len(out) if t is None else bind(self, (t,), params)

    def transpose(self, cts, x, *, sizes, axis):
        aval = x.aval

        def nothing(n):
            return divided_like(zeros(make_aval((*aval.shape[:axis], n, *aval.shape[axis + 1 :]), aval.dtype)), aval)

        return [concatenate([nothing(n) if ct is None else ct for ct, n in zip(cts, sizes)], axis)]

    def batch(self, size, args, axes, *, sizes, axis):
        (x,), (a,) = args, axes
        out = bind(self, (x,), {"sizes": sizes, "axis": axis + (axis >= a)})
        return out, [a] * len(out)

    def divide(self, mesh, avals, outs, params):
        return [resized(self.name, avals[0], out.shape, mesh) for out in outs]

    def lower(self, em, outs, x, *, sizes, axis):
        pieces, start = [], 0
        for out, n in zip(outs, sizes):
            starts = tuple([start if i == axis else 0 for i in range(len(out.shape))])
            limits = tuple([start + n if i == axis else m for i, m in enumerate(out.shape)])
            pieces.append(slice_p.lower(em, out, x, start_indices=starts, limit_indices=limits, strides=None))
            start = start + n
        return pieces


@memoised
def _cuts(sizes, axis):
    ends = np.cumsum(sizes).tolist()
    return [(slice(None),) * axis + (slice(end - n, end),) for n, end in zip(sizes, ends)]


class Stack(_Joining):
    """Arrays of one shape along a new axis."""

    rearranges = True

    @memoised
    def abstract(self, *xs, axis):
        _check_operands("stack", xs)
        shape = xs[0].shape
        if any(x.shape != shape for x in xs):
            raise TypeError(f"Cannot stack arrays of different shapes: got {', '.join([str(x.shape) for x in xs])}.")
        return make_aval((*shape[:axis], len(xs), *shape[axis:]), xs[0].dtype, all(x.weak_type for x in xs))

    def host(self, *xs, axis):
        return np.stack(xs, axis)

    def transpose(self, ct, *xs, axis):
        return [c if type(x) is Linear else None for c, x in zip(unstack(ct, axis), xs)]

    def batch(self, size, args, axes, *, axis):
        at = next(a for a in axes if a is not None)
        xs = [to_axis(size, x, a, at) for x, a in zip(args, axes)]
        return bind(self, xs, {"axis": axis + (axis > at)}), at + (axis <= at)

    def divide(self, mesh, avals, outs, params):
        row, axis = merged(self.name, avals, avals[0].shape), params["axis"]
        return [(*row[:axis], None, *row[axis:])]

    def lower(self, em, out, *xs, axis):
        shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
        xs = [em.reshape(x, shape) for x in xs]
        return em.concatenate(xs, axis, out)


class Unstack(Primitive):
    """The parts of an array along an axis, without that axis."""

    mesh = MeshTraits(linear="all")
    rearranges = True
    multiple_results = True

    def abstract(self, x, *, axis):
        part = make_aval((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, x.weak_type)
        return [part] * x.shape[axis]

    def host(self, x, *, axis):
        before = (slice(None),) * axis
        return [x[(*before, i, ...)] for i in range(x.shape[axis])]

    def jvp(self, primals, tangents, **params):
        out, (t,) = bind(self, primals, params), tangents
        return out, [None] * len(out) if t is None else bind(self, (t,), params)

    def transpose(self, cts, x, *, axis):
        aval = make_aval((*x.aval.shape[:axis], *x.aval.shape[axis + 1 :]), x.aval.dtype)
        return [stack([zeros(aval) if ct is None else ct for ct in cts], axis)]

    def batch(self, size, args, axes, *, axis):
        (x,), (a,) = args, axes
        axis += axis >= a
        out = bind(self, (x,), {"axis": axis})
        return out, [a - (axis < a)] * len(out)

    def divide(self, mesh, avals, outs, params):
        axis = params["axis"]
        row = undivided(self.name, avals[0], (axis,), "the axis that is taken apart")
        return [(*row[:axis], *row[axis + 1 :])] * len(outs)

    def lower(self, em, outs, x, *, axis):
        shape = x.aval.shape
        pieces = []
        for i, out in enumerate(outs):
            starts = tuple([i if k == axis else 0 for k in range(len(shape))])
            limits = tuple([i + 1 if k == axis else n for k, n in enumerate(shape)])
            thin = make_aval((*shape[:axis], 1, *shape[axis + 1 :]), out.dtype)
            piece = slice_p.lower(em, thin, x, start_indices=starts, limit_indices=limits, strides=None)
            pieces.append(em.reshape(piece, out.shape))
        return pieces


class Tile(Structural):
    """An array repeated along its axes."""

    rearranges = True

    @memoised
    def abstract(self, x, *, reps):
        if len(reps) != x.ndim:
            raise TypeError(
                f"reps length must be equal to the ndim of x, got len(reps)={len(reps)} and "
                f"x.ndim={x.ndim}. gradix.numpy.tile takes any length."
            )
        if any(type(r) is int and r < 0 for r in reps):
            raise ValueError(f"reps must be nonnegative, got {reps}.")
        return make_aval(tuple([n * r for n, r in zip(x.shape, reps)]), x.dtype, x.weak_type)

    def host(self, x, *, reps):
        return np.tile(x, reps)

    def transpose(self, ct, x, *, reps):
        parts = tuple([k for n, r in zip(x.aval.shape, reps) for k in (r, n)])
        return [reduce_sum(reshape(ct, parts), tuple(range(0, 2 * len(reps), 2)))]

    def batch(self, size, args, axes, *, reps):
        (x,), (a,) = args, axes
        return bind(self, (x,), {"reps": (*reps[:a], 1, *reps[a:])}), a

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x, *, reps):
        shape = x.aval.shape
        wide = make_aval(tuple([k for n, r in zip(shape, reps) for k in (r, n)]), out.dtype)
        return em.reshape(em.broadcast_in_dim(x, wide, tuple(range(1, 2 * len(shape), 2))), out.shape)


concatenate_p, split_p, tile_p = Concatenate("concatenate"), Split("split"), Tile("tile")
stack_p, unstack_p = Stack("stack"), Unstack("unstack")


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Arrays one after the other along the axis `dimension`.

    Args:
        operands: arrays of one dtype, of equal shape but along `dimension`; or one array, taken as
            a sequence.
        dimension: an axis, counted from the front.

    Raises:
        ValueError: there are no arrays.

    Example:
        >>> from gradix import lax
        >>> lax.concatenate([lax.iota("int32", 2), lax.iota("int32", 1)], 0)
        Array([0, 1, 0], dtype=int32)
    """
    xs = unstack(operands, 0) if isinstance(operands, Array) else arrays("concatenate", *operands)
    if not len(xs):
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    dimension = index(dimension)
    if len(xs) == 1 and 0 <= dimension < xs[0].aval.ndim:
        return xs[0]
    return bind(concatenate_p, xs, {"dimension": dimension})


def split(operand: ArrayLike, sizes: Sequence[Size], axis: int = 0) -> list[Array]:
    """`operand` cut along `axis` into pieces of the given `sizes`, which add up to its length.

    Args:
        operand: an array.
        sizes: integers, whose sum is the size of `axis`.
        axis: the axis to cut along.

    Example:
        >>> from gradix import lax
        >>> lax.split(lax.iota("int32", 3), (1, 2))
        [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    (operand,) = arrays("split", operand)
    axis = canonical_axis(axis, operand.aval.ndim)
    return bind(split_p, (operand,), {"sizes": canonical_shape(sizes, "sizes"), "axis": axis})


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape and dtype along a new axis.

    Raises:
        ValueError: there are no arrays.

    Example:
        >>> from gradix import lax
        >>> lax.stack([lax.iota("int32", 2), lax.full((2,), 7)], axis=1)
        Array([[0, 7],
               [1, 7]], dtype=int32)
    """
    xs = arrays("stack", *operands)
    if not xs:
        raise ValueError("Need at least one array to stack.")
    return bind(stack_p, xs, {"axis": canonical_axis(axis, xs[0].aval.ndim + 1)})


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along `axis`, as a tuple.

    Example:
        >>> from gradix import lax
        >>> lax.unstack(lax.iota("int32", 2))
        (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    (x,) = arrays("unstack", x)
    return tuple(bind(unstack_p, (x,), {"axis": canonical_axis(axis, x.aval.ndim)}))


def tile(operand: ArrayLike, reps: SupportsIndex | Sequence[SupportsIndex]) -> Array:
    """`operand` repeated `reps[i]` times along axis i.

    Example:
        >>> from gradix import lax
        >>> lax.tile(lax.iota("int32", 2), (2,))
        Array([0, 1, 0, 1], dtype=int32)
    """
    (operand,) = arrays("tile", operand)
    return bind(tile_p, (operand,), {"reps": canonical_shape(reps, "reps")})


def shape_as_value(shape: Sequence[Size]) -> Array:
    """The sizes of a shape as a vector of integers, also where they are variables.

    Args:
        shape: a sequence of ints and symbolic dimensions.

    Returns:
        An array of shape (len(shape),), of the default integer dtype.

    Raises:
        NotImplementedError: a size is a variable, and no program is being traced.

    Example:
        >>> from gradix import lax
        >>> lax.shape_as_value((2, 3))
        Array([2, 3], dtype=int32)
    """
    sizes, kind = canonical_shape(shape), dtypes.scalar_type(int)[0]
    if all(isinstance(n, int) for n in sizes):
        return as_array(np.array(sizes, kind))
    return stack([as_array(np.array(n, kind)) if isinstance(n, int) else convert(dim_as_value(n), kind) for n in sizes])
