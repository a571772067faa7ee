"""Kernels that work on each row of an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradix import numpy as jnp
from gradix._api.structs import ShapeDtypeStruct
from gradix._core.operators import Array
from gradix.experimental.pallas._call import pallas_call
from gradix.experimental.pallas._specs import BlockSpec


def by_rows(kernel: Callable[..., None], x: Array, *vectors: Any, name: str) -> Any:
    """The array whose rows along the last axis a kernel makes of those of `x`.

    Args:
        kernel: a function of references: to a row, to each of the vectors, and to the new row.
        vectors: arrays that all rows share.
    """
    n = x.shape[-1]
    rows = jnp.reshape(x, (math.prod(x.shape[:-1]), n))
    row = BlockSpec((None, n), lambda i: (i, 0))
    call = pallas_call(
        kernel,
        ShapeDtypeStruct(rows.shape, x.dtype),
        grid=(rows.shape[0],),
        in_specs=[row, *[BlockSpec() for _ in vectors]],
        out_specs=row,
        name=name,
    )
    return jnp.reshape(call(rows, *vectors), x.shape)
