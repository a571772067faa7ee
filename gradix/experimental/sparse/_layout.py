"""The coordinates of a BCOO array's elements along every axis, and helpers to compute with them."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradix import numpy as jnp


class Layout(NamedTuple):
    """How many axes of an array are batch, sparse and dense axes, and how many elements it has."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def layout_of(data, indices, shape) -> Layout:
    """The layout of an array with these parts.

    Raises:
        ValueError: the shapes of the parts do not fit each other.
    """
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    n_dense = len(shape) - n_batch - n_sparse
    nse = data.shape[n_batch] if data.ndim > n_batch else -1
    problem = None
    if n_batch < 0 or n_dense < 0:
        problem = "the indices have more axes than the array"
    elif data.ndim != n_batch + 1 + n_dense:
        problem = f"data must have {n_batch} batch axes, one of elements and {n_dense} dense axes"
    elif nse != indices.shape[n_batch]:
        problem = f"data holds {nse} elements and the indices {indices.shape[n_batch]}"
    elif any(n not in (1, m) for part in (data.shape, indices.shape) for n, m in zip(part[:n_batch], shape)):
        problem = "the batch axes of data and indices must be those of the array, or 1"
    elif data.shape[n_batch + 1 :] != tuple(shape[n_batch + n_sparse :]):
        problem = "the dense axes of data must be those of the array"
    if problem:
        raise ValueError(
            f"Invalid BCOO array: {problem}; got data of shape {data.shape}, indices of shape "
            f"{indices.shape} and shape={tuple(shape)}. data must be of shape [*batch, nse, *dense], "
            "indices of shape [*batch, nse, n_sparse]."
        )
    return Layout(n_batch, n_sparse, n_dense, nse)


def fitting_shape(data, indices, shape: tuple) -> tuple:
    """The shape of an array of parts of which `vmap` may have added, removed or moved batch axes.

    Batch axes are as long as those of the parts; where these repeat one row, as the shape says.
    """
    n_batch = len(indices) - 2
    inner = indices[-1] + len(data) - n_batch - 1
    kept = shape[len(shape) - inner :] if inner else ()
    known = (1,) * n_batch + shape[: len(shape) - inner]
    sizes = [a if b == 1 else b for a, b in zip(data[:n_batch], indices[:n_batch])]
    old = known[len(known) - n_batch :]
    return (*[m if n == 1 else n for n, m in zip(sizes, old)], *kept)


def in_bounds(mat):
    """Which index vectors are within the array: booleans of shape `indices.shape[:-1]`."""
    inside = jnp.ones(mat.indices.shape[:-1], bool)
    # Columns are tested one by one because XLA fuses these comparisons into one loop.
    for i, n in enumerate(sparse_shape(mat)):
        place = mat.indices[..., i]
        inside = inside & (place >= 0) & (place < n)
    return inside


def sparse_shape(mat) -> tuple:
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def batch_shape(mat) -> tuple:
    return mat.shape[: mat.n_batch]


def whole_parts(mat) -> tuple:
    """Data and indices, with batch axes of size 1 repeated to their full size."""
    lead = batch_shape(mat)
    return (
        jnp.broadcast_to(mat.data, (*lead, *mat.data.shape[mat.n_batch :])),
        jnp.broadcast_to(mat.indices, (*lead, *mat.indices.shape[mat.n_batch :])),
    )


def or_zero(mask, data):
    """`data` where the mask is true, and zeros of its dtype elsewhere."""
    return jnp.where(mask, data, jnp.zeros_like(data, shape=()))


def elements_of(mat) -> tuple[jnp.ndarray, list]:
    """The elements as a vector, and their coordinates along each axis as vectors.

    The order is batch, element, dense. Elements out of bounds become zeros within the array.
    """
    data, indices = whole_parts(mat)
    valid = jnp.broadcast_to(in_bounds(mat), indices.shape[:-1])
    shape = data.shape
    count = math.prod(shape)
    data = or_zero(spread(valid, data), data)
    places = []
    for axis in range(mat.ndim):
        if mat.n_batch <= axis < mat.n_batch + mat.n_sparse:
            inside = jnp.clip(indices[..., axis - mat.n_batch], 0, max(mat.shape[axis] - 1, 0))
            places.append(jnp.broadcast_to(spread(inside, data), shape).reshape(count))
        else:
            own = axis if axis < mat.n_batch else axis - mat.n_sparse + 1
            places.append(along(shape, own, indices.dtype).reshape(count))
    return data.reshape(count), places


def along(shape, axis: int, dtype):
    """An array of this shape that counts along an axis, from 0."""
    return jnp.broadcast_to(
        jnp.arange(shape[axis], dtype=dtype)[(slice(None), *[None] * (len(shape) - axis - 1))], shape
    )


def spread(x, like):
    """`x` with axes of size 1 appended, so that it has the rank of `like`."""
    return x[(..., *[None] * (like.ndim - x.ndim))]


def joined(places, sizes):
    """Coordinates as one number in row-major order; zero if there are no coordinates."""
    if not places:
        return 0
    out = places[0]
    for place, size in zip(places[1:], sizes[1:]):
        out = out * size + place
    return out


def taken_apart(flat, sizes) -> list:
    """The coordinates that `joined` made one number of."""
    out: list = []
    for size in reversed(sizes):
        flat, place = jnp.divmod(flat, max(size, 1))
        out.append(place)
    return out[::-1]


def holding(indices, sizes):
    """Indices in a dtype that holds each of these sizes, the index of elements that are left out."""
    longest = max(sizes, default=0)
    dtype = getattr(indices, "dtype", None)
    if dtype is None or dtype.kind not in "iu" or longest <= jnp.iinfo(dtype).max:
        return indices
    return indices.astype(index_dtype_for((longest,), dtype))


def index_dtype_for(sizes, dtype):
    """The dtype, or a wider integer dtype if it cannot count the elements of these sizes."""
    if math.prod(sizes) > jnp.iinfo(dtype).max:
        if math.prod(sizes) > jnp.iinfo("int32").max:
            return jnp.dtype("int64")
        return jnp.dtype("int32")
    return dtype


def places_in(mat) -> tuple:
    """The index by which an ordinary array gives values of the shape of the data of `mat`.

    Sparse indices out of bounds are kept.
    """
    lead = math.prod(batch_shape(mat)) != 1 or mat.n_batch
    batch = (
        [jnp.arange(n)[(slice(None), *[None] * (mat.n_batch - i))] for i, n in enumerate(batch_shape(mat))]
        if lead
        else []
    )
    return (*batch, *[mat.indices[..., i] for i in range(mat.n_sparse)])
