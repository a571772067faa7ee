"""Where elements of a BCOO array stand: coordinates of every axis, and the form without batches or dense axes."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradix import numpy as jnp


class Layout(NamedTuple):
    """How the axes of an array are divided, first to last."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


class Elements(NamedTuple):
    """The elements of an array, one after the other.

    Attributes:
        data: of shape (e,); zero for elements that stand outside of the array.
        places: their coordinates along each axis, of shape (e,), within the array.
        ordered: whether their places are in the order of rows.
    """

    data: jnp.ndarray
    places: list
    ordered: bool


def layout_of(data, indices, shape) -> Layout:
    """The layout that shapes tell.

    Raises:
        ValueError: they do not fit each other.
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
    elif any(
        n not in (1, m)
        for part in (data.shape, indices.shape)
        for n, m in zip(part[:n_batch], shape)
    ):
        problem = "the batch axes of data and indices must be those of the array, or 1"
    elif data.shape[n_batch + 1 :] != tuple(shape[n_batch + n_sparse :]):
        problem = "the dense axes of data must be those of the array"
    if problem:
        raise ValueError(
            f"Invalid BCOO array: {problem}; got data of shape {data.shape}, indices of shape "
            f"{indices.shape} "
            f"and shape={tuple(shape)}. data is [*batch, nse, *dense], indices are [*batch, nse, "
            "n_sparse]."
        )
    return Layout(n_batch, n_sparse, n_dense, nse)


def in_bounds(mat):
    """Which indices stand within the array; of the shape of the indices without the last axis."""
    inside = jnp.ones(mat.indices.shape[:-1], bool)
    # column by column, so that a program makes one loop of it
    for i, n in enumerate(sparse_shape(mat)):
        place = mat.indices[..., i]
        inside = inside & (place >= 0) & (place < n)
    return inside


def sparse_shape(mat) -> tuple:
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def batch_shape(mat) -> tuple:
    return mat.shape[: mat.n_batch]


def whole_parts(mat) -> tuple:
    """Data and indices with their batch axes in full size."""
    lead = batch_shape(mat)
    return (
        jnp.broadcast_to(mat.data, (*lead, *mat.data.shape[mat.n_batch :])),
        jnp.broadcast_to(mat.indices, (*lead, *mat.indices.shape[mat.n_batch :])),
    )


def elements_of(mat) -> Elements:
    """The elements one after the other, in the order batch, element, dense."""
    data, indices = whole_parts(mat)
    valid = jnp.broadcast_to(in_bounds(mat), indices.shape[:-1])
    shape = data.shape
    count = math.prod(shape)
    data = jnp.where(spread(valid, data), data, 0)
    places = []
    for axis in range(mat.ndim):
        if mat.n_batch <= axis < mat.n_batch + mat.n_sparse:
            inside = jnp.clip(indices[..., axis - mat.n_batch], 0, max(mat.shape[axis] - 1, 0))
            places.append(jnp.broadcast_to(spread(inside, data), shape).reshape(count))
        else:
            own = axis if axis < mat.n_batch else axis - mat.n_sparse + 1
            places.append(along(shape, own, indices.dtype).reshape(count))
    return Elements(data.reshape(count), places, mat.indices_sorted)


def along(shape, axis: int, dtype):
    """Counts along an axis, in an array of that shape."""
    return jnp.broadcast_to(
        jnp.arange(shape[axis], dtype=dtype)[(slice(None), *[None] * (len(shape) - axis - 1))],
        shape,
    )


def spread(x, like):
    """Values of elements, with an axis of one place for each dense axis of `like`."""
    return x[(..., *[None] * (like.ndim - x.ndim))]


def joined(places, sizes, dtype=None):
    """Coordinates as one number, in the order of rows; zero where there are none."""
    if not places:
        return 0
    out = places[0]
    for place, size in zip(places[1:], sizes[1:]):
        out = out * size + place
    return out


def taken_apart(flat, sizes) -> list:
    """The coordinates that one number stands for."""
    out: list = []
    for size in reversed(sizes):
        flat, place = jnp.divmod(flat, max(size, 1))
        out.append(place)
    return out[::-1]


def index_dtype_for(sizes, dtype):
    """The dtype, or a wider one where it cannot count so many places."""
    if math.prod(sizes) > jnp.iinfo(dtype).max:
        if math.prod(sizes) > jnp.iinfo("int32").max:
            return jnp.dtype("int64")
        return jnp.dtype("int32")
    return dtype


def places_in(mat) -> tuple:
    """An index that picks the data of `mat`, of its shape, out of a whole array; sparse indices as they are."""
    lead = math.prod(batch_shape(mat)) != 1 or mat.n_batch
    batch = (
        [
            jnp.arange(n)[(slice(None), *[None] * (mat.n_batch - i))]
            for i, n in enumerate(batch_shape(mat))
        ]
        if lead
        else []
    )
    return (*batch, *[mat.indices[..., i] for i in range(mat.n_sparse)])
