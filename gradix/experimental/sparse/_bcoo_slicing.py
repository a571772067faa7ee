"""Parts of BCOO arrays: slices with static or dynamic starts, and gathers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradix import lax, numpy as jnp
from gradix._api.mapping.vmap import vmap
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_moving import bcoo_reshape, bcoo_squeeze, bcoo_transpose
from gradix.experimental.sparse._bcoo_storage import bcoo_sum_duplicates, bcoo_update_layout
from gradix.experimental.sparse._layout import or_zero, sparse_shape, spread
from gradix.numpy.promotion import raise_rank

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.operators import Array


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """A slice of the array, as a BCOO array; see `lax.slice`.

    Args:
        mat: the array.
        start_indices, limit_indices: the first index along each axis, and the end, exclusive.
        strides: the step along each axis; 1 by default.

    Raises:
        ValueError: there is not one value per axis, or the slice is not within the array.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_slice(BCOO.fromdense(jnp.arange(4.0)), start_indices=(1,), limit_indices=(3,)).todense()
        Array([1., 2.], dtype=float32)
    """
    starts, limits = [tuple([int(i) for i in x]) for x in (start_indices, limit_indices)]
    steps = tuple(strides) if strides is not None else (1,) * mat.ndim
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(
            f"bcoo_slice: start_indices, limit_indices and strides must have one value for each of the "
            f"{mat.ndim} axes; got {starts}, {limits} and {steps}."
        )
    if any(not 0 <= s <= e <= n for s, e, n in zip(starts, limits, mat.shape)) or any(k <= 0 for k in steps):
        raise ValueError(
            f"bcoo_slice: start_indices={starts} must not be above limit_indices={limits}, both must be "
            f"within shape {mat.shape}, and strides={steps} must be positive."
        )
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    shape = tuple([-(-(e - s) // k) for s, e, k in zip(starts, limits, steps)])

    def cut(x, i, axis):
        return lax.slice_in_dim(x, starts[i], limits[i], steps[i], axis)

    data, indices = _cut_stored(mat, cut)
    if any((starts[i], limits[i], steps[i]) != (0, mat.shape[i], 1) for i in range(a, b)):
        return _cut_sparse(mat, data, indices, starts[a:b], shape, steps[a:b])
    return BCOO((data, indices), shape=shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _cut_stored(mat: BCOO, cut) -> tuple:
    """Data and indices, cut by `cut(x, i, axis)` along the axes that they have of their own."""

    def part(x, i, axis):
        return x if x.shape[axis] == 1 and mat.shape[i] != 1 else cut(x, i, axis)

    data, indices = mat.data, mat.indices
    for i in range(mat.n_batch):
        data, indices = part(data, i, i), part(indices, i, i)
    for i in range(mat.n_batch + mat.n_sparse, mat.ndim):
        data = part(data, i, i - mat.n_sparse + 1)
    return data, indices


def _cut_sparse(mat: BCOO, data, indices, starts, shape, steps) -> BCOO:
    """The array cut along its sparse axes; other elements are moved out of bounds or removed."""
    sizes = shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    first = jnp.stack([jnp.asarray(s, indices.dtype) for s in starts])
    step, limit = jnp.array(steps, indices.dtype), jnp.array(sizes, indices.dtype)
    first, step, limit = [raise_rank(v, indices.ndim) for v in (first, step, limit)]
    moved = indices - first
    places = jnp.floor_divide(moved, step)
    inside = jnp.all((moved >= 0) & (places < limit) & (moved == places * step), -1)
    data = or_zero(spread(inside, data), data)
    indices = jnp.where(inside[..., None], places, limit)
    out = BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)
    room = math.prod(sizes)
    return bcoo_sum_duplicates(out, nse=room) if room < mat.nse else out


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A slice of the array whose starts may be traced, as a BCOO array; see `lax.dynamic_slice`.

    Args:
        mat: the array.
        start_indices: an integer for each axis; the slice is moved so that it lies in the array.
        slice_sizes: the shape of the result.

    Raises:
        TypeError: the sizes do not fit the array, or there is not one start per axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_dynamic_slice(BCOO.fromdense(jnp.arange(4.0)), (jnp.int32(2),), (2,)).todense()
        Array([2., 3.], dtype=float32)
    """
    sizes = tuple([int(n) for n in slice_sizes])
    starts = [jnp.asarray(s) for s in start_indices]
    if len(starts) != mat.ndim or len(sizes) != mat.ndim or any(not 0 <= n <= m for n, m in zip(sizes, mat.shape)):
        raise TypeError(
            f"bcoo_dynamic_slice: slice_sizes={sizes} must fit shape {mat.shape}, and start_indices must "
            f"have one value for each axis; got {len(starts)} starts."
        )
    starts = [jnp.clip(jnp.where(s < 0, s + n, s), 0, n - m) for s, n, m in zip(starts, mat.shape, sizes)]
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse

    def cut(x, i, axis):
        return lax.dynamic_slice_in_dim(x, starts[i], sizes[i], axis)

    data, indices = _cut_stored(mat, cut)
    if sizes[a:b] == sparse_shape(mat):
        return BCOO((data, indices), shape=sizes, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)
    return _cut_sparse(mat, data, indices, starts[a:b], sizes, (1,) * mat.n_sparse)


def bcoo_gather(
    operand: BCOO,
    start_indices: Array,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: ArrayLike | None = None,
) -> BCOO:
    """Windows of the array at the given index vectors, as a BCOO array; see `lax.gather`.

    Args:
        operand: the array.
        start_indices: index vectors along the last axis.
        dimension_numbers: a `GatherDimensionNumbers`.
        slice_sizes: the shape of a window.
        unique_indices, indices_are_sorted, mode: not used; windows are moved into the array.
        fill_value: must be None or 0.

    Raises:
        NotImplementedError: there are batching dimensions, or `fill_value` is not zero.

    Example:
        >>> import gradix.numpy as jnp
        >>> m = BCOO.fromdense(jnp.eye(3))
        >>> m[jnp.array([2, 0])].todense()
        Array([[0., 0., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    starts = jnp.asarray(start_indices)
    lead, dnums = starts.shape[:-1], dimension_numbers
    n_out = len(lead) + len(dnums.offset_dims)
    if dnums.operand_batching_dims or fill_value not in (None, 0):
        raise NotImplementedError(
            "bcoo_gather takes no batching dimensions and no fill_value other than 0; got "
            f"{dnums} and fill_value={fill_value}. Convert the array by sparse.todense() first."
        )
    flat = starts.reshape(math.prod(lead), starts.shape[-1])

    def one(start):
        whole = [0] * operand.ndim
        for k, d in enumerate(dnums.start_index_map):
            whole[d] = start[k]
        part = bcoo_dynamic_slice(operand, whole, slice_sizes)
        return bcoo_squeeze(part, dimensions=dnums.collapsed_slice_dims)

    if not lead:
        return one(flat[0])
    out = vmap(one)(flat)
    out = out if len(lead) == 1 else bcoo_reshape(out, new_sizes=(*lead, *out.shape[1:]))
    if tuple(dnums.offset_dims) == tuple(range(len(lead), n_out)):
        return out
    places = iter(range(len(lead))), iter(range(len(lead), n_out))
    order = [next(places[d in dnums.offset_dims]) for d in range(n_out)]
    return bcoo_transpose(bcoo_update_layout(out, n_batch=0, n_dense=0), permutation=order)
