"""The operations that the transforms need: add, zeros, transpose, broadcast, reduce_sum."""

from __future__ import annotations

from functools import cache, partial
from operator import methodcaller

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._base.errors import InconclusiveDimensionOperation
from gradix._core import dtypes, seams
from gradix._core.array import ArrayImpl, as_number, typeof
from gradix._core.aval import ShapedArray, located, make_aval
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._core.divisions import ShardingTypeError, entries, merged
from gradix._core.named_sharding import axes_of
from gradix._core.primitive import Linear, MeshTraits, Primitive, ValueTraits
from gradix._core.trace import bind, state


class AddAny(Primitive):
    """The sum of two cotangents (or tangents) of one type."""

    host = staticmethod(np.add)
    live = "elements"
    formula = "simple"
    values = ValueTraits(keeps_nan=True)
    mesh = MeshTraits(sums="kept")

    def abstract(self, x, y):
        return x if not x.weak_type else y

    def jvp(self, primals, tangents):
        tx, ty = tangents
        return bind(self, primals, {}), tx if ty is None else ty if tx is None else add_any(tx, ty)

    def transpose(self, ct, x, y):
        return [ct if type(a) is Linear else None for a in (x, y)]

    def batch(self, size, args, axes):
        (x, y), (ax, ay) = args, axes
        if ax != ay:
            x, y, ax = to_front(size, x, ax), to_front(size, y, ay), 0
        return add_any(x, y), ax

    def divide(self, mesh, avals, outs, params):
        return [merged(self.name, avals, outs[0].shape)]

    def lower(self, em, out, x, y):
        return em.op("or" if out.dtype == bool else "add", out, x, y)


add_any_p = AddAny("add_any")


def add_any(x, y):
    return bind(add_any_p, (x, y), {})


class BroadcastInDim(Primitive):
    """Place an array's axes among a larger shape's; axes of size 1 stretch."""

    rearranges = True
    silent = True
    live = "moves"

    def abstract(self, x, *, shape, broadcast_dimensions, sharding=None):
        if len(broadcast_dimensions) != x.ndim:
            raise TypeError(
                f"broadcast_in_dim needs one broadcast dimension per operand axis, got operand shape "
                f"{x.shape} and broadcast_dimensions={broadcast_dimensions}."
            )
        for n, d in zip(x.shape, broadcast_dimensions):
            if not 0 <= d < len(shape) or (n != shape[d] and n != 1):
                raise TypeError(
                    f"broadcast_in_dim cannot broadcast an operand of shape {x.shape} to shape {shape} "
                    f"with broadcast_dimensions={broadcast_dimensions}: each axis must keep its size or "
                    "be 1."
                )
        if any(a >= b for a, b in zip(broadcast_dimensions, broadcast_dimensions[1:])):
            raise TypeError(f"broadcast_dimensions must be strictly increasing, got {broadcast_dimensions}.")
        return make_aval(shape, x.dtype, x.weak_type)

    def specialise(self, x, *, shape, broadcast_dimensions, sharding=None):
        if dtypes.is_extended(x.dtype):
            return None
        sizes = dict(zip(broadcast_dimensions, x.shape))
        dtype, full = x.dtype, tuple([sizes.get(d, 1) for d in range(len(shape))])

        def spread(x):
            out = np.empty(shape, dtype)
            out[...] = x.reshape(full)
            return out

        return methodcaller("reshape", full) if full == shape else spread

    def host(self, x, *, shape, broadcast_dimensions, sharding=None):
        if broadcast_dimensions:
            full = [1] * len(shape)
            for n, d in zip(x.shape, broadcast_dimensions):
                full[d] = n
            x = x.reshape(full)
        out = np.empty(shape, x.dtype)
        out[...] = x
        return out

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, *, shape, broadcast_dimensions, sharding=None):
        out = reduce_sum(ct, tuple(d for d in range(len(shape)) if d not in broadcast_dimensions))
        return [unbroadcast(out, x.aval)]

    def batch(self, size, args, axes, *, shape, broadcast_dimensions, sharding=None):
        x = to_front(size, args[0], axes[0])
        return broadcast_in_dim(x, (typeof(x).shape[0], *shape), (0, *(d + 1 for d in broadcast_dimensions))), 0

    def divide(self, mesh, avals, outs, params):
        out = [None] * outs[0].ndim
        for i, (e, n) in zip(params["broadcast_dimensions"], zip(entries(avals[0]), avals[0].shape)):
            out[i] = e if n == outs[0].shape[i] else None
        return [tuple(out)]

    def lower(self, em, out, x, *, shape, broadcast_dimensions, sharding=None):
        return em.broadcast_in_dim(x, out, broadcast_dimensions)

    def show(self, params):
        dims = params["broadcast_dimensions"]
        return {"broadcast_dimensions": dims} if dims else {}


broadcast_in_dim_p = BroadcastInDim("broadcast_in_dim")


def broadcast_in_dim(x, shape, broadcast_dimensions):
    return bind(broadcast_in_dim_p, (x,), {"shape": shape, "broadcast_dimensions": broadcast_dimensions})


# NumPy sums pairwise along the last axis only, and accumulates half precisions in half precision.
# Sums in these wider dtypes are as exact as those of XLA.
_ACCUMULATORS = {
    np.dtype(d).char: np.dtype(w)
    for d, w in (("float16", "float32"), ("float32", "float64"), ("complex64", "complex128"))
}
_ACCUMULATORS.update({np.dtype(d).char: np.dtype("float32") for d in dtypes.FLOAT if np.dtype(d).kind == "V"})


@cache
def _ones(dtype, n: int) -> np.ndarray:
    """A vector of ones.

    The cache stays small: callers ask for two dtypes and at most 4096 lengths.
    """
    return np.ones(n, dtype)


class ReduceSum(Primitive):
    """The sum over some axes."""

    live = "moves"
    types: BoundedCache = BoundedCache(4096)

    def abstract(self, x, *, axes, out_sharding=None):
        found = self.types.get((x, axes))
        if found is None:
            found = make_aval(drop_axes("reduce_sum", x, axes), x.dtype, x.weak_type)
            self.types.keep((x, axes), found)
        return found

    def specialise(self, x, *, axes, out_sharding=None):
        dtype = x.dtype
        if x.size > 4096 or len(axes) != 1 or x.ndim > 2:
            return None
        if dtype.char in "fd":
            # A call of BLAS starts sooner than a reduction of NumPy.
            ones = _ones(dtype, x.shape[axes[0]])
            return (lambda x: np.dot(x, ones)) if axes[0] else partial(np.dot, ones)
        return (lambda x: np.add.reduce(x, axes[0], dtype)) if dtype.char in "ilqILQ" else None

    def host(self, x, *, axes, out_sharding=None):
        dtype = x.dtype
        if x.size <= 4096 and len(axes) == 1 and x.ndim <= 2 and dtype.char in "fd":
            ones = _ones(dtype, x.shape[axes[0]])
            return np.dot(x, ones) if axes[0] else np.dot(ones, x)
        wide = _ACCUMULATORS.get(dtype.char)
        if wide is None or (dtype.itemsize >= 4 and (x.size <= 256 or x.ndim - 1 in axes)):
            return np.add.reduce(x, axis=axes, dtype=dtype)
        return np.add.reduce(x, axis=axes, dtype=wide).astype(dtype)

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def sums(self, mesh, avals, params):
        have, wanted = super().sums(mesh, avals, params), params.get("out_sharding")
        if wanted is None:
            return have
        row = entries(avals[0])
        summed = frozenset([n for i in params["axes"] for n in axes_of(row[i])])
        left = wanted.spec.unreduced - have.unreduced
        if not left <= summed:
            raise ShardingTypeError(
                "reduce_sum: out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced "
                f"axes={set(wanted.spec.unreduced)}, but the sum of {avals[0].str_short()} is over "
                f"{set(summed) or 'no mesh axis'}."
            )
        return have._replace(unreduced=have.unreduced | left)

    def transpose(self, ct, x, *, axes, out_sharding=None):
        shape = x.aval.shape
        return [broadcast_in_dim(ct, shape, free_axes(len(shape), axes))]

    def batch(self, size, args, in_axes, *, axes, out_sharding=None):
        (x,), (a,) = args, in_axes
        axes = tuple(i + (i >= a) for i in axes)
        return reduce_sum(x, axes), a - sum(i < a for i in axes)

    def divide(self, mesh, avals, outs, params):
        return [tuple([e for i, e in enumerate(entries(avals[0])) if i not in params["axes"]])]

    def lower(self, em, out, x, *, axes, out_sharding=None):
        zero = em.constant(0, make_aval((), out.dtype))
        return em.reduce([x], [zero], axes, [out], "or" if out.dtype == bool else "add")[0]

    def show(self, params):
        return {"axes": params["axes"], "out_sharding": None}


reduce_sum_p = ReduceSum("reduce_sum")


def reduce_sum(x, axes):
    return bind(reduce_sum_p, (x,), {"axes": axes}) if axes else x


class Transpose(Primitive):
    """Permute the axes: axis i of the result is axis `permutation[i]` of the operand."""

    rearranges = True
    silent = True
    live = "moves"

    def abstract(self, x, *, permutation):
        if sorted(permutation) != list(range(x.ndim)):
            raise TypeError(
                f"transpose permutation isn't a permutation of operand dimensions, got permutation "
                f"{permutation} for operand shape {x.shape}. Name each of its {x.ndim} axes once."
            )
        return make_aval(tuple([x.shape[i] for i in permutation]), x.dtype, x.weak_type)

    def specialise(self, x, *, permutation):
        return methodcaller("transpose", permutation)

    def host(self, x, *, permutation):
        return x.transpose(permutation)

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, *, permutation):
        return [transpose(ct, inverse(permutation))]

    def batch(self, size, args, axes, *, permutation):
        (x,), (a,) = args, axes
        return transpose(x, (a, *(i + (i >= a) for i in permutation))), 0

    def divide(self, mesh, avals, outs, params):
        row = entries(avals[0])
        return [tuple([row[i] for i in params["permutation"]])]

    def lower(self, em, out, x, *, permutation):
        return em.transpose(x, permutation)


transpose_p = Transpose("transpose")


def transpose(x, permutation):
    return bind(transpose_p, (x,), {"permutation": permutation})


# -- shapes ----------------------------------------------------------------------------------------


def free_axes(ndim: int, *used) -> tuple:
    """The axes of an array of rank `ndim` that are in none of the sequences `used`."""
    return tuple([i for i in range(ndim) if not any(i in u for u in used)])


def inverse(permutation) -> tuple:
    out = [0] * len(permutation)
    for i, p in enumerate(permutation):
        out[p] = i
    return tuple(out)


def drop_axes(name: str, x: ShapedArray, axes) -> tuple:
    if not all(isinstance(a, int) and 0 <= a < x.ndim for a in axes) or len(set(axes)) != len(axes):
        raise ValueError(
            f"{name} needs distinct axes within [0, {x.ndim}) for an operand of shape {x.shape}, got axes={axes}."
        )
    return tuple([n for i, n in enumerate(x.shape) if i not in axes])


def to_front(size, x, axis):
    """`x` with its mapped axis first; an unmapped `x` is repeated `size` times."""
    if axis == 0:
        return x
    aval = typeof(x)
    if axis is None:
        return broadcast_in_dim(x, (size, *aval.shape), tuple(range(1, aval.ndim + 1)))
    return transpose(x, (axis, *[i for i in range(aval.ndim) if i != axis]))


def move_axis(x, source: int, target: int):
    """`x` with axis `source` at position `target`, the others in order."""
    if source == target:
        return x
    rest = [i for i in range(typeof(x).ndim) if i != source]
    rest.insert(target, source)
    return transpose(x, tuple(rest))


def to_axis(size, x, axis, target: int):
    """`x` with its mapped axis at `target`; an unmapped `x` is repeated there."""
    if axis is not None:
        return move_axis(x, axis, target)
    shape = typeof(x).shape
    return broadcast_in_dim(x, (*shape[:target], size, *shape[target:]), free_axes(len(shape) + 1, (target,)))


def expand_axis(x, axis: int):
    """`x` with a new axis of size 1 at `axis`."""
    shape = typeof(x).shape
    kept = (*range(axis), *range(axis + 1, len(shape) + 1))
    return broadcast_in_dim(x, (*shape[:axis], 1, *shape[axis:]), kept)


def lead_axes(x, rank: int):
    """`x` of shape (n, …) with axes of size 1 inserted after the first, to the rank `1 + rank`."""
    n, *rest = typeof(x).shape
    ones = rank - len(rest)
    return broadcast_in_dim(x, (n, *[1] * ones, *rest), (0, *range(1 + ones, 1 + rank)))


def broadcast_to(x, shape):
    """`x`, a scalar or of the same rank, stretched to `shape`."""
    aval = typeof(x)
    return broadcast_in_dim(x, shape, () if not aval.ndim else tuple(range(len(shape) - aval.ndim, len(shape))))


def unbroadcast(ct, aval):
    """The transpose of a broadcast from the type `aval`: sum `ct` over the stretched axes."""
    shape, full = aval.shape, ct.aval.shape
    if shape == full:
        return ct
    lead = len(full) - len(shape)
    kept = [i for i in range(lead, len(full)) if shape[i - lead] == full[i]]
    for i in range(lead, len(full)):
        if i not in kept and shape[i - lead] != 1:  # a size in another form, not a stretched axis
            raise InconclusiveDimensionOperation(
                f"a gradient has size {full[i]} along axis {i - lead} where its value has size {shape[i - lead]}, and "
                "these are not known to be one size. Take this gradient outside of jit, where sizes are numbers."
            )
    out = reduce_sum(ct, free_axes(len(full), kept))
    return broadcast_in_dim(out, shape, tuple([i - lead for i in kept])) if len(kept) < len(shape) else out


# -- values ----------------------------------------------------------------------------------------

_zeros: BoundedCache[ShapedArray, ArrayImpl] = BoundedCache(512)


def zeros(aval):
    """An array of zeros of this type."""
    if aval.dtype == dtypes.float0:
        none = float0_zeros(aval.shape)
        return ArrayImpl(none, aval) if type(none) is np.ndarray else none
    if aval.division is not None and state.stage is not None:
        return seams.reshard(zeros(located(aval.plain, vma=aval.vma)), aval.division)
    # While a program is staged, zeros must be one of its equations, so the cache is not used.
    zero = _zeros.get(aval) if state.stage is None and aval.size <= 1024 else None
    if zero is None:
        zero = np.zeros((), dtypes.physical_dtype(aval.dtype))
        scalar = as_number(ArrayImpl(zero, make_aval((), aval.dtype, aval.weak_type)))
        if not aval.shape:
            return scalar
        if state.stage is not None or aval.size > 1024:
            return broadcast_in_dim(scalar, aval.shape, ())
        zero = _zeros.keep(aval, ArrayImpl(np.zeros(aval.shape, dtypes.physical_dtype(aval.dtype)), aval))
    return zero


def float0_zeros(shape):
    """What derivatives of integers are, of this shape: a NumPy array, or where sizes are open an equation."""
    if not is_symbolic_shape(shape):
        return np.zeros(shape, dtypes.float0)
    return broadcast_in_dim(ArrayImpl(np.zeros((), dtypes.float0), make_aval((), dtypes.float0)), shape, ())


def instantiate(t, aval):
    """The tangent or cotangent `t`; where it is None, zeros of the tangent type of `aval`."""
    return zeros(tangent_aval(aval)) if t is None else t


def tangent_aval(aval):
    """The type of tangents of `aval`: its own for inexact dtypes, float0 for the rest."""
    return aval.to_tangent_aval()


def is_differentiable(aval) -> bool:
    return aval.dtype in dtypes.INEXACT


def full_like_one(aval):
    """Ones of this type."""
    one = as_number(
        ArrayImpl(np.ones((), dtypes.physical_dtype(aval.dtype)), make_aval((), aval.dtype, aval.weak_type))
    )
    return broadcast_in_dim(one, aval.shape, ()) if aval.shape else one
