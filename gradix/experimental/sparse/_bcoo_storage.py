"""BCOO arrays made of ordinary ones and back; their order, duplicates and layout."""

from __future__ import annotations

import math
import warnings

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.mapping.vmap import vmap
from gradix._core.trace import Tracer
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._layout import (
    batch_shape,
    in_bounds,
    joined,
    places_in,
    sparse_shape,
    spread,
    taken_apart,
    whole_parts,
)
from gradix.experimental.sparse.util import SparseEfficiencyError, SparseEfficiencyWarning


def bcoo_todense(mat: BCOO):
    """The whole array; elements at one place are added.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_todense(BCOO((jnp.array([1.0, 2.0]), jnp.array([[0], [2]])), shape=(3,)))
        Array([1., 0., 2.], dtype=float32)
    """
    zeros = jnp.zeros(mat.shape, mat.dtype)
    if not mat.n_sparse:
        return zeros + jnp.sum(
            jnp.where(spread(in_bounds(mat), mat.data), mat.data, 0), mat.n_batch, dtype=mat.dtype
        )
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
    mat, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype=jnp.int32
) -> BCOO:
    """The elements of an array that are not zero.

    Args:
        mat: any array.
        nse: how many elements to hold, for each batch; as many as there are by default, which must
            be known.
        n_batch: how many leading axes are batches, with indices of their own.
        n_dense: how many trailing axes are stored whole.
        index_dtype: the dtype of the indices.

    Raises:
        ConcretizationTypeError: `nse` is left out while the array is traced.

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
            f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} do not fit an array of "
            f"{mat.ndim} axes."
        )
    mask = mat != 0
    if n_dense:
        mask = jnp.any(mask, tuple(range(n_batch + n_sparse, mat.ndim)))
    lead, sizes = mat.shape[:n_batch], mat.shape[n_batch : n_batch + n_sparse]
    count, total = math.prod(lead), math.prod(sizes)
    rows = mask.reshape(count, total)
    if nse is None:
        nse = _known(jnp.max(jnp.sum(rows, 1), initial=0), "nse", "bcoo_fromdense")
    nse = int(nse)
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
    """The places of the first `nse` truths of each row; the length of a row where there are fewer."""
    total = mask.shape[1]
    if mask.shape[0] == 1:
        return jnp.nonzero(mask[0], size=nse, fill_value=total)[0][None]
    return vmap(lambda row: jnp.nonzero(row, size=nse, fill_value=total)[0])(mask)


def _known(x, name: str, function: str) -> int:
    if isinstance(x, Tracer):
        # raises the error that says what x depends on
        int(x)
    return int(x)


def bcoo_extract(sparr: BCOO, arr, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of an ordinary array where those of a sparse one stand.

    Args:
        sparr: gives the indices.
        arr: of the shape of `sparr`.
        assume_unique: whether no place is given twice; where one is, only the first gets the
            element.

    Example:
        >>> import gradix.numpy as jnp
        >>> sparr = BCOO((jnp.ones(1), jnp.array([[1]])), shape=(3,))
        >>> bcoo_extract(sparr, jnp.array([4.0, 5.0, 6.0])).data
        Array([5.], dtype=float32)
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(
            f"bcoo_extract: the array must have the shape of the sparse one, {sparr.shape}; got "
            f"{arr.shape}."
        )
    data = values_at(sparr, arr)
    if not (sparr.unique_indices if assume_unique is None else assume_unique):
        data = jnp.where(spread(_is_first(sparr), data), data, 0)
    return sparr._with(data=data)


def values_at(mat: BCOO, arr):
    """The elements of `arr`, of the axes of `mat` or of size 1 there, at each index; zero out of bounds."""
    own = [
        p if n != 1 or m == 1 else jnp.zeros_like(p)
        for p, n, m in zip(places_in(mat), arr.shape, mat.shape)
    ]
    out = arr.at[tuple(own)].get(mode="fill", fill_value=0) if own else arr[None]
    lead = np.broadcast_shapes(
        mat.data.shape[: mat.n_batch], mat.indices.shape[: mat.n_batch], batch_shape(mat)
    )
    return jnp.broadcast_to(out, (*lead, mat.nse, *mat.shape[mat.n_batch + mat.n_sparse :]))


def _is_first(mat: BCOO):
    """Whether no earlier element stands at the place of one."""
    _, indices = whole_parts(mat)
    lead, nse = indices.shape[:-2], mat.nse
    order = _order(indices)
    ranked = jnp.take_along_axis(indices, order[..., None], -2)
    new = jnp.concatenate(
        [
            jnp.ones((*lead, min(nse, 1)), bool),
            jnp.any(ranked[..., 1:, :] != ranked[..., :-1, :], -1),
        ],
        -1,
    )
    return jnp.take_along_axis(new, jnp.argsort(order, -1), -1)


def _order(indices):
    """The places of index vectors in the order of rows, equal ones in the order they have."""
    count, n = indices.shape[-2:]
    places = lax.broadcasted_iota("int32", indices.shape[:-1], indices.ndim - 2)
    if not n or not count:
        return places
    return lax.sort((*[indices[..., i] for i in range(n)], places), num_keys=n, is_stable=True)[-1]


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its indices in the order of rows.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_sort_indices(BCOO((jnp.array([1.0, 2.0]), jnp.array([[2], [0]])), shape=(3,))).data
        Array([2., 1.], dtype=float32)
    """
    is_whole = mat.data.shape[: mat.n_batch] == mat.indices.shape[: mat.n_batch]
    data, indices = (mat.data, mat.indices) if is_whole else whole_parts(mat)
    order = _order(indices)
    data = jnp.take_along_axis(data, spread(order, data), mat.n_batch)
    return BCOO(
        (data, jnp.take_along_axis(indices, order[..., None], -2)),
        shape=mat.shape,
        indices_sorted=True,
        unique_indices=mat.unique_indices,
    )


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with its indices in order and each of them once.

    Args:
        nse: how many elements to hold; as many as needed by default, which must be known. What is
            too much stands out of bounds, and where it is too few elements are left out.

    Example:
        >>> import gradix.numpy as jnp
        >>> twice = BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,))
        >>> bcoo_sum_duplicates(twice).data
        Array([3.], dtype=float32)
    """
    data, indices = whole_parts(mat)
    lead, sizes, dense = indices.shape[:-2], sparse_shape(mat), data.shape[mat.n_batch + 1 :]
    count = math.prod(lead)
    data, indices = (
        data.reshape(count, mat.nse, *dense),
        indices.reshape(count, mat.nse, mat.n_sparse),
    )
    inside = jnp.all((indices >= 0) & (indices < jnp.array(sizes, indices.dtype)), -1)
    outside = jnp.broadcast_to(jnp.array(sizes, indices.dtype), indices.shape)
    indices = jnp.where(inside[..., None], indices, outside)
    if mat.n_sparse:
        order = _order(indices)
        indices = jnp.take_along_axis(indices, order[..., None], -2)
        inside = jnp.take_along_axis(inside, order, -1)
        data = jnp.take_along_axis(data, spread(order, data), 1)
    new = inside & jnp.concatenate(
        [jnp.ones((count, min(mat.nse, 1)), bool), jnp.any(indices[:, 1:] != indices[:, :-1], -1)],
        -1,
    )
    group = jnp.cumsum(new, -1) - 1
    if nse is None:
        nse = _known(
            jnp.max(group[:, -1] + 1, initial=0) if mat.nse else 0, "nse", "bcoo_sum_duplicates"
        )
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
    """The array without elements that are zero, and each place once."""
    data, indices = whole_parts(mat)
    is_zero = data == 0
    if mat.n_dense:
        is_zero = jnp.all(is_zero, tuple(range(mat.n_batch + 1, data.ndim)))
    outside = jnp.array(sparse_shape(mat), indices.dtype)
    if not mat.n_sparse:
        return bcoo_sum_duplicates(mat, nse)
    moved = BCOO((data, jnp.where(is_zero[..., None], outside, indices)), shape=mat.shape)
    return bcoo_sum_duplicates(moved, nse)


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """The array with another number of batch and dense axes.

    Args:
        n_batch, n_dense: how many axes are batches, and stored whole; as they are by default.
        on_inefficient: what to do where the new layout would hold many zeros: "error", "warn" or
            None.

    Raises:
        SparseEfficiencyError: it would, and nothing else is asked for.
        ValueError: the axes are fewer.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_update_layout(bcoo_fromdense(jnp.ones((2, 3)), n_batch=1), n_batch=0)
        BCOO(float32[2, 3], nse=6)
    """
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} do not fit shape {mat.shape}; "
            f"both are at least 0 and their sum at most {mat.ndim}."
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(
            f"bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}."
        )
    for name, old, new, sizes in (
        ("n_batch", mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch]),
        ("n_dense", mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]),
    ):
        if new > old and math.prod(sizes) > 1:
            _tell_inefficient(mat, name, old, new, on_inefficient)
    if n_dense < mat.n_dense:
        mat = _dense_to_sparse(mat, mat.n_dense - n_dense)
    if n_batch < mat.n_batch:
        mat = _batch_to_sparse(mat, mat.n_batch - n_batch)
    if n_batch > mat.n_batch:
        mat = _sparse_to_batch(mat, n_batch - mat.n_batch)
    if n_dense > mat.n_dense:
        mat = _sparse_to_dense(mat, n_dense - mat.n_dense)
    return mat


def _tell_inefficient(mat, name, old, new, how) -> None:
    message = (
        f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} results in inefficient "
        "storage: zeros are held for every element that is elsewhere. If that is meant, give "
        "on_inefficient='warn' or None."
    )
    if how == "error":
        raise SparseEfficiencyError(message)
    if how == "warn":
        warnings.warn(message, SparseEfficiencyWarning, stacklevel=3)


def _dense_to_sparse(mat: BCOO, count: int) -> BCOO:
    """The first `count` dense axes become sparse ones: each element, one for every place along these."""
    at = mat.n_batch + 1
    new, rest = mat.data.shape[at : at + count], mat.data.shape[at + count :]
    total = math.prod(new)
    indices = jnp.broadcast_to(
        mat.indices[..., None, :], (*mat.indices.shape[:-1], total, mat.n_sparse)
    )
    places = jnp.stack(taken_apart(jnp.arange(total, dtype=indices.dtype), new), -1)
    places = jnp.broadcast_to(places, (*indices.shape[:-1], count))
    # An element out of bounds stays so, as its old indices are.
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
    """The last `count` batch axes become sparse ones."""
    data, indices = whole_parts(mat)
    keep = mat.n_batch - count
    lead, moved = data.shape[:keep], data.shape[keep : mat.n_batch]
    total = math.prod(moved)
    places = jnp.stack(taken_apart(jnp.arange(total, dtype=indices.dtype), moved), -1)
    places = jnp.broadcast_to(places[:, None], (*lead, total, mat.nse, count))
    indices = indices.reshape(*lead, total, mat.nse, mat.n_sparse)
    indices = jnp.concatenate([places, indices], -1).reshape(
        *lead, total * mat.nse, mat.n_sparse + count
    )
    data = data.reshape(*lead, total * mat.nse, *data.shape[mat.n_batch + 1 :])
    return BCOO(
        (data, indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _sparse_to_batch(mat: BCOO, count: int) -> BCOO:
    """The first `count` sparse axes become batches, each of which holds all elements and zeros for those of others."""
    data, indices = whole_parts(mat)
    at = mat.n_batch
    new = mat.shape[at : at + count]
    own, rest = indices[..., :count], indices[..., count:]
    for _ in range(count):
        data, rest, own = [jnp.expand_dims(x, at) for x in (data, rest, own)]
    here = jnp.stack(
        jnp.meshgrid(*[jnp.arange(n, dtype=own.dtype) for n in new], indexing="ij"), -1
    )
    here = here.reshape(*new, 1, count)
    belongs = jnp.all(own == here, -1)
    sizes = jnp.array(mat.shape[at + count : at + mat.n_sparse], rest.dtype)
    data = jnp.where(spread(belongs, data), data, 0)
    indices = jnp.where(belongs[..., None], rest, sizes)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def _sparse_to_dense(mat: BCOO, count: int) -> BCOO:
    """The last `count` sparse axes are stored whole, with zeros beside the element."""
    keep = mat.n_sparse - count
    data, indices = whole_parts(mat)
    new = mat.shape[mat.n_batch + keep : mat.n_batch + mat.n_sparse]
    valid = jnp.broadcast_to(in_bounds(mat), indices.shape[:-1])
    grid = jnp.stack(
        jnp.meshgrid(*[jnp.arange(n, dtype=indices.dtype) for n in new], indexing="ij"), -1
    )
    own = indices[..., keep:].reshape(*indices.shape[:-1], *[1] * count, count)
    belongs = jnp.all(own == grid, -1) & valid[(..., *[None] * count)]
    at = mat.n_batch + 1
    wide = data.reshape(*data.shape[:at], *[1] * count, *data.shape[at:])
    data = jnp.where(spread(belongs, wide), wide, 0)
    return BCOO((data, indices[..., :keep]), shape=mat.shape, indices_sorted=mat.indices_sorted)


def sorted_keys(indices, sizes):
    """Index vectors as single numbers in the order of rows; out of bounds ones are last."""
    inside = jnp.all((indices >= 0) & (indices < jnp.array(sizes, indices.dtype)), -1)
    flat = joined([indices[..., i] for i in range(len(sizes))], sizes)
    return jnp.where(inside, flat, math.prod(sizes))
