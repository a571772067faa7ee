"""Random sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradix import numpy as jnp, random as _random
from gradix._api.mapping.vmap import vmap
from gradix._base.listing import listing as _listing
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._layout import taken_apart


def random_bcoo(
    key,
    shape: Sequence[int],
    *,
    dtype: Any = jnp.float64,
    indices_dtype: Any = None,
    nse: int | float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable = _random.uniform,
    **kwds: Any,
) -> BCOO:
    """A random sparse array.

    Args:
        key: a random key.
        shape: of the array.
        dtype: of its elements; float64 is float32 unless 64 bits are enabled.
        indices_dtype: of its indices.
        nse: how many elements each batch has, or, below 1, which part of all.
        n_batch, n_dense: how many axes are batches, and stored whole.
        unique_indices: whether no place is drawn twice.
        sorted_indices: whether indices are in the order of rows.
        generator: of elements, from a key, a shape and a dtype; uniform in [0, 1) by default.
        **kwds: further arguments of the generator.

    Example:
        >>> from gradix import random
        >>> random_bcoo(random.key(0), (3, 4), nse=0.5)
        BCOO(float32[3, 4], nse=6)
    """
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(f"random_bcoo: {n_batch=} and {n_dense=} do not fit shape {shape}.")
    if nse < 0 or isinstance(nse, float) and nse >= 1 and nse != int(nse):
        raise ValueError(
            f"random_bcoo: nse must be a number of elements, or a part between 0 and 1; got {nse}."
        )
    lead, sizes, dense = (
        shape[:n_batch],
        shape[n_batch : n_batch + n_sparse],
        shape[n_batch + n_sparse :],
    )
    total = math.prod(sizes)
    count = math.ceil(nse * total) if 0 < nse < 1 else int(nse)
    if unique_indices and count > total:
        raise ValueError(
            f"random_bcoo: nse={count} is more than there are places, {total}; unique_indices=False "
            "allows it."
        )
    of_data, of_places = _random.split(key)
    indices_dtype = jnp.dtype("int32" if indices_dtype is None else indices_dtype)

    def places(key):
        drawn = (
            _random.choice(key, total, (count,), replace=not unique_indices)
            if total
            else jnp.zeros(count, "int32")
        )
        drawn = jnp.sort(drawn) if sorted_indices else drawn
        parts = taken_apart(drawn, sizes)
        return (
            jnp.stack(parts, -1).astype(indices_dtype)
            if parts
            else jnp.zeros((count, 0), indices_dtype)
        )

    if lead:
        keys = _random.split(of_places, math.prod(lead))
        indices = vmap(places)(keys).reshape(*lead, count, n_sparse)
    else:
        indices = places(of_places)
    is_too_wide = jnp.dtype(dtype) == "float64" and jnp.ones(()).dtype == "float32"
    drawn_dtype = jnp.zeros((), jnp.float32).dtype if is_too_wide else dtype
    data = generator(of_data, (*lead, count, *dense), dtype=drawn_dtype, **kwds)
    return BCOO(
        (jnp.asarray(data), indices),
        shape=shape,
        indices_sorted=sorted_indices,
        unique_indices=unique_indices,
    )


__dir__ = _listing(__name__)
