"""Products with BCOO arrays: contractions, elementwise products, and sampled dense contractions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.mapping.vmap import vmap
from gradix._core.trace import Tracer
from gradix._ops.linalg.sparse_product import sparse_product
from gradix.experimental.sparse._array import JAXSparse
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_moving import bcoo_broadcast_in_dim
from gradix.experimental.sparse._bcoo_storage import bcoo_sum_duplicates, bcoo_update_layout, sorted_keys, values_at
from gradix.experimental.sparse._layout import (
    elements_of,
    in_bounds,
    index_dtype_for,
    joined,
    or_zero,
    sparse_shape,
    whole_parts,
)
from gradix.numpy.promotion import raise_rank

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.operators import Array
    from gradix._core.sharding import PartitionSpec
    from gradix._ops.precision import PrecisionLike

# With more pairs of elements than this, concrete indices are matched on the host.
_MANY_PAIRS = 1 << 16


def canonical_numbers(name: str, lhs, rhs, dimension_numbers) -> tuple:
    """The axes of a contraction as tuples of integers.

    Raises:
        TypeError: the sizes of paired axes differ.
    """
    (lc, rc), (lb, rb) = [[tuple([int(i) for i in side]) for side in pair] for pair in dimension_numbers]
    for kind, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        found = [lhs.shape[i] for i in left], [rhs.shape[i] for i in right]
        if found[0] != found[1]:
            raise TypeError(
                f"{name} requires {kind} dimensions to have the same shape, got {tuple(found[0])} and "
                f"{tuple(found[1])}, for operands of shapes {lhs.shape} and {rhs.shape}."
            )
    return (lc, rc), (lb, rb)


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Any:
    """A contraction of two arrays, at least one of them sparse; see `lax.dot_general`.

    Args:
        lhs, rhs: BCOO or ordinary arrays.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
        precision, out_sharding: not used.
        preferred_element_type: the dtype of the result; by default that of the product.

    Returns:
        An ordinary array, or a BCOO array if both operands are sparse.

    Raises:
        TypeError: the sizes of contracted or batch axes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> bcoo_dot_general(m, jnp.array([1.0, 10.0]), dimension_numbers=(((1,), (0,)), ((), ())))
        Array([20.,  3.], dtype=float32)
    """
    numbers = canonical_numbers("bcoo_dot_general", lhs, rhs, dimension_numbers)
    left, right = isinstance(lhs, JAXSparse), isinstance(rhs, JAXSparse)
    if left and right:
        out = _of_two_sparse(lhs, rhs, numbers)
    elif left:
        out = _with_dense(lhs, jnp.asarray(rhs), numbers, lhs.indices_sorted)
    elif right:
        ((lc, rc), (lb, rb)), lhs = numbers, jnp.asarray(lhs)
        out = _with_dense(rhs, lhs, ((rc, lc), (rb, lb)), rhs.indices_sorted)
        n, free = len(lb), rhs.ndim - len(rc) - len(rb)
        out = jnp.transpose(out, (*range(n), *range(n + free, out.ndim), *range(n, n + free)))
    else:
        out = lax.dot_general(lhs, rhs, dimension_numbers)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _with_dense(mat: BCOO, dense, numbers, ordered: bool):
    """A contraction with an ordinary array, computed as the product of a sparse and a dense matrix.

    Its rows are the batch and free axes of `mat`, its columns the batch and contracted axes.
    """
    (lc, rc), (lb, rb) = numbers
    dtype = jnp.result_type(mat, dense) if mat.dtype != dense.dtype else mat.dtype
    free = [i for i in range(mat.ndim) if i not in lc and i not in lb]
    other = [i for i in range(dense.ndim) if i not in rc and i not in rb]
    shape = (*[mat.shape[i] for i in (*lb, *free)], *[dense.shape[i] for i in other])
    outer, inner = [mat.shape[i] for i in (*lb, *free)], [mat.shape[i] for i in (*lb, *lc)]
    if not math.prod(shape) or not mat.data.size or not dense.size:
        return jnp.zeros(shape, dtype)
    wide = index_dtype_for(max(outer, inner, key=math.prod), mat.indices.dtype)
    data, places = elements_of(mat)
    places = [p.astype(wide) for p in places]
    rows, columns = [
        joined([places[i] for i in axes], sizes) for axes, sizes in (((*lb, *free), outer), ((*lb, *lc), inner))
    ]
    zero = jnp.zeros(data.shape, wide)
    flat = jnp.transpose(dense, (*rb, *rc, *other)).reshape(math.prod(inner), -1)
    is_ordered = ordered and [*lb, *free] == list(range(len(outer)))
    if dtype.kind == "b":
        counted = sparse_product(
            data.astype("int32"),
            rows + zero,
            columns + zero,
            flat.astype("int32"),
            math.prod(outer),
            ordered=is_ordered,
        )
        return counted.astype(bool).reshape(shape)
    out = sparse_product(
        data.astype(dtype), rows + zero, columns + zero, flat.astype(dtype), math.prod(outer), ordered=is_ordered
    )
    return out.reshape(shape)


def _of_two_sparse(lhs: BCOO, rhs: BCOO, numbers) -> BCOO:
    """A contraction of two sparse arrays: mapped over shared batch axes, with all others sparse."""
    (lc, rc), (lb, rb) = numbers
    if lb and lb[0] == rb[0] == 0 and lhs.n_batch and rhs.n_batch:
        lead = BCOO(whole_parts(lhs), shape=lhs.shape), BCOO(whole_parts(rhs), shape=rhs.shape)
        inner = [[tuple([i - 1 for i in axes if i]) for axes in pair] for pair in numbers]
        return vmap(lambda a, b: _of_two_sparse(a, b, inner))(*lead)
    lhs, rhs = [bcoo_update_layout(m, n_batch=0, n_dense=0) for m in (lhs, rhs)]
    left = [i for i in range(lhs.ndim) if i not in lc and i not in lb]
    right = [i for i in range(rhs.ndim) if i not in rc and i not in rb]
    shape = (*[lhs.shape[i] for i in (*lb, *left)], *[rhs.shape[i] for i in right])
    a, b = [
        jnp.stack([m.indices[:, i] for i in axes], 1) if axes else jnp.zeros((m.nse, 0), m.indices.dtype)
        for m, axes in ((lhs, (*lb, *lc)), (rhs, (*rb, *rc)))
    ]
    first, second, matches = _pairs(lhs, rhs, a, b)
    data = or_zero(matches, lhs.data[first] * rhs.data[second])
    places = [*[lhs.indices[first, i] for i in (*lb, *left)], *[rhs.indices[second, i] for i in right]]
    indices = jnp.stack(places, 1) if places else jnp.zeros((data.shape[0], 0), lhs.indices.dtype)
    indices = jnp.where(matches[:, None], indices, jnp.array(shape, indices.dtype))
    out = BCOO((data, indices), shape=shape)
    room = math.prod(shape)
    return bcoo_sum_duplicates(out, nse=room) if out.nse > room else out


def _pairs(lhs: BCOO, rhs: BCOO, a, b) -> tuple:
    """For each term of the product, the numbers of its two elements, and whether the term counts.

    A term counts if both elements are within their arrays and their contracted indices are equal.
    """
    known = not isinstance(a, Tracer) and not isinstance(b, Tracer)
    if known and lhs.nse * rhs.nse > _MANY_PAIRS:
        first, second = _matching(np.asarray(a), np.asarray(b))
        first, second = jnp.asarray(first), jnp.asarray(second)
        return first, second, in_bounds(lhs)[first] & in_bounds(rhs)[second]
    first, second = [x.reshape(-1) for x in jnp.meshgrid(jnp.arange(lhs.nse), jnp.arange(rhs.nse), indexing="ij")]
    matches = jnp.all(a[first] == b[second], 1) & in_bounds(lhs)[first] & in_bounds(rhs)[second]
    return first, second, matches


def _matching(a: np.ndarray, b: np.ndarray) -> tuple:
    """The row numbers of all pairs of equal rows, found by sorting one side."""
    _, keys = np.unique(np.concatenate([a, b]), axis=0, return_inverse=True)
    keys = keys.reshape(-1)
    left, right = keys[: len(a)], keys[len(a) :]
    order = np.argsort(right, kind="stable")
    low, high = [np.searchsorted(right[order], left, side) for side in ("left", "right")]
    counts = high - low
    first = np.repeat(np.arange(len(a)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(low, counts) + within]


def matmul(lhs: Any, rhs: Any) -> Any:
    """`lhs @ rhs` as by `numpy.matmul`, where at least one operand is sparse.

    Example:
        >>> from gradix.experimental import sparse
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.sparse import bcoo
        >>> bcoo.matmul(sparse.eye(2), jnp.ones((2, 3))).shape
        (2, 3)
    """
    lhs, rhs = [x if isinstance(x, JAXSparse) else jnp.asarray(x) for x in (lhs, rhs)]
    if not lhs.ndim or not rhs.ndim:
        raise ValueError(f"matmul input operand must have ndim at least 1, but got shapes {lhs.shape} and {rhs.shape}.")
    if (lhs.ndim <= 2 or rhs.ndim == 1) and (rhs.ndim <= 2 or lhs.ndim == 1):
        numbers = ((lhs.ndim - 1,), (max(rhs.ndim - 2, 0),)), ((), ())
        return bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)
    lead = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    lhs, rhs = [_stacked(x, lead) for x in (lhs, rhs)]
    n = len(lead)
    batch = tuple(range(n))
    return bcoo_dot_general(lhs, rhs, dimension_numbers=(((n + 1,), (n,)), (batch, batch)))


def _stacked(x, lead):
    shape = (*lead, *x.shape[-2:])
    if x.shape == shape:
        return x
    dims = tuple(range(len(shape) - x.ndim, len(shape)))
    return (
        bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)
        if isinstance(x, BCOO)
        else jnp.broadcast_to(x, shape)
    )


def bcoo_multiply_dense(sp_mat: BCOO, v: Array) -> Array:
    """The data of the elementwise product with an ordinary array `v`, which is broadcast.

    Raises:
        NotImplementedError: the product would have a larger shape than the sparse array.

    Example:
        >>> import gradix.numpy as jnp
        >>> bcoo_multiply_dense(BCOO.fromdense(jnp.array([0.0, 2.0, 3.0])), jnp.array([1.0, 10.0, 100.0]))
        Array([ 20., 300.], dtype=float32)
    """
    v = jnp.asarray(v)
    if not v.ndim:
        return sp_mat.data * v
    if v.ndim > sp_mat.ndim or any(n not in (1, m) for n, m in zip(v.shape[::-1], sp_mat.shape[::-1])):
        raise NotImplementedError(
            f"bcoo_multiply_dense: the product of a sparse array of shape {sp_mat.shape} and an array of "
            f"shape {v.shape} would be larger than the sparse array. Repeat the sparse array by "
            "bcoo_broadcast_in_dim first."
        )
    v = v.reshape((1,) * (sp_mat.ndim - v.ndim) + v.shape)
    return sp_mat.data * values_at(sp_mat, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays, with the indices of the first.

    Example:
        >>> import gradix.numpy as jnp
        >>> a, b = BCOO.fromdense(jnp.array([1.0, 2.0])), BCOO.fromdense(jnp.array([0.0, 5.0]))
        >>> bcoo_multiply_sparse(a, b).todense()
        Array([ 0., 10.], dtype=float32)
    """
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    lhs, rhs = [
        m
        if m.shape == shape
        else bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=tuple(range(len(shape) - m.ndim, len(shape))))
        for m in (lhs, rhs)
    ]
    n_batch, n_dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    lhs, rhs = [bcoo_update_layout(m, n_batch=n_batch, n_dense=n_dense) for m in (lhs, rhs)]
    (data, indices), other = whole_parts(lhs), bcoo_sum_duplicates(rhs, nse=rhs.nse)
    lead, sizes = indices.shape[:-2], sparse_shape(lhs)
    if not lhs.n_sparse or not rhs.nse:
        factor = jnp.sum(whole_parts(rhs)[0], n_batch, keepdims=True, dtype=rhs.dtype)
        return BCOO((data * factor, indices), shape=shape)
    wide = index_dtype_for(sizes, indices.dtype)
    count, dense = math.prod(lead), data.shape[n_batch + 1 :]
    keys, known = [sorted_keys(i.astype(wide), sizes).reshape(count, -1) for i in (indices, whole_parts(other)[1])]
    values = whole_parts(other)[0].reshape(count, rhs.nse, *dense)

    def look_up(key, among, value):
        at = jnp.clip(jnp.searchsorted(among, key), 0, rhs.nse - 1)
        return or_zero((among[at] == key)[(..., *[None] * len(dense))], value[at])

    factors = vmap(look_up)(keys, known, values).reshape(*lead, lhs.nse, *dense)
    return BCOO(
        (data * factors, indices), shape=shape, indices_sorted=lhs.indices_sorted, unique_indices=lhs.unique_indices
    )


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:
    """A contraction of two ordinary arrays, computed only for the elements at `indices`.

    Args:
        A, B: ordinary arrays.
        indices: the indices of a BCOO array of the result's shape, (*batch, nse, n_sparse).
        dimension_numbers: `((A_contracting, B_contracting), (A_batch, B_batch))`.

    Returns:
        An array of shape (*batch, nse, *dense), the data of such a BCOO array.

    Raises:
        TypeError: the sizes of contracted or batch axes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> a = jnp.arange(4.0).reshape(2, 2)
        >>> bcoo_dot_general_sampled(a, a, jnp.array([[1, 1]]), dimension_numbers=(((1,), (0,)), ((), ())))
        Array([11.], dtype=float32)
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    (ac, bc), (ab, bb) = canonical_numbers("bcoo_dot_general_sampled", A, B, dimension_numbers)
    free = (
        [i for i in range(A.ndim) if i not in ac and i not in ab],
        [i for i in range(B.ndim) if i not in bc and i not in bb],
    )
    dtype, terms = jnp.result_type(A, B), math.prod([A.shape[i] for i in ac])
    shape = (*[A.shape[i] for i in (*ab, *free[0])], *[B.shape[i] for i in free[1]])
    if indices.ndim != 2 or indices.shape[1] != len(shape):
        whole = lax.dot_general(A.astype(dtype), B.astype(dtype), ((ac, bc), (ab, bb)))
        n_batch = indices.ndim - 2
        made = BCOO((jnp.zeros((*indices.shape[:-1], *shape[n_batch + indices.shape[-1] :])), indices), shape=shape)
        return values_at(made, whole)
    rows = jnp.transpose(A, (*ab, *free[0], *ac)).reshape(-1, terms).astype(dtype)
    columns = jnp.transpose(B, (*bb, *free[1], *bc)).reshape(-1, terms).astype(dtype)
    limit = raise_rank(jnp.array(shape, indices.dtype), indices.ndim)
    valid = jnp.all((indices >= 0) & (indices < limit), 1)
    at = [jnp.clip(indices[:, i], 0, max(n - 1, 0)) for i, n in enumerate(shape)]
    n, m = len(ab), len(free[0])
    i = joined([*at[:n], *at[n : n + m]], shape[: n + m])
    j = joined([*at[:n], *at[n + m :]], [*shape[:n], *shape[n + m :]])
    return or_zero(valid, jnp.sum(rows[i] * columns[j], 1, dtype=dtype))
