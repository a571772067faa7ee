"""BCOO arrays transposed, reshaped, broadcast, concatenated, reversed, and summed over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_storage import bcoo_update_layout
from gradix.experimental.sparse._layout import (
    holding,
    in_bounds,
    index_dtype_for,
    joined,
    or_zero,
    sparse_shape,
    spread,
    taken_apart,
    whole_parts,
)
from gradix.numpy.promotion import raise_rank


def _parts_of(mat: BCOO, axes: Sequence[int]) -> tuple[list, list, list]:
    """The batch, sparse and dense axes among `axes`, each counted from the first of its kind."""
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    return ([i for i in axes if i < a], [i - a for i in axes if a <= i < b], [i - b for i in axes if i >= b])


def _check_axes(function: str, name: str, mat: BCOO, axes: Sequence[int]) -> None:
    if any(not -mat.ndim <= int(i) < mat.ndim for i in axes):
        raise ValueError(f"{function}: {name}={tuple(axes)} must be axes of an array of shape {mat.shape}.")


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its axes permuted, each within the batch, sparse or dense axes.

    Args:
        mat: the array.
        permutation: for each axis of the result, the axis of `mat`.

    Raises:
        ValueError: `permutation` is not a permutation of the axes.
        NotImplementedError: the permutation exchanges axes of different kinds.

    Example:
        >>> import gradix.numpy as jnp
        >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0, 3.0]]))
        >>> bcoo_transpose(m, permutation=(1, 0)).indices
        Array([[1, 0],
               [2, 0]], dtype=int32)
    """
    permutation = tuple([int(i) % mat.ndim if mat.ndim else int(i) for i in permutation])
    if sorted(permutation) != list(range(mat.ndim)):
        raise ValueError(f"bcoo_transpose: permutation={permutation} must hold each of the {mat.ndim} axes once.")
    batch, sparse, dense = [
        permutation[: mat.n_batch],
        permutation[mat.n_batch : mat.n_batch + mat.n_sparse],
        permutation[mat.n_batch + mat.n_sparse :],
    ]
    for kind, found, expected in (
        ("batch", batch, range(mat.n_batch)),
        ("dense", dense, range(mat.ndim - mat.n_dense, mat.ndim)),
    ):
        if sorted(found) != list(expected):
            raise NotImplementedError(
                f"transpose permutation cannot permute {kind} axes with non-{kind} axes; got permutation "
                f"{permutation}, with n_batch={mat.n_batch} and n_dense={mat.n_dense}. Make them sparse "
                "axes by bcoo_update_layout first."
            )
    n = mat.n_batch
    data = mat.data.transpose(*batch, n, *[i - mat.n_sparse + 1 for i in dense])
    indices = mat.indices.transpose(*batch, n, n + 1)[..., np.array([i - n for i in sparse], int)]
    return BCOO(
        (data, indices),
        shape=[mat.shape[i] for i in permutation],
        unique_indices=mat.unique_indices,
        indices_sorted=mat.indices_sorted and list(sparse) == sorted(sparse),
    )


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """The array repeated along new axes and axes of size 1; see `lax.broadcast_in_dim`.

    New axes before the first sparse axis become batch axes, whose batches share their elements. New
    axes after the last sparse axis become dense axes, unless they have size 1. Without sparse axes,
    new axes before the first dense axis become batch axes.

    Args:
        mat: the array.
        shape: the shape of the result.
        broadcast_dimensions: for each axis of `mat`, the axis of the result, in increasing order.
        sharding: not used.

    Raises:
        ValueError: `broadcast_dimensions` do not fit the shapes.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_broadcast_in_dim(BCOO.fromdense(jnp.eye(2)), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
        BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    if (
        len(dims) != mat.ndim
        or list(dims) != sorted(set(dims))
        or any(mat.shape[i] not in (1, shape[d]) for i, d in enumerate(dims))
    ):
        raise ValueError(
            f"bcoo_broadcast_in_dim: broadcast_dimensions={dims} must be increasing axes of "
            f"shape={shape}, one for each axis of shape {mat.shape}, which must have the same size or "
            "size 1."
        )
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    first = dims[a] if a < len(dims) else len(shape)
    last = dims[b - 1] if mat.n_sparse else first - 1
    if mat.n_sparse and not mat.n_dense and math.prod(shape[last + 1 :]) == 1:
        last = len(shape) - 1  # An axis of size 1 can be a sparse axis as well.
    old_of = {d: i for i, d in enumerate(dims)}
    n_dense = len(shape) - 1 - last
    own_batch = [old_of.get(d) for d in range(first)]
    own_dense = [old_of.get(d) for d in range(last + 1, len(shape))]
    data = mat.data.reshape(
        *[1 if i is None else mat.data.shape[i] for i in own_batch],
        mat.nse,
        *[1 if i is None else mat.shape[i] for i in own_dense],
    )
    data = jnp.broadcast_to(data, (*data.shape[: first + 1], *shape[len(shape) - n_dense :]))
    indices = mat.indices.reshape(*[1 if i is None else mat.indices.shape[i] for i in own_batch], mat.nse, mat.n_sparse)
    columns, repeats = [], []
    for d in range(first, last + 1):
        i = old_of.get(d)
        columns.append(jnp.zeros_like(indices[..., 0]) if i is None else indices[..., i - a])
        repeats.append(shape[d] if i is None or mat.shape[i] != shape[d] else 1)
    if math.prod(repeats) != 1:
        data = or_zero(spread(in_bounds(mat).reshape(indices.shape[:-1]), data), data)
    indices = jnp.stack(columns, -1) if columns else indices
    out = data, indices
    if math.prod(repeats) != 1:
        out = _repeated(data, indices, repeats, first)
    whole = tuple(
        [max(n, 1) if out[0].shape[i] == 1 or out[1].shape[i] == 1 else n for i, n in enumerate(shape[:first])]
    )
    return BCOO(
        out,
        shape=(*whole, *shape[first:]),
        unique_indices=mat.unique_indices and math.prod(repeats) > 0,
        indices_sorted=mat.indices_sorted and math.prod(repeats) == 1,
    )


def _repeated(data, indices, repeats, at: int) -> tuple:
    """Data and indices with each element repeated along the sparse axes, `repeats` times each."""
    total, nse = math.prod(repeats), indices.shape[-2]
    steps = jnp.stack(taken_apart(jnp.arange(total, dtype=indices.dtype), repeats), -1)
    wide = indices[..., None, :]
    wide = wide + raise_rank(steps, wide.ndim)
    data = jnp.repeat(data, total, axis=at)
    return data, wide.reshape(*indices.shape[:-2], nse * total, indices.shape[-1])


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The concatenation of arrays along the axis `dimension`.

    Args:
        operands: arrays of the same layout, and of the same shape except along that axis.
        dimension: the axis.

    Raises:
        ValueError: there are no arrays, or their shapes differ along another axis.
        NotImplementedError: their layouts differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> m = BCOO.fromdense(jnp.eye(2))
        >>> bcoo_concatenate([m, m], dimension=0).todense().shape
        (4, 2)
    """
    operands = list(operands)
    if not operands:
        raise ValueError("bcoo_concatenate: operands is empty.")
    first = operands[0]
    d = int(dimension) % first.ndim if first.ndim else 0
    if any((m.n_batch, m.n_sparse, m.n_dense) != (first.n_batch, first.n_sparse, first.n_dense) for m in operands):
        raise NotImplementedError(
            "bcoo_concatenate: all operands must have the same numbers of batch, sparse and dense axes. "
            "Change them by bcoo_update_layout first."
        )
    for m in operands:
        if m.shape[:d] + m.shape[d + 1 :] != first.shape[:d] + first.shape[d + 1 :]:
            raise ValueError(
                f"bcoo_concatenate: the shapes of operands may differ along axis {d} only, got "
                f"{first.shape} and {m.shape}."
            )
    total = sum(m.shape[d] for m in operands)
    shape = (*first.shape[:d], total, *first.shape[d + 1 :])
    dtype = jnp.result_type(*[m.dtype for m in operands])
    n = first.n_batch
    parts = [(x, holding(i, shape)) for x, i in [whole_parts(m) for m in operands]]
    if d < n:
        most = max(m.nse for m in operands)
        outside = jnp.array(sparse_shape(first), first.indices.dtype)
        data = [_padded(x.astype(dtype), most, n, 0) for x, _ in parts]
        indices = [_padded(i, most, n, outside) for _, i in parts]
        return BCOO(
            (jnp.concatenate(data, d), jnp.concatenate(indices, d)),
            shape=shape,
            indices_sorted=all(m.indices_sorted for m in operands),
        )
    offset, data, indices = 0, [], []
    for m, (x, i) in zip(operands, parts):
        if d < n + m.n_sparse:
            valid = in_bounds(BCOO((x, i), shape=m.shape))
            moved = i[..., d - n] + offset
            i = i.at[..., d - n].set(jnp.where(valid, moved, total))
        else:
            at = d - m.n_sparse + 1
            widths = [(0, 0)] * x.ndim
            widths[at] = (offset, total - offset - m.shape[d])
            x = jnp.pad(x, widths)
        offset += m.shape[d]
        data.append(x.astype(dtype))
        indices.append(i)
    return BCOO(
        (jnp.concatenate(data, n), jnp.concatenate(indices, n)),
        shape=shape,
        unique_indices=d < n + first.n_sparse and all(m.unique_indices for m in operands),
    )


def _padded(x, count: int, axis: int, fill):
    missing = count - x.shape[axis]
    if not missing:
        return x
    shape = (*x.shape[:axis], missing, *x.shape[axis + 1 :])
    return jnp.concatenate([x, jnp.broadcast_to(jnp.asarray(fill, x.dtype), shape)], axis)


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """The array in another shape, where axes of one kind stay together; see `lax.reshape`.

    Args:
        mat: the array.
        new_sizes: the shape of the result.
        dimensions: a permutation of the axes that is applied first.
        sharding: not used.

    Raises:
        ValueError: the new shape has another size, or merges axes of different kinds.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_reshape(BCOO.fromdense(jnp.eye(2)), new_sizes=(4,)).indices
        Array([[0],
               [3]], dtype=int32)
    """
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    new = tuple(new_sizes)
    if math.prod(new) != mat.size:
        raise ValueError(f"bcoo_reshape: total size must be unchanged, got {mat.shape} and new_sizes={new}.")
    split = _split_sizes(mat, new)
    if split is None:
        raise ValueError(
            f"bcoo_reshape: cannot merge batch, sparse and dense axes, as from {mat.shape} with "
            f"n_batch={mat.n_batch} and n_dense={mat.n_dense} to new_sizes={new}. Make all of them "
            "sparse axes by bcoo_update_layout first."
        )
    batch, sparse, dense = split
    old_batch = mat.shape[: mat.n_batch]
    data, indices = (mat.data, mat.indices) if batch == old_batch else whole_parts(mat)
    lead = [data.shape[: mat.n_batch], indices.shape[: mat.n_batch]] if batch == old_batch else [batch, batch]
    data = data.reshape(*lead[0], mat.nse, *dense)
    old = sparse_shape(mat)
    if sparse != old:
        wide = index_dtype_for(old, indices.dtype)
        flat = joined([indices[..., i].astype(wide) for i in range(mat.n_sparse)], old)
        flat = jnp.broadcast_to(jnp.asarray(flat, wide), indices.shape[:-1])
        indices = holding(indices, sparse)
        outside = jnp.array(sparse, indices.dtype)
        places = taken_apart(flat, sparse)
        moved = jnp.stack(places, -1).astype(indices.dtype) if places else jnp.zeros((*flat.shape, 0), indices.dtype)
        indices = (
            jnp.where(in_bounds(mat).reshape(indices.shape[:-1])[..., None], moved, outside) if mat.n_sparse else moved
        )
        if not sparse:
            data = or_zero(spread(in_bounds(mat).reshape(data.shape[: len(lead[0]) + 1]), data), data)
    return BCOO(
        (data, indices.reshape(*lead[1], mat.nse, len(sparse))),
        shape=new,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _split_sizes(mat: BCOO, new: tuple):
    """The new sizes divided into batch, sparse and dense axes; None if their sizes do not fit."""
    wanted = [
        math.prod(mat.shape[: mat.n_batch]),
        math.prod(sparse_shape(mat)),
        math.prod(mat.shape[mat.n_batch + mat.n_sparse :]),
    ]
    options: list[Any] = []
    for i in range(len(new) + 1):
        for j in range(i, len(new) + 1):
            parts = new[:i], new[i:j], new[j:]
            has_parts = bool(mat.n_batch) >= bool(i) and bool(mat.n_dense) >= bool(len(new) - j)
            if has_parts and [math.prod(p) for p in parts] == wanted:
                options.append(parts)
    kept = [p for p in options if len(p[0]) == mat.n_batch and len(p[2]) == mat.n_dense]
    return (kept or options or [None])[0]


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with the order along some axes reversed; see `lax.rev`.

    Args:
        operand: the array.
        dimensions: the axes.

    Raises:
        TypeError: an axis is negative or out of range.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_rev(BCOO.fromdense(jnp.array([1.0, 0.0, 0.0])), (0,)).indices
        Array([[2]], dtype=int32)
    """
    if any(not 0 <= d < operand.ndim for d in dimensions):
        raise TypeError(
            f"bcoo_rev: dimensions={tuple(dimensions)} must be axes of an array of shape {operand.shape}, "
            f"counted from 0 to {operand.ndim - 1}."
        )
    batch, sparse, dense = _parts_of(operand, dimensions)
    data, indices = operand.data, operand.indices
    if batch:
        data = jnp.flip(data, [i for i in batch if data.shape[i] != 1])
        indices = jnp.flip(indices, [i for i in batch if indices.shape[i] != 1])
    if dense:
        data = jnp.flip(data, [operand.n_batch + 1 + i for i in dense])
    if sparse:
        valid = in_bounds(BCOO((data, indices), shape=operand.shape))
        for i in sparse:
            n = operand.shape[operand.n_batch + i]
            indices = indices.at[..., i].set(jnp.where(valid, n - 1 - indices[..., i], n))
    return BCOO(
        (data, indices),
        shape=operand.shape,
        indices_sorted=operand.indices_sorted and not sparse,
        unique_indices=operand.unique_indices,
    )


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without some axes of size 1.

    Args:
        arr: the array.
        dimensions: the axes.

    Raises:
        ValueError: an axis is out of range, or its size is not 1.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_squeeze(BCOO.fromdense(jnp.ones((1, 2))), dimensions=(0,))
        BCOO(float32[2], nse=2)
    """
    _check_axes("bcoo_squeeze", "dimensions", arr, dimensions)
    dimensions = [int(d) % arr.ndim for d in dimensions]
    if any(arr.shape[d] != 1 for d in dimensions):
        raise ValueError(
            f"bcoo_squeeze: dimensions={dimensions} must be axes of size 1, got an array of shape {arr.shape}."
        )
    batch, sparse, dense = _parts_of(arr, dimensions)
    data = jnp.squeeze(arr.data, (*batch, *[arr.n_batch + 1 + i for i in dense]))
    keep = np.array([i for i in range(arr.n_sparse) if i not in sparse], int)
    indices, valid = arr.indices, in_bounds(arr)
    if sparse:
        outside = jnp.array(sparse_shape(arr), indices.dtype)
        indices = jnp.where(valid[..., None], indices, outside)
        if not len(keep):
            data = or_zero(spread(jnp.squeeze(valid, tuple(batch)), data), data)
    indices = jnp.squeeze(indices[..., keep], tuple(batch))
    return BCOO(
        (data, indices),
        shape=[n for i, n in enumerate(arr.shape) if i not in dimensions],
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sums over some axes, as a BCOO array.

    Args:
        mat: the array.
        axes: the axes.

    Raises:
        ValueError: an axis is out of range.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_reduce_sum(BCOO.fromdense(jnp.eye(2)), axes=(0,)).todense()
        Array([1., 1.], dtype=float32)
    """
    _check_axes("bcoo_reduce_sum", "axes", mat, axes)
    axes = sorted({int(i) % mat.ndim for i in axes})
    batch, _, _ = _parts_of(mat, axes)
    if batch:
        # Summed batch axes are made sparse axes first, so they must follow the other batch axes.
        keep = [i for i in range(mat.n_batch) if i not in batch]
        order = (*keep, *batch)
        mat = bcoo_transpose(mat, permutation=(*order, *range(mat.n_batch, mat.ndim)))
        mat = bcoo_update_layout(mat, n_batch=len(keep))
        axes = [order.index(i) if i < len(order) else i for i in axes]
    _, sparse, dense = _parts_of(mat, axes)
    data, indices = mat.data, mat.indices
    if dense:
        data = jnp.sum(data, [mat.n_batch + 1 + i for i in dense], dtype=data.dtype)
    if sparse:
        valid = in_bounds(mat)
        data = or_zero(spread(valid, data), data)
        outside = jnp.array(sparse_shape(mat), indices.dtype)
        keep = np.array([i for i in range(mat.n_sparse) if i not in sparse], int)
        indices = jnp.where(valid[..., None], indices, outside)[..., keep]
    return BCOO(
        (data, indices),
        shape=[n for i, n in enumerate(mat.shape) if i not in axes],
        unique_indices=mat.unique_indices and not sparse,
        indices_sorted=mat.indices_sorted and not sparse,
    )
