"""dynamic_slice and dynamic_update_slice: a block of an array at a position that may be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_number, scalar_array, wrap_host
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_dim
from gradix._core.divisions import merged, resized
from gradix._core.dtypes import INTEGER
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, instantiate, to_axis, to_front, zeros
from gradix._ops.canonicalization import canonical_axis, canonical_shape, memoised
from gradix._ops.convert import convert
from gradix._ops.indexing.gather import gather_p
from gradix._ops.indexing.gather_dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from gradix._ops.indexing.index_values import index_from_end
from gradix._ops.indexing.scatter import scatter_p
from gradix._ops.indexing.slicing import slice_in_dim
from gradix._ops.joining import concatenate
from gradix._ops.operands import arrays
from gradix._ops.shape import expand_dims, squeeze

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Size


def _check_starts(name, x, starts):
    if len(starts) != x.ndim:
        raise TypeError(
            f"{name} needs one start index per operand axis, got {len(starts)} for operand shape {x.shape}."
        )
    if any(i.shape for i in starts):
        raise TypeError(
            f"start_indices arguments to {name} must be scalars, got indices {', '.join([str(i) for i in starts])}"
        )
    if any(i.dtype not in INTEGER or i.dtype != starts[0].dtype for i in starts):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: "
            f"{', '.join([dtypes.dtype_name(i.dtype) for i in starts])}"
        )


def _block(shape, starts, sizes):
    """The block as NumPy slices, clamped so that it lies inside the array."""
    return tuple([slice(k, k + m) for n, i, m in zip(shape, starts, sizes) for k in (min(max(int(i), 0), n - m),)])


def _along(i, axis, size):
    """Start indices with a 0 inserted at `axis`, along which the block has the full size."""
    zero = scalar_array(0, i[0].aval.dtype if i else np.dtype("int32"), False)
    return (*i[:axis], zero, *i[axis:])


def _index_vectors(size, starts, axes, moving):
    """The start indices of the axes `moving` under vmap: one index vector for each example."""
    columns = []
    for d in moving:
        i, a = starts[d], axes[d]
        columns.append(broadcast_in_dim(i, (size, 1), (0,) if a is not None else ()))
    return concatenate(columns, 1)


class DynamicSlice(Primitive):
    """A block of `slice_sizes`; start indices that would reach outside are moved inside."""

    live = "moves"

    @memoised
    def abstract(self, x, *starts, slice_sizes):
        _check_starts("dynamic_slice", x, starts)
        if len(slice_sizes) != x.ndim:
            raise TypeError(
                f"dynamic_slice slice_sizes must have one size per operand axis, got {slice_sizes} for "
                f"operand shape {x.shape}."
            )
        if any(type(m) is int and m < 0 for m in slice_sizes):
            raise TypeError(
                f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of {slice_sizes}."
            )
        if any(type(n) is int and type(m) is int and m > n for n, m in zip(x.shape, slice_sizes)):
            raise TypeError(
                f"slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
                f"{slice_sizes} for operand shape {x.shape}."
            )
        return make_aval(slice_sizes, x.dtype, x.weak_type)

    def host(self, x, *starts, slice_sizes):
        return x[_block(x.shape, starts, slice_sizes)]

    def jvp(self, primals, tangents, **params):
        out = bind(self, primals, params)
        return out, None if tangents[0] is None else bind(self, (tangents[0], *primals[1:]), params)

    def transpose(self, ct, x, *starts, slice_sizes):
        rest = [None] * len(starts)
        return [bind(dynamic_update_slice_p, (zeros(make_aval(x.aval.shape, ct.aval.dtype)), ct, *starts), {}), *rest]

    def batch(self, size, args, axes, *, slice_sizes):
        (x, *starts), (a, *at) = args, axes
        if all(i is None for i in at):
            sizes = (*slice_sizes[:a], size, *slice_sizes[a:])
            return bind(self, (x, *_along(starts, a, size)), {"slice_sizes": sizes}), a
        mapped = int(a is not None)
        x = x if a is None else to_front(size, x, a)
        shape = x.aval.shape[mapped:]
        moving = [d for d in range(len(shape)) if slice_sizes[d] != shape[d]]
        if not moving:
            return x, 0 if mapped else None
        dnums = GatherDimensionNumbers(
            tuple(range(1, 1 + len(shape))), (), tuple([d + mapped for d in moving]), (0,) * mapped, (0,) * mapped
        )
        return bind(
            gather_p,
            (x, _index_vectors(size, starts, at, moving)),
            {
                "dimension_numbers": dnums,
                "slice_sizes": (*(1,) * mapped, *slice_sizes),
                "mode": GatherScatterMode.CLIP_STARTS,
                "fill_value": None,
                "indices_are_sorted": bool(mapped),
                "unique_indices": bool(mapped),
            },
        ), 0

    def divide(self, mesh, avals, outs, params):
        return [resized(self.name, avals[0], outs[0].shape, mesh)]

    def lower(self, em, out, x, *starts, slice_sizes):
        return em.dynamic_slice(x, em.inside(starts, x.aval.shape, slice_sizes), slice_sizes, out)


class DynamicUpdateSlice(Primitive):
    """An array with a block replaced; start indices that would reach outside are moved inside."""

    mesh = MeshTraits(linear="all")

    @memoised
    def abstract(self, x, update, *starts):
        if x.ndim != update.ndim:
            raise TypeError(
                f"dynamic_update_slice update must have the same rank as operand, got update shape "
                f"{update.shape} for operand shape {x.shape}."
            )
        if x.dtype != update.dtype:
            raise TypeError(
                "lax.dynamic_update_slice requires arguments to have the same dtypes, got "
                f"{dtypes.dtype_name(x.dtype)}, {dtypes.dtype_name(update.dtype)}. Convert the update with "
                ".astype(operand.dtype)."
            )
        if any(type(n) is int and type(m) is int and m > n for n, m in zip(x.shape, update.shape)):
            raise TypeError(
                f"dynamic_update_slice update shape must be smaller than operand shape, got update shape "
                f"{update.shape} for operand shape {x.shape}."
            )
        _check_starts("dynamic_update_slice", x, starts)
        return make_aval(x.shape, x.dtype, x.weak_type and update.weak_type)

    def host(self, x, update, *starts):
        out = x.copy()
        out[_block(x.shape, starts, update.shape)] = update
        return out

    def jvp(self, primals, tangents):
        x, update, *starts = primals
        out = bind(self, primals, {})
        t, tu = tangents[:2]
        if t is None and tu is None:
            return out, None
        return out, bind(self, (instantiate(t, x.aval), instantiate(tu, update.aval), *starts), {})

    def transpose(self, ct, x, update, *starts):
        back_x = back = None
        if type(x) is Linear:
            hole = zeros(make_aval(update.aval.shape, ct.aval.dtype))
            back_x = bind(self, (ct, hole, *starts), {})
        if type(update) is Linear:
            back = bind(dynamic_slice_p, (ct, *starts), {"slice_sizes": update.aval.shape})
        return [back_x, back, *[None] * len(starts)]

    def batch(self, size, args, axes):
        (x, update, *starts), (a, u, *at) = args, axes
        if all(i is None for i in at):
            axis = a if a is not None else u
            x, update = to_axis(size, x, a, axis), to_axis(size, update, u, axis)
            return bind(self, (x, update, *_along(starts, axis, size)), {}), axis
        x, update = to_front(size, x, a), to_front(size, update, u)
        shape, block = x.aval.shape[1:], update.aval.shape[1:]
        moving = [d for d in range(len(shape)) if block[d] != shape[d]]
        if not moving:
            return update, 0
        dnums = ScatterDimensionNumbers(tuple(range(1, 1 + len(shape))), (), tuple([d + 1 for d in moving]), (0,), (0,))
        return bind(
            scatter_p,
            (x, _index_vectors(size, starts, at, moving), update),
            {
                "dimension_numbers": dnums,
                "indices_are_sorted": True,
                "unique_indices": True,
                "mode": GatherScatterMode.CLIP_STARTS,
                "update_jaxpr": None,
                "update_consts": (),
            },
        ), 0

    def divide(self, mesh, avals, outs, params):
        return [merged(self.name, avals[:2], outs[0].shape)]

    def lower(self, em, out, x, update, *starts):
        return em.dynamic_update_slice(x, update, em.inside(starts, x.aval.shape, update.aval.shape))


dynamic_slice_p = DynamicSlice("dynamic_slice")
dynamic_update_slice_p = DynamicUpdateSlice("dynamic_update_slice")


# -- start indices ---------------------------------------------------------------------------------


def _starts(name, shape, start_indices, allow_negative):
    """Start indices as scalar arrays of one dtype, counted from the front."""
    if isinstance(start_indices, (Array, np.ndarray)):
        start_indices = _entries(name, start_indices)
    if not isinstance(start_indices, (list, tuple)):
        raise TypeError(f"{name}: start_indices must hold an index per axis, as in (i,), got {start_indices!r}.")
    if len(start_indices) != len(shape):
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({len(start_indices)} vs {shape})"
        )
    if type(allow_negative) is bool:
        allow_negative = (allow_negative,) * len(shape)
    dtype, starts = None, []
    for i, n, negative in zip(start_indices, shape, allow_negative):
        if type(i) is int:
            if i < 0 and not negative:
                raise ValueError(f"Index {i} is out of bounds for dimension {n} if allow_negative_indices=False")
        elif not isinstance(i, Array):
            (i,) = arrays(name, i)
        if type(i) is ArrayImpl:
            dtype, i = _known(i, dtype)
        elif type(i) is not int:
            dtype = dtype or i.aval.dtype
        if type(i) is int and i < 0 and negative:
            i = i + n
        starts.append(i)
    if dtype is None or dtype not in INTEGER:
        dtype = dtypes.python_scalar_dtype(int)
    wide = dtypes.index_dtype(dtype, shape)
    for d, i in enumerate(starts):
        if type(i) is int:
            starts[d] = _scalar(i, wide)
        elif is_symbolic_dim(i):  # a negative number, counted from the end
            starts[d] = convert(*arrays(name, i), wide)
        else:
            starts[d] = _traced(i, shape[d], allow_negative[d], dtype, wide)
    return starts


def _traced(i, n, negative, dtype, wide):
    """A start index counted from the front; `_check_starts` refuses those not of `dtype`."""
    aval = i.aval
    if aval.dtype != dtype or aval.shape:
        return i
    if negative:
        i = index_from_end(i, n)
    return i if i.aval.dtype is wide else convert(i, wide)


def _entries(name, vector):
    """The elements of a vector of start indices."""
    (vector,) = arrays(name, vector)
    if vector.aval.ndim != 1:
        raise ValueError(f"Slice indices must be a 1D sequence, got {vector.aval.shape}")
    if type(vector) is ArrayImpl:
        host = vector.host
        return [as_number(wrap_host(np.asarray(host[k]))) for k in range(host.size)]
    return [squeeze(slice_in_dim(vector, k, k + 1), (0,)) for k in range(vector.aval.shape[0])]


def _known(i, dtype):
    """The common dtype so far, and the index: as an int if it is on the host and of that dtype."""
    aval, h = i.aval, i._host
    dtype = dtype or aval.dtype
    if h is None or aval.shape or aval.dtype != dtype or h.dtype.kind not in "iu":
        return dtype, i
    return dtype, h.item()


_scalars: BoundedCache[tuple, ArrayImpl] = BoundedCache(4096)


def _scalar(i: int, dtype) -> ArrayImpl:
    """A start index as an array; a number that the dtype does not hold is out of bounds anyway."""
    found = _scalars.get((i, dtype))
    if found is None:
        info = dtypes.iinfo(dtype)
        found = _scalars.keep((i, dtype), scalar_array(min(max(i, int(info.min)), int(info.max)), dtype, False))
    return found


# -- functions -------------------------------------------------------------------------------------


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Array | np.ndarray | Sequence[ArrayLike],
    slice_sizes: Sequence[Size],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The block of `operand` of `slice_sizes` that starts at `start_indices`.

    Args:
        operand: an array.
        start_indices: one scalar per axis, or a vector; a block that would reach outside is moved
            inside.
        slice_sizes: the block's shape.
        allow_negative_indices: whether negative indices count from the end; one bool, or one per
            axis.

    Example:
        >>> from gradix import lax
        >>> lax.dynamic_slice(lax.iota("int32", 5), (3,), (2,))
        Array([3, 4], dtype=int32)
    """
    (operand,) = arrays("dynamic_slice", operand)
    starts = _starts("dynamic_slice", operand.aval.shape, start_indices, allow_negative_indices)
    return bind(dynamic_slice_p, (operand, *starts), {"slice_sizes": canonical_shape(slice_sizes, "slice_sizes")})


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Array | np.ndarray | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """`operand` with the block that starts at `start_indices` replaced by `update`.

    Args:
        operand: an array.
        update: an array of the operand's dtype and rank, no longer along any axis.
        start_indices: as for `dynamic_slice`.
        allow_negative_indices: whether negative indices count from the end; one bool, or one per
            axis.

    Example:
        >>> from gradix import lax
        >>> lax.dynamic_update_slice(lax.iota("int32", 3), lax.full((2,), 9, "int32"), (1,))
        Array([0, 9, 9], dtype=int32)
    """
    operand, update = arrays("dynamic_update_slice", operand, update)
    starts = _starts("dynamic_update_slice", operand.aval.shape, start_indices, allow_negative_indices)
    return bind(dynamic_update_slice_p, (operand, update, *starts), {})


def _one_axis(shape, index, axis, negative):
    """Start indices: `index` at `axis`, 0 elsewhere. Also says which of them may be negative."""
    return (
        [index if d == axis else 0 for d in range(len(shape))],
        [negative if d == axis else True for d in range(len(shape))],
    )


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """The `slice_size` entries of `operand` along `axis` that start at `start_index`.

    Args:
        operand: an array.
        start_index: an integer scalar, which may be traced; it is clamped so that the slice lies
            inside.
        slice_size: how many entries, a number known when tracing.
        axis: the axis; negative ones count from the end.
        allow_negative_indices: whether a negative index counts from the end.

    Example:
        >>> from gradix import lax
        >>> lax.dynamic_slice_in_dim(lax.iota("int32", 5), 1, 2)
        Array([1, 2], dtype=int32)
    """
    (operand,) = arrays("dynamic_slice_in_dim", operand)
    shape = operand.aval.shape
    axis = canonical_axis(axis, len(shape))
    starts, negative = _one_axis(shape, start_index, axis, allow_negative_indices)
    sizes = [slice_size if d == axis else n for d, n in enumerate(shape)]
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=negative)


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """Entry `index` of `operand` along `axis`, which stays with size 1 unless `keepdims` is False.

    Args:
        operand: an array.
        index: an integer scalar, which may be traced; one that is out of bounds is clamped.
        axis: the axis; negative ones count from the end.
        keepdims: whether the axis stays.
        allow_negative_indices: whether a negative index counts from the end.

    Example:
        >>> from gradix import lax
        >>> lax.dynamic_index_in_dim(lax.iota("int32", 5), 3, keepdims=False)
        Array(3, dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else squeeze(out, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with entries along `axis`, from `start_index` on, replaced by `update`.

    Args:
        operand: an array.
        update: an array of its dtype and rank, no longer along any axis.
        start_index: an integer scalar, which may be traced; it is clamped so that the slice lies
            inside.
        axis: the axis; negative ones count from the end.
        allow_negative_indices: whether a negative index counts from the end.

    Example:
        >>> from gradix import lax
        >>> lax.dynamic_update_slice_in_dim(lax.iota("int32", 3), lax.full((1,), 9, "int32"), 1, 0)
        Array([0, 9, 2], dtype=int32)
    """
    (operand,) = arrays("dynamic_update_slice_in_dim", operand)
    shape = operand.aval.shape
    starts, negative = _one_axis(shape, start_index, canonical_axis(axis, len(shape)), allow_negative_indices)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=negative)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with entry `index` along `axis` replaced by `update`, which may lack that axis.

    Args:
        operand: an array.
        update: an array of its dtype and shape, the axis of size 1 or absent.
        index: an integer scalar, which may be traced; one that is out of bounds is clamped.
        axis: the axis; negative ones count from the end.
        allow_negative_indices: whether a negative index counts from the end.

    Example:
        >>> from gradix import lax
        >>> lax.dynamic_update_index_in_dim(lax.iota("int32", 3), lax.full((), 9, "int32"), 1, 0)
        Array([0, 9, 2], dtype=int32)
    """
    operand, update = arrays("dynamic_update_index_in_dim", operand, update)
    axis = canonical_axis(axis, operand.aval.ndim)
    if update.aval.ndim != operand.aval.ndim:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)
