"""gather: windows of an array at positions given by index vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim, is_symbolic_shape
from gradix._core.divisions import ShardingTypeError, entries, names_in
from gradix._core.dtypes import BOOL, INEXACT, SIGNED
from gradix._core.operators import Array
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, rem
from gradix._ops.basis import to_front
from gradix._ops.canonicalization import canonical_shape, memoised
from gradix._ops.comparison import lt
from gradix._ops.convert import convert_element_type
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.indexing.gather_checks import check_gather
from gradix._ops.indexing.gather_dimension_numbers import (
    FILLING,
    GatherDimensionNumbers,
    GatherScatterMode,
    axes_by_name,
    canonical_numbers,
    inside,
    shifted,
    windows,
    windows_shape,
    with_batching_axis,
    with_window_axis,
)
from gradix._ops.indexing.index_values import wide_index
from gradix._ops.joining import concatenate
from gradix._ops.operands import arrays
from gradix._ops.select import select_n
from gradix._ops.shape import expand_dims

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Size

_FILLING = FILLING | {GatherScatterMode.ONE_HOT}


class Gather(Primitive):
    """Windows of `slice_sizes` of an operand, linear in it.

    The module of scatter, which imports this one, sets the transpose rule
    `adjoint(ct, operand_aval, indices, params)`.
    """

    live = "moves"
    adjoint: Callable

    @memoised
    def _result(self, x, indices, dnums, slice_sizes):
        check_gather(x.shape, indices, dnums, slice_sizes)
        return make_aval(windows_shape(x.shape, indices.shape, dnums, slice_sizes), x.dtype, x.weak_type)

    def abstract(self, x, indices, *, dimension_numbers, slice_sizes, **_):
        return self._result(x, indices, dimension_numbers, slice_sizes)

    def host(self, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
        plan = windows(x.shape, indices.shape, dimension_numbers, slice_sizes)
        if indices.dtype.kind not in "iu":
            indices = indices.astype(np.intp)
        ok = plan.valid(indices) if mode in _FILLING else None
        if plan.single:
            out = x[plan.corner(x.shape, indices, dimension_numbers, slice_sizes)].reshape(plan.shape)
        elif plan.direct:
            rows = x if plan.inner == 1 and x.ndim == 1 else np.ascontiguousarray(x).reshape(plan.rows, plan.inner)
            at = indices[..., 0]
            at = at if at.dtype.kind == "i" else inside(at, plan.limits[0])
            out = rows.take(at.reshape(-1), 0, mode="clip").reshape(plan.shape)
        else:
            rows = np.ascontiguousarray(x).reshape(plan.rows, plan.inner)
            out = rows.take(plan.positions(indices).reshape(-1), 0).reshape(plan.shape)
        if ok is None:
            return out
        fill = np.asarray(_fill_for(x.dtype, fill_value, mode)).astype(x.dtype)
        return np.where(ok.reshape(_beside_windows(ok.shape, dimension_numbers.offset_dims, out.ndim)), out, fill)

    def jvp(self, primals, tangents, **params):
        (x, indices), (t, _) = primals, tangents
        y = bind(self, (x, indices), params)
        if t is None:
            return y, None
        filled = params["mode"].fills
        return y, bind(self, (t, indices), {**params, "fill_value": 0} if filled else params)

    def transpose(self, ct, x, indices, **params):
        return [self.adjoint(ct, x.aval, indices, params), None]

    def batch(self, size, args, axes, *, dimension_numbers, slice_sizes, **params):
        (x, indices), (a, i) = args, axes
        if i is None:
            x = to_front(size, x, a)
            dnums, slice_sizes = with_window_axis(dimension_numbers), (size, *slice_sizes)
        elif a is None:
            indices, dnums = to_front(size, indices, i), shifted(dimension_numbers, 1, 0, 1)
            params = {**params, "unique_indices": False, "indices_are_sorted": False}
        else:
            x, indices = to_front(size, x, a), to_front(size, indices, i)
            dnums, slice_sizes = with_batching_axis(dimension_numbers), (1, *slice_sizes)
            params = {**params, "indices_are_sorted": False}
        return bind(self, (x, indices), {"dimension_numbers": dnums, "slice_sizes": slice_sizes, **params}), 0

    def divide(self, mesh, avals, outs, params):
        x, indices = avals
        dnums, sizes, row = params["dimension_numbers"], params["slice_sizes"], entries(x)
        stacks = dict(zip(dnums.operand_batching_dims, dnums.start_indices_batching_dims))
        at = list(entries(indices))
        cut = [i for i, n in enumerate(sizes) if n != x.shape[i] and i not in stacks]
        inner = [
            i for i in range(x.ndim) if i not in dnums.collapsed_slice_dims and i not in dnums.operand_batching_dims
        ]
        if any(row[i] is not None for i in cut) or any(
            None not in (row[i], at[j]) and row[i] != at[j] for i, j in stacks.items()
        ):
            raise ShardingTypeError(
                "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out "
                f"sharding could not be resolved unambiguously: {x.str_short()} is divided over axes among {cut}, of "
                "which parts are taken."
            )
        for i, j in stacks.items():
            at[j] = at[j] if row[i] is None else row[i]
        out: list = [None] * outs[0].ndim
        for i, k in zip(inner, dnums.offset_dims):
            out[k] = row[i]
        rest = [k for k in range(outs[0].ndim) if k not in dnums.offset_dims]
        for k, e in zip(rest, at[:-1]):
            out[k] = e if not set(names_in(out)) & set(names_in([e])) else None
        return [tuple(out)]

    def lower(self, em, out, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, indices_are_sorted, **_):
        limits = [x.aval.shape[d] - slice_sizes[d] for d in dimension_numbers.start_index_map]
        places = indices.aval.shape[:-1]
        is_slice = em.is_divided or not is_symbolic_shape(places) and math.prod(places) == 1
        if mode not in _FILLING and limits and is_slice:
            # XLA takes a single window on a device for a slice, which it does not move where it joins it with another
            low, high = em.splat(0, indices.aval), lower_limits(em, indices.aval, limits)
            indices = em.op("clamp", indices.aval, low, indices, high)
        y = emit_gather(em, out, x, indices, dimension_numbers, slice_sizes, is_sorted=indices_are_sorted)
        if mode not in _FILLING or not limits:
            return y
        ok = lower_valid(em, indices, limits)
        batch = [i for i in range(len(out.shape)) if i not in dimension_numbers.offset_dims]
        ok = em.broadcast_in_dim(ok, make_aval(out.shape, ok.aval.dtype), batch)
        fill = np.asarray(_fill_for(out.dtype, fill_value, mode)).astype(dtypes.physical_dtype(out.dtype))
        return em.select(ok, y, em.splat(fill, out))


def lower_valid(em, indices, limits):
    """For each index vector, whether it is within [0, limits]."""
    aval = indices.aval
    low, high = em.splat(0, aval), lower_limits(em, aval, limits)
    inside = em.op(
        "and", make_aval(aval.shape, np.dtype(bool)), em.compare(indices, low, "GE"), em.compare(indices, high, "LE")
    )
    out = make_aval(aval.shape[:-1], np.dtype(bool))
    true = em.constant(True, make_aval((), np.dtype(bool)))
    return em.reduce([inside], [true], (aval.ndim - 1,), [out], "and")[0]


def lower_limits(em, aval, limits):
    """`limits` broadcast to the index vectors, clamped to the largest value of the index dtype."""
    top = int(dtypes.iinfo(aval.dtype).max)
    if is_symbolic_shape(limits):
        return em.broadcast_in_dim(em.convert(em.sizes(limits), aval.dtype), aval, (aval.ndim - 1,))
    vector = np.array([min(n, top) for n in limits], aval.dtype)
    return em.broadcast_in_dim(em.constant(vector, make_aval(vector.shape, aval.dtype)), aval, (aval.ndim - 1,))


def emit_gather(em, out, x, indices, dnums, sizes, *, is_sorted: bool = False):
    """Windows of these sizes of `x` at index vectors, which lie along the last axis of `indices`.

    Args:
        is_sorted: whether the index vectors are in order.
    """
    indices = em.index(indices, x.aval.shape)
    offset, collapsed, start_index_map, batching, batching_at = dnums
    axes = {
        "offset_dims": offset,
        "collapsed_slice_dims": collapsed,
        "operand_batching_dims": batching,
        "start_indices_batching_dims": batching_at,
        "start_index_map": start_index_map,
    }
    text = axes_by_name(axes, indices.aval.ndim - 1)
    attrs = f"dimension_numbers = #stablehlo.gather<{text}>, "
    rest = f"indices_are_sorted = {str(is_sorted).lower()}"
    if is_symbolic_shape(sizes):
        return em.op("dynamic_gather", out, x, indices, em.sizes(sizes), attrs=attrs + rest)
    attrs = f"{attrs}slice_sizes = {em.i64_array(sizes)}, {rest}"
    return em.op("gather", out, x, indices, attrs=attrs)


def _beside_windows(shape, offset_dims, ndim):
    """The shape of the index vectors, with axes of size 1 at `offset_dims`."""
    sizes = iter(shape)
    return [1 if i in offset_dims else next(sizes) for i in range(ndim)]


def _fill_for(dtype, fill_value, mode):
    """The value read for an element outside the operand."""
    if mode is GatherScatterMode.ONE_HOT:
        return 0
    if fill_value is not None:
        return fill_value
    return default_fill(dtype)


@functools.cache
def _all_set(dtype):
    """A key with all bits set.

    It is cached, as it may be NaN, which dicts find only by identity.
    """
    return dtype.filled(-1)[()]


def default_fill(dtype):
    """The fill value: NaN, the least signed or greatest unsigned integer, True, or all bits set."""
    if dtype in INEXACT:
        return np.nan
    if dtype in BOOL:
        return True
    if isinstance(dtype, dtypes.KeyType):
        return _all_set(dtype)
    info = dtypes.iinfo(dtype)
    return int(info.min) if dtype in SIGNED else int(info.max)


gather_p = Gather("gather")


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[Size],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Windows of `operand` of sizes `slice_sizes` that start at the vectors of `start_indices`.

    Args:
        operand: an array.
        start_indices: integers; the vectors lie along the last axis.
        dimension_numbers: a `GatherDimensionNumbers`, which says which axes correspond.
        slice_sizes: the window's size along each axis of the operand.
        unique_indices: a promise that no window occurs twice.
        indices_are_sorted: a promise that the index vectors are sorted.
        mode: a `GatherScatterMode` or its name; None promises indices in bounds.
        fill_value: the value that mode "fill" reads outside the operand; by default NaN, the least
            signed and the greatest unsigned integer, or True.

    Returns:
        An array of the operand's dtype, with the axes of the vectors and of the windows.

    Example:
        >>> from gradix import lax
        >>> rows = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
        >>> lax.gather(lax.iota("int32", 5), lax.full((2, 1), 3), rows, (1,))
        Array([3, 3], dtype=int32)
    """
    operand, start_indices = arrays("gather", operand, start_indices)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if not mode.fills:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill(operand.aval.dtype)
    elif isinstance(fill_value, (Array, np.ndarray)):
        fill_value = fill_value.host.item() if isinstance(fill_value, ArrayImpl) else np.asarray(fill_value).item()
    dnums = canonical_numbers(dimension_numbers, GatherDimensionNumbers)
    return bind(
        gather_p,
        (operand, start_indices),
        {
            "dimension_numbers": dnums,
            "slice_sizes": canonical_shape(slice_sizes, "slice_sizes"),
            "mode": mode,
            "fill_value": fill_value,
            "indices_are_sorted": bool(indices_are_sorted),
            "unique_indices": bool(unique_indices),
        },
    )


def _row_of(sizes, dtype) -> Array:
    """Sizes as a matrix of one row."""
    if not is_symbolic_shape(sizes):
        return arrays("index_take", np.array([sizes], dtype))[0]
    values = [convert_element_type(dim_as_value(n) if type(n) is SymbolicDim else np.int32(n), dtype) for n in sizes]
    return concatenate([expand_dims(v, (0, 1)) for v in values], 1)


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The elements, or slices, of `src` at positions `idxs` along `axes`; indices wrap around.

    Args:
        src: an array.
        idxs: integer arrays of one length, one per axis.
        axes: the axes they index.

    Example:
        >>> from gradix import lax
        >>> lax.index_take(lax.iota("int32", 5), (lax.full((2,), -1),), (0,))
        Array([4, 4], dtype=int32)
    """
    src, *idxs = arrays("index_take", src, *idxs)
    axes = tuple(axes)
    shape = [src.aval.shape[a] for a in axes]
    indices = concatenate([expand_dims(wide_index(i, *shape), (1,)) for i in idxs], 1)
    sizes = _row_of(shape, indices.aval.dtype)
    left = rem(indices, sizes)
    indices = select_n(lt(left, np.zeros((), indices.aval.dtype)), left, add(left, sizes))
    ndim = src.aval.ndim
    dnums = GatherDimensionNumbers(tuple(range(1, ndim - len(axes) + 1)), axes, axes)
    slice_sizes = [1 if d in axes else n for d, n in enumerate(src.aval.shape)]
    return gather(src, indices, dnums, slice_sizes)
