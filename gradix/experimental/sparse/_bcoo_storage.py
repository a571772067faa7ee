"""Conversion between BCOO and ordinary arrays; the order, duplicates and layout of elements."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.mapping.vmap import vmap
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._layout import (
    batch_shape,
    in_bounds,
    joined,
    or_zero,
    places_in,
    sparse_shape,
    spread,
    taken_apart,
    whole_parts,
)
from gradix.experimental.sparse.util import SparseEfficiencyError, SparseEfficiencyWarning
from gradix.numpy.promotion import raise_rank

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.operators import Array


def bcoo_todense(mat: BCOO) -> Array:
    """The ordinary array of a BCOO array; elements of equal indices are added.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_todense(BCOO((jnp.array([1.0, 2.0]), jnp.array([[0], [2]])), shape=(3,)))
        Array([1., 0., 2.], dtype=float32)
    """
    zeros = jnp.zeros(mat.shape, mat.dtype)
    if not mat.n_sparse:
        return zeros + jnp.sum(or_zero(spread(in_bounds(mat), mat.data), mat.data), mat.n_batch, dtype=mat.dtype)
    data, _ = whole_parts(mat)
    if data.dtype == bool:
        return zeros.at[places_in(mat)].max(data, mode="drop")
    return zeros.at[places_in(mat)].add(
        data,
        mode="drop",
        indices_are_sorted=mat.indices_sorted and not mat.n_batch,
        unique_indices=mat.unique_indices and not mat.n_batch,
    )


def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = jnp.int32
) -> BCOO:
    """The nonzero elements of an ordinary array, as a BCOO array.

    Args:
        mat: an array.
        nse: how many elements to store for each batch; by default the largest number of nonzero
            elements of a batch, for which the array must be concrete.
        n_batch: the number of leading axes that are batch axes.
        n_dense: the number of trailing axes that are dense axes.
        index_dtype: the dtype of the indices.

    Raises:
        ValueError: `n_batch` or `n_dense` does not fit the array.
        ConcretizationTypeError: `nse` is left out and the array is traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_fromdense(jnp.array([[0.0, 2.0], [0.0, 0.0]]))
        BCOO(float32[2, 2], nse=1)
    """
    mat = jnp.asarray(mat)
    n_batch, n_dense = int(n_batch), int(n_dense)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(
            f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} must not be negative, and their "
            f"sum must not exceed the number of axes, {mat.ndim}."
        )
    mask = mat.astype(bool)
    if n_dense:
        mask = jnp.any(mask, tuple(range(n_batch + n_sparse, mat.ndim)))
    lead, sizes = mat.shape[:n_batch], mat.shape[n_batch : n_batch + n_sparse]
    count, total = math.prod(lead), math.prod(sizes)
    rows = mask.reshape(count, total)
    if nse is None:
        nse = int(jnp.max(jnp.sum(rows, 1), initial=0))
    nse = int(nse)
    if not n_sparse:  # the only element of each batch is stored whether it is zero or not, with its derivative
        rows = jnp.ones_like(rows)
    found = _nonzero_rows(rows, nse)
    places = [jnp.where(found < total, p, n) for p, n in zip(taken_apart(found, sizes), sizes)]
    indices = jnp.stack(places, -1) if places else jnp.zeros((*found.shape, 0), found.dtype)
    indices = indices.reshape(*lead, nse, n_sparse).astype(index_dtype)
    whole = mat.reshape(count, total, *mat.shape[n_batch + n_sparse :])
    data = (
        vmap(lambda m, at: m.at[at].get(mode="fill", fill_value=0))(whole, found)
        if n_batch
        else whole[0].at[found[0]].get(mode="fill", fill_value=0)
    )
    data = data.reshape(*lead, nse, *mat.shape[n_batch + n_sparse :])
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _nonzero_rows(mask, nse: int):
    """The indices of the first `nse` true elements of each row, padded with the row's length."""
    total = mask.shape[1]
    if mask.shape[0] == 1:
        return jnp.nonzero(mask[0], size=nse, fill_value=total)[0][None]
    return vmap(lambda row: jnp.nonzero(row, size=nse, fill_value=total)[0])(mask)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """A sparse array with the indices of `sparr` and the elements of `arr` at these indices.

    Args:
        sparr: a BCOO array.
        arr: an ordinary array of the same shape.
        assume_unique: whether all indices differ; by default what `sparr.unique_indices` says. If
            not, the first element of equal indices gets the value and the others zero.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> sparr = BCOO((jnp.ones(1), jnp.array([[1]])), shape=(3,))
        >>> bcoo_extract(sparr, jnp.array([4.0, 5.0, 6.0])).data
        Array([5.], dtype=float32)
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: arr must have the shape of sparr, {sparr.shape}; got {arr.shape}.")
    data = values_at(sparr, arr)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        data = or_zero(spread(_is_first(sparr), data), data)
    return sparr._with(data=data)


def values_at(mat: BCOO, arr):
    """The elements of `arr` at the indices of `mat`, of the shape of its data; zero out of bounds.

    Each axis of `arr` has the size of that of `mat`, or size 1.
    """
    own = [p if n != 1 or m == 1 else jnp.zeros_like(p) for p, n, m in zip(places_in(mat), arr.shape, mat.shape)]
    out = arr.at[tuple(own)].get(mode="fill", fill_value=0) if own else arr[None]
    lead = np.broadcast_shapes(mat.data.shape[: mat.n_batch], mat.indices.shape[: mat.n_batch], batch_shape(mat))
    return jnp.broadcast_to(out, (*lead, mat.nse, *mat.shape[mat.n_batch + mat.n_sparse :]))


def _is_first(mat: BCOO):
    """For each element, whether no earlier one has the same indices."""
    _, indices = whole_parts(mat)
    lead, nse = indices.shape[:-2], mat.nse
    order = _order(indices)
    ranked = jnp.take_along_axis(indices, order[..., None], -2)
    new = jnp.concatenate(
        [jnp.ones((*lead, min(nse, 1)), bool), jnp.any(ranked[..., 1:, :] != ranked[..., :-1, :], -1)], -1
    )
    return jnp.take_along_axis(new, jnp.argsort(order, -1), -1)


def _order(indices):
    """The stable permutation that sorts index vectors in row-major order."""
    count, n = indices.shape[-2:]
    places = lax.broadcasted_iota("int32", indices.shape[:-1], indices.ndim - 2)
    if not n or not count:
        return places
    return lax.sort((*[indices[..., i] for i in range(n)], places), num_keys=n, is_stable=True)[-1]


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same array with its indices in row-major order.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_sort_indices(BCOO((jnp.array([1.0, 2.0]), jnp.array([[2], [0]])), shape=(3,))).data
        Array([2., 1.], dtype=float32)
    """
    n, indices, order = mat.n_batch, mat.indices, _order(mat.indices)
    # Indices that batches share stay shared.
    lead = np.broadcast_shapes(mat.data.shape[:n], indices.shape[:n])
    data = jnp.broadcast_to(mat.data, (*lead, *mat.data.shape[n:]))
    places = jnp.broadcast_to(order, (*lead, *order.shape[n:]))
    data = jnp.take_along_axis(data, spread(places, data), n)
    return BCOO(
        (data, jnp.take_along_axis(indices, order[..., None], -2)),
        shape=mat.shape,
        indices_sorted=True,
        unique_indices=mat.unique_indices,
    )


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array with sorted, unique indices; elements of equal indices are added.

    Args:
        mat: the array.
        nse: how many elements to store; by default as many as needed, for which the array must be
            concrete. If it is larger, the rest is padded out of bounds; if it is smaller, the last
            elements are dropped.

    Raises:
        ConcretizationTypeError: `nse` is left out and the array is traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> twice = BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,))
        >>> bcoo_sum_duplicates(twice).data
        Array([3.], dtype=float32)
    """
    data, indices = whole_parts(mat)
    lead, sizes, dense = indices.shape[:-2], sparse_shape(mat), data.shape[mat.n_batch + 1 :]
    count = math.prod(lead)
    data, indices = (data.reshape(count, mat.nse, *dense), indices.reshape(count, mat.nse, mat.n_sparse))
    outside = jnp.broadcast_to(jnp.array(sizes, indices.dtype), indices.shape)
    inside = jnp.all((indices >= 0) & (indices < outside), -1)
    indices = jnp.where(inside[..., None], indices, outside)
    if mat.n_sparse:
        order = _order(indices)
        indices = jnp.take_along_axis(indices, order[..., None], -2)
        inside = jnp.take_along_axis(inside, order, -1)
        data = jnp.take_along_axis(data, spread(order, data), 1)
    new = inside & jnp.concatenate(
        [jnp.ones((count, min(mat.nse, 1)), bool), jnp.any(indices[:, 1:] != indices[:, :-1], -1)], -1
    )
    group = jnp.cumsum(new, -1) - 1
    if nse is None:
        nse = int(jnp.max(group[:, -1] + 1, initial=0)) if mat.nse else 0
    group = jnp.where(inside, group, nse)
    row = jnp.arange(count)[:, None]
    summed = jnp.zeros((count, nse, *dense), data.dtype)
    at = summed.at[row, group]
    summed = at.max(data, mode="drop") if data.dtype == bool else at.add(data, mode="drop")
    kept = jnp.broadcast_to(jnp.array(sizes, indices.dtype), (count, nse, mat.n_sparse))
    kept = kept.at[row, group].set(indices, mode="drop")
    return BCOO(
        (summed.reshape(*lead, nse, *dense), kept.reshape(*lead, nse, mat.n_sparse)),
        shape=mat.shape,
        indices_sorted=True,
        unique_indices=True,
    )


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array with sorted, unique indices and without elements that are zero.

    Args:
        mat: the array.
        nse: how many elements to store, as for `bcoo_sum_duplicates`.

    Example:
        >>> from gradix.experimental import sparse
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.sparse import bcoo
        >>> x = sparse.BCOO((jnp.array([1.0, 0.0]), jnp.array([[0], [1]])), shape=(3,))
        >>> x.nse, bcoo.bcoo_eliminate_zeros(x).nse
        (2, 1)
    """
    data, indices = whole_parts(mat)
    is_zero = ~data.astype(bool)
    if mat.n_dense:
        is_zero = jnp.all(is_zero, tuple(range(mat.n_batch + 1, data.ndim)))
    outside = jnp.array(sparse_shape(mat), indices.dtype)
    if not mat.n_sparse:
        return bcoo_sum_duplicates(mat, nse)
    moved = BCOO((data, jnp.where(is_zero[..., None], outside, indices)), shape=mat.shape)
    return bcoo_sum_duplicates(moved, nse)


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense axes.

    Args:
        mat: the array.
        n_batch, n_dense: the new numbers of batch and dense axes; by default as they are.
        on_inefficient: what to do if the new layout would store many zeros: "error", "warn" or
            None for nothing.

    Raises:
        SparseEfficiencyError: the new layout would store many zeros, and `on_inefficient` is
            "error".
        ValueError: a number is negative, or the array has too few axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_update_layout(bcoo_fromdense(jnp.ones((2, 3)), n_batch=1), n_batch=0)
        BCOO(float32[2, 3], nse=6)
    """
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} must not be negative, and their "
            f"sum must not exceed the number of axes of shape {mat.shape}, {mat.ndim}."
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}.")
    for name, old, new, sizes in (
        ("n_batch", mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch]),
        ("n_dense", mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]),
    ):
        if new > old and math.prod(sizes) > 1:
            _report_inefficient(mat, name, old, new, on_inefficient)
    if n_dense < mat.n_dense:
        mat = _dense_to_sparse(mat, mat.n_dense - n_dense)
    if n_batch < mat.n_batch:
        mat = _batch_to_sparse(mat, mat.n_batch - n_batch)
    if n_batch > mat.n_batch:
        mat = _sparse_to_batch(mat, n_batch - mat.n_batch)
    if n_dense > mat.n_dense:
        mat = _sparse_to_dense(mat, n_dense - mat.n_dense)
    return mat


def _report_inefficient(mat, name, old, new, how) -> None:
    message = (
        f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} results in inefficient "
        "storage, because zeros are stored for elements of other batches or places. If this is your "
        "intent, pass on_inefficient='warn' or on_inefficient=None."
    )
    if how == "error":
        raise SparseEfficiencyError(message)
    if how == "warn":
        warnings.warn(message, SparseEfficiencyWarning, stacklevel=3)


def _dense_to_sparse(mat: BCOO, count: int) -> BCOO:
    """The array with its first `count` dense axes made sparse axes: an element for every index."""
    at = mat.n_batch + 1
    new, rest = mat.data.shape[at : at + count], mat.data.shape[at + count :]
    total = math.prod(new)
    indices = jnp.broadcast_to(mat.indices[..., None, :], (*mat.indices.shape[:-1], total, mat.n_sparse))
    places = jnp.stack(taken_apart(jnp.arange(total, dtype=indices.dtype), new), -1)
    places = jnp.broadcast_to(places, (*indices.shape[:-1], count))
    # An element out of bounds stays out of bounds, because its old indices are kept.
    indices = jnp.concatenate([indices, places], -1)
    lead = mat.indices.shape[:-2]
    data = mat.data.reshape(*mat.data.shape[: mat.n_batch], mat.nse * total, *rest)
    return BCOO(
        (data, indices.reshape(*lead, mat.nse * total, mat.n_sparse + count)),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _batch_to_sparse(mat: BCOO, count: int) -> BCOO:
    """The array with its last `count` batch axes made sparse axes."""
    data, indices = whole_parts(mat)
    keep = mat.n_batch - count
    lead, moved = data.shape[:keep], data.shape[keep : mat.n_batch]
    total = math.prod(moved)
    places = jnp.stack(taken_apart(jnp.arange(total, dtype=indices.dtype), moved), -1)
    places = jnp.broadcast_to(places[:, None], (*lead, total, mat.nse, count))
    indices = indices.reshape(*lead, total, mat.nse, mat.n_sparse)
    indices = jnp.concatenate([places, indices], -1).reshape(*lead, total * mat.nse, mat.n_sparse + count)
    data = data.reshape(*lead, total * mat.nse, *data.shape[mat.n_batch + 1 :])
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _sparse_to_batch(mat: BCOO, count: int) -> BCOO:
    """The array with its first `count` sparse axes made batch axes.

    Each batch stores all elements; those of other batches are zero and out of bounds.
    """
    data, indices = whole_parts(mat)
    at = mat.n_batch
    new = mat.shape[at : at + count]
    own, rest = indices[..., :count], indices[..., count:]
    for _ in range(count):
        data, rest, own = [jnp.expand_dims(x, at) for x in (data, rest, own)]
    here = jnp.stack(jnp.meshgrid(*[jnp.arange(n, dtype=own.dtype) for n in new], indexing="ij"), -1)
    here = raise_rank(here.reshape(*new, 1, count), own.ndim)
    belongs = jnp.all(own == here, -1)
    sizes = jnp.array(mat.shape[at + count : at + mat.n_sparse], rest.dtype)
    data = or_zero(spread(belongs, data), data)
    indices = jnp.where(belongs[..., None], rest, sizes)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def _sparse_to_dense(mat: BCOO, count: int) -> BCOO:
    """The array with its last `count` sparse axes made dense axes, zero beside each element."""
    keep = mat.n_sparse - count
    data, indices = whole_parts(mat)
    new = mat.shape[mat.n_batch + keep : mat.n_batch + mat.n_sparse]
    valid = jnp.broadcast_to(in_bounds(mat), indices.shape[:-1])
    grid = jnp.stack(jnp.meshgrid(*[jnp.arange(n, dtype=indices.dtype) for n in new], indexing="ij"), -1)
    own = indices[..., keep:].reshape(*indices.shape[:-1], *[1] * count, count)
    belongs = jnp.all(own == raise_rank(grid, own.ndim), -1) & valid[(..., *[None] * count)]
    at = mat.n_batch + 1
    wide = data.reshape(*data.shape[:at], *[1] * count, *data.shape[at:])
    data = or_zero(spread(belongs, wide), wide)
    return BCOO((data, indices[..., :keep]), shape=mat.shape, indices_sorted=mat.indices_sorted)


def sorted_keys(indices, sizes):
    """Index vectors as single numbers in row-major order; those out of bounds are largest."""
    limit = raise_rank(jnp.array(sizes, indices.dtype), indices.ndim)
    inside = jnp.all((indices >= 0) & (indices < limit), -1)
    flat = joined([indices[..., i] for i in range(len(sizes))], sizes)
    return jnp.where(inside, flat, math.prod(sizes))
