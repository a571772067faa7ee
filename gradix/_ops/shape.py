"""reshape, squeeze and rev, and the public functions of broadcast_in_dim and transpose."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index, itemgetter, methodcaller
from typing import TYPE_CHECKING

from gradix._core import seams
from gradix._core.array import typeof
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_count
from gradix._core.divisions import entries, reshaped
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim_p, inverse, to_front, transpose as permute, transpose_p
from gradix._ops.canonicalization import canonical_axis, canonical_shape, check_sizes, memoised
from gradix._ops.families import Structural
from gradix._ops.operands import arrays
from gradix._ops.sharding import rearranged

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Size
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec


class Reshape(Structural):
    """The same elements in another shape, after permuting the axes by `dimensions` when given."""

    rearranges = True
    takes_sharding = True

    @memoised
    def abstract(self, x, *, new_sizes, dimensions):
        for d in new_sizes:
            if type(d) is int and d < 0:
                raise TypeError(
                    f"reshape new_sizes must all be positive, got {new_sizes}. lax.reshape infers no size; "
                    "gradix.numpy.reshape does from -1."
                )
        if prod(new_sizes) != x.size:
            raise TypeError(
                f"reshape total size must be unchanged, got new_sizes {new_sizes} (total size "
                f"{prod(new_sizes)}) for shape {x.shape} (total size {x.size})."
            )
        if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
            raise TypeError(
                f"reshape dimensions must be a permutation of operand dimensions, got dimensions "
                f"{dimensions} for shape {x.shape}."
            )
        return make_aval(new_sizes, x.dtype, x.weak_type)

    def specialise(self, x, *, new_sizes, dimensions):
        return methodcaller("reshape", new_sizes) if dimensions is None else None

    def host(self, x, *, new_sizes, dimensions):
        return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)

    def transpose(self, ct, x, *, new_sizes, dimensions):
        shape = x.aval.shape
        if dimensions is None:
            return [reshape(ct, shape)]
        return [permute(reshape(ct, tuple([shape[d] for d in dimensions])), inverse(dimensions))]

    def batch(self, size, args, axes, *, new_sizes, dimensions):
        x = to_front(size, args[0], axes[0])
        if dimensions is not None:
            dimensions = (0, *[d + 1 for d in dimensions])
        return bind(self, (x,), {"new_sizes": (typeof(x).shape[0], *new_sizes), "dimensions": dimensions}), 0

    def divide(self, mesh, avals, outs, params):
        return [reshaped(avals[0], params["new_sizes"], mesh)]

    def lower(self, em, out, x, *, new_sizes, dimensions):
        if dimensions is not None:
            x = em.transpose(x, dimensions)
        return em.reshape(x, new_sizes)

    def show(self, params):
        return {**params, "sharding": None}


def _is_surely_kept(n) -> bool:
    """Whether an axis is not known to have size 1, and neither values nor example sizes decide it."""
    if type(n) is int:
        return n != 1
    return not is_count(n) and n.scope.examples is None


class Squeeze(Structural):
    """An array without some of its axes of size 1."""

    rearranges = True

    @memoised
    def abstract(self, x, *, dimensions):
        if any(_is_surely_kept(x.shape[d]) for d in dimensions):
            raise ValueError(
                f"cannot select an axis to squeeze out which has size not equal to one, got "
                f"shape={x.shape} and dimensions={dimensions}"
            )
        return make_aval(tuple([n for i, n in enumerate(x.shape) if i not in dimensions]), x.dtype, x.weak_type)

    def specialise(self, x, *, dimensions):
        return methodcaller("squeeze", dimensions)

    def host(self, x, *, dimensions):
        return x.squeeze(dimensions)

    def transpose(self, ct, x, *, dimensions):
        shape = x.aval.shape
        if any(shape[d] != 1 for d in dimensions):  # of an axis that may have no element
            kept = tuple([i for i in range(len(shape)) if i not in dimensions])
            return [broadcast_in_dim(ct, shape, kept)]
        return [reshape(ct, shape)]

    def batch(self, size, args, axes, *, dimensions):
        (x,), (a,) = args, axes
        dims = tuple([d + (d >= a) for d in dimensions])
        return bind(self, (x,), {"dimensions": dims}), a - sum([d < a for d in dims])

    def divide(self, mesh, avals, outs, params):
        return [tuple([e for i, e in enumerate(entries(avals[0])) if i not in params["dimensions"]])]

    def lower(self, em, out, x, *, dimensions):
        return em.reshape(x, out.shape)


class Rev(Structural):
    """Some axes in reverse order."""

    rearranges = True

    @memoised
    def abstract(self, x, *, dimensions):
        if len(set(dimensions)) != len(dimensions):
            raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
        check_sizes("rev", dimensions, "dimensions")
        if any(d >= x.ndim for d in dimensions):
            raise TypeError(
                f"rev dimensions must all be less than operand ndim, got dimensions {dimensions} for "
                f"operand ndim {x.ndim}."
            )
        return x

    def specialise(self, x, *, dimensions):
        return itemgetter(_reversing(x.ndim, dimensions))

    def host(self, x, *, dimensions):
        return x[_reversing(x.ndim, dimensions)]

    def transpose(self, ct, x, *, dimensions):
        return [rev(ct, dimensions)]

    def batch(self, size, args, axes, *, dimensions):
        (x,), (a,) = args, axes
        return rev(x, tuple([d + (d >= a) for d in dimensions])), a

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x, *, dimensions):
        return em.reverse(x, dimensions)


@memoised
def _reversing(ndim, dimensions):
    return tuple([slice(None, None, -1 if i in dimensions else None) for i in range(ndim)])


reshape_p, squeeze_p, rev_p = Reshape("reshape"), Squeeze("squeeze"), Rev("rev")


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[Size],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The elements of `operand`, in row-major order, in the shape `new_sizes`.

    Args:
        operand: an array.
        new_sizes: the shape; its sizes multiply to those of the operand.
        dimensions: the order in which the axes of the operand are read; None is their own order.
        out_sharding: how the result is to be divided.

    Example:
        >>> from gradix import lax
        >>> lax.reshape(lax.iota("int32", 4), (2, 2))
        Array([[0, 1],
               [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return rearranged(reshape, out_sharding, operand, new_sizes, dimensions)
    (operand,) = arrays("reshape", operand)
    new_sizes = canonical_shape(new_sizes, "new_sizes")
    aval = operand.aval
    if dimensions is not None:
        dimensions = tuple([index(d) for d in dimensions])
        if dimensions == tuple(range(aval.ndim)):
            dimensions = None
    if dimensions is None and new_sizes == aval.shape:
        return operand
    return bind(reshape_p, (operand,), {"new_sizes": new_sizes, "dimensions": dimensions})


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`array` without the axes `dimensions`, each of size 1.

    Raises:
        ValueError: an axis is repeated, or not of size 1.

    Example:
        >>> from gradix import lax
        >>> lax.squeeze(lax.full((1, 2), 3), (0,))
        Array([3, 3], dtype=int32, weak_type=True)
    """
    (array,) = arrays("squeeze", array)
    ndim = array.aval.ndim
    dims = tuple([canonical_axis(d, ndim) for d in dimensions])
    if len(set(dims)) != len(dims):
        raise ValueError(f"dimensions are not unique: {tuple(dimensions)}")
    return bind(squeeze_p, (array,), {"dimensions": dims}) if dims else array


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`array` with new axes of size 1 where `dimensions` says they are in the result.

    Raises:
        ValueError: an axis is repeated.

    Example:
        >>> from gradix import lax
        >>> lax.expand_dims(lax.iota("int32", 2), (0,))
        Array([[0, 1]], dtype=int32)
    """
    (array,) = arrays("expand_dims", array)
    if not len(dimensions):
        return array
    shape = array.aval.shape
    ndim = len(shape) + len(dimensions)
    dims = {canonical_axis(d, ndim) for d in dimensions}
    if len(dims) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    kept = tuple([i for i in range(ndim) if i not in dims])
    sizes = iter(shape)
    full = tuple([1 if i in dims else next(sizes) for i in range(ndim)])
    return bind(broadcast_in_dim_p, (array,), {"shape": full, "broadcast_dimensions": kept})


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`operand` with its elements in reverse order along the axes `dimensions`.

    Example:
        >>> from gradix import lax
        >>> lax.rev(lax.iota("int32", 3), (0,))
        Array([2, 1, 0], dtype=int32)
    """
    (operand,) = arrays("rev", operand)
    dimensions = canonical_shape(dimensions, "dimensions")
    return bind(rev_p, (operand,), {"dimensions": dimensions}) if dimensions else operand


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """`operand` with its axes permuted: axis i of the result is axis `permutation[i]`.

    Example:
        >>> from gradix import lax
        >>> lax.transpose(lax.full((2, 3), 1.0), (1, 0)).shape
        (3, 2)
    """
    (operand,) = arrays("transpose", operand)
    permutation = tuple([index(i) for i in permutation])
    if permutation == tuple(range(operand.aval.ndim)):
        return operand
    return bind(transpose_p, (operand,), {"permutation": permutation})


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[Size],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """`operand` broadcast to `shape`; its axis i becomes axis `broadcast_dimensions[i]`.

    Args:
        operand: an array or number.
        shape: the result's shape.
        broadcast_dimensions: for each axis of `operand`, the axis of the result that it becomes;
            increasing. An axis of size 1 is repeated.
        out_sharding: how the result is to be divided.

    Example:
        >>> from gradix import lax
        >>> lax.broadcast_in_dim(lax.iota("int32", 2), (2, 3), (0,))
        Array([[0, 0, 0],
               [1, 1, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return rearranged(broadcast_in_dim, out_sharding, operand, shape, broadcast_dimensions, copies=True)
    (operand,) = arrays("broadcast_in_dim", operand)
    shape = canonical_shape(shape)
    check_sizes("broadcast_in_dim", shape)
    dims = tuple([index(d) for d in broadcast_dimensions])
    if len(dims) == len(shape) and operand.aval.shape == shape and dims == tuple(range(len(shape))):
        return operand
    if len(dims) == operand.aval.ndim and len(set(dims)) == len(dims) and list(dims) != sorted(dims):
        operand = permute(operand, inverse(tuple([sorted(dims).index(d) for d in dims])))
        dims = tuple(sorted(dims))
    return bind(broadcast_in_dim_p, (operand,), {"shape": shape, "broadcast_dimensions": dims})


def broadcast(
    operand: ArrayLike, sizes: Sequence[Size], *, out_sharding: NamedSharding | PartitionSpec | None = None
) -> Array:
    """`operand` with new leading axes of the given sizes.

    Example:
        >>> from gradix import lax
        >>> lax.broadcast(1.0, (2,))
        Array([1., 1.], dtype=float32, weak_type=True)
    """
    if out_sharding is not None:
        return rearranged(broadcast, out_sharding, operand, sizes, copies=True)
    (operand,) = arrays("broadcast", operand)
    sizes = canonical_shape(sizes, "sizes")
    if not sizes:
        return operand
    shape = operand.aval.shape
    return broadcast_in_dim(operand, (*sizes, *shape), range(len(sizes), len(sizes) + len(shape)))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """`arr` broadcast to the shape of another array: leading axes added, axes of size 1 stretched.

    It is divided over explicit mesh axes as that is.

    Args:
        arr: an array with at most as many axes.
        like_arr: the array whose shape is wanted; its values are not used.

    Raises:
        ValueError: the shapes do not fit, or `arr` is divided in another way.

    Example:
        >>> from gradix import lax
        >>> lax.broadcast_like(2.0, lax.iota("float32", 3))
        Array([2., 2., 2.], dtype=float32, weak_type=True)
    """
    x, like = arrays("broadcast_like", arr, like_arr)
    old, shape = x.aval.shape, like.aval.shape
    if len(old) > len(shape):
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={old} shape={shape}.")
    if any(m not in (1, n) for m, n in zip(old, shape[len(shape) - len(old) :])):
        raise ValueError(
            f"Incompatible shapes for broadcasting: arr has shape {old} and like_arr has shape {shape}. "
            "Axes are matched from the last; each must have the size of that of like_arr, or 1."
        )
    out, wanted = broadcast_in_dim(x, shape, range(len(shape) - len(old), len(shape))), like.aval.division
    if wanted is None or out.aval.division == wanted:
        return out
    if any(a is not None and a != b for a, b in zip(entries(out.aval), entries(like.aval))):
        raise ValueError(
            f"Incompatible shardings for broadcasting: arr is {x.aval.str_short()} and like_arr is "
            f"{like.aval.str_short()}. Divide arr as like_arr is, with gradix.sharding.reshard."
        )
    return seams.reshard(out, wanted)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with leading axes of size 1 until it has `rank` axes.

    Example:
        >>> from gradix import lax
        >>> lax.broadcast_to_rank(lax.iota("int32", 3), 2).shape
        (1, 3)
    """
    (x,) = arrays("broadcast_to_rank", x)
    missing = rank - x.aval.ndim
    return broadcast(x, (1,) * missing) if missing > 0 else x


def broadcast_shapes(*shapes: Sequence[Size]) -> tuple:
    """The shape that arrays of these shapes broadcast to, aligned at the last axis.

    Raises:
        ValueError: the shapes do not broadcast.
        TypeError: a size is negative.

    Example:
        >>> from gradix import lax
        >>> lax.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    known = [canonical_shape(s) for s in shapes]
    ndim = max([len(s) for s in known], default=0)
    full = [(1,) * (ndim - len(s)) + s for s in known]
    out = []
    for sizes in zip(*full):
        wide = {d for d in sizes if not (type(d) is int and d == 1)}
        if len(wide) > 1:
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={list(shapes)}. Axes, counted from the "
                "last, must agree or have size 1."
            )
        out.append(wide.pop() if wide else 1)
    if any(type(n) is int and n < 0 for n in out):
        raise TypeError(f"broadcast_shapes: sizes must not be negative, got shapes={list(shapes)}.")
    return tuple(out)


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """`operand` with the axes from `start_dimension` up to `stop_dimension` made one.

    Args:
        operand: an array.
        start_dimension: the first of the axes; negative ones count from the end.
        stop_dimension: the one after the last of them; None goes to the end.

    Raises:
        ValueError: the range of axes is empty or out of bounds.

    Example:
        >>> from gradix import lax
        >>> lax.collapse(lax.full((2, 3, 4), 0.0), 1).shape
        (2, 12)
    """
    (operand,) = arrays("collapse", operand)
    shape = operand.aval.shape
    lo, hi, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {operand.aval.shape}[{start_dimension}:"
            f"{stop_dimension}]. The range must not end before it starts."
        )
    return reshape(operand, (*shape[:lo], prod(shape[lo:hi]), *shape[hi:]))
