"""Random sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradix import numpy as jnp, random as _random
from gradix._api.mapping.vmap import vmap
from gradix._base.listing import own_names as _own_names
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._layout import taken_apart

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike, KeyLike


def random_bcoo(
    key: KeyLike,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = jnp.float64,
    indices_dtype: DTypeLike | None = None,
    nse: int | float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable = _random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array with random elements at random indices.

    Args:
        key: a random key.
        shape: the shape of the array.
        dtype: the dtype of its elements; float64 becomes float32 unless 64 bits are enabled.
        indices_dtype: the dtype of its indices; int32 by default.
        nse: the number of elements of each batch, or if below 1, their fraction of all.
        n_batch, n_dense: the numbers of batch and dense axes.
        unique_indices: whether all indices of a batch differ.
        sorted_indices: whether the indices of each batch are in row-major order.
        generator: a function of a key, a shape and a dtype that draws the elements; by default they
            are uniform in [0, 1).
        **kwds: further arguments of the generator.

    Raises:
        ValueError: `n_batch`, `n_dense` or `nse` does not fit the shape.

    Example:
        >>> from gradix import random
        >>> random_bcoo(random.key(0), (3, 4), nse=0.5)
        BCOO(float32[3, 4], nse=6)
    """
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(
            f"random_bcoo: {n_batch=} and {n_dense=} must not be negative, and their sum must not exceed "
            f"the number of axes of {shape=}."
        )
    if nse < 0 or isinstance(nse, float) and nse >= 1 and nse != int(nse):
        raise ValueError(f"random_bcoo: nse must be a number of elements, or a fraction between 0 and 1; got {nse}.")
    lead, sizes, dense = (shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :])
    total = math.prod(sizes)
    count = math.ceil(nse * total) if 0 < nse < 1 else int(nse)
    if unique_indices and count > total:
        raise ValueError(
            f"random_bcoo: nse={count} exceeds the number of different indices, {total}. Pass a smaller "
            "nse, or unique_indices=False."
        )
    of_data, of_places = _random.split(key)
    indices_dtype = jnp.dtype("int32" if indices_dtype is None else indices_dtype)

    def places(key):
        drawn = _random.choice(key, total, (count,), replace=not unique_indices) if total else jnp.zeros(count, "int32")
        drawn = jnp.sort(drawn) if sorted_indices else drawn
        parts = taken_apart(drawn, sizes)
        return jnp.stack(parts, -1).astype(indices_dtype) if parts else jnp.zeros((count, 0), indices_dtype)

    if lead:
        keys = _random.split(of_places, math.prod(lead))
        indices = vmap(places)(keys).reshape(*lead, count, n_sparse)
    else:
        indices = places(of_places)
    is_too_wide = jnp.dtype(dtype) == "float64" and jnp.ones(()).dtype == "float32"
    drawn_dtype = jnp.zeros((), jnp.float32).dtype if is_too_wide else dtype
    data = generator(of_data, (*lead, count, *dense), dtype=drawn_dtype, **kwds)
    return BCOO((jnp.asarray(data), indices), shape=shape, indices_sorted=sorted_indices, unique_indices=unique_indices)


__dir__ = _own_names(__name__)
