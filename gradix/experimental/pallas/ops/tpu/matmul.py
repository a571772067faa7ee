"""The product of matrices as a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.listing import own_names as _own_names
from gradix._core.annotations import DTypeLike
from gradix._core.operators import Array
from gradix.experimental.pallas._call import pallas_call
from gradix.experimental.pallas._programs import num_programs, program_id, when
from gradix.experimental.pallas._specs import ANY, BlockSpec


def matmul_kernel(x_tile_ref: Any, y_tile_ref: Any, o_tile_ref: Any, acc_ref: Any) -> None:
    """One program: the product of two blocks is added up over the last axis of the grid.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas.ops.tpu.matmul import matmul_kernel
        >>> ones = jnp.ones((2, 2))
        >>> call = pl.pallas_call(
        ...     matmul_kernel, gradix.ShapeDtypeStruct((2, 2), "float32"), grid=(1, 1, 2),
        ...     in_specs=[pl.BlockSpec((2, 1), lambda i, j, k: (i, k)), pl.BlockSpec((1, 2), lambda i, j, k: (k, j))],
        ...     out_specs=pl.BlockSpec((2, 2), lambda i, j, k: (i, j)), scratch_shapes=[pl.ANY((2, 2), "float32")],
        ... )
        >>> call(jnp.array([[1.0, 2.0], [3.0, 4.0]]), ones)
        Array([[3., 3.],
               [7., 7.]], dtype=float32)
    """

    @when(program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros(acc_ref.shape, acc_ref.dtype)

    acc_ref[...] += lax.dot(x_tile_ref[...], y_tile_ref[...], preferred_element_type=acc_ref.dtype)

    @when(program_id(2) == num_programs(2) - 1)
    def _():
        o_tile_ref[...] = acc_ref[...].astype(o_tile_ref.dtype)


def matmul(
    x: Array,
    y: Array,
    *,
    block_shape: tuple[int, int],
    block_k: int = 256,
    out_dtype: DTypeLike | None = None,
    debug: bool = False,
) -> Any:
    """The product of two matrices, by blocks of `block_shape`, added up in float32 (integers in int32).

    Args:
        x, y: matrices (m, k) and (k, n) of one dtype.
        block_shape: the rows and columns of a block of the result.
        block_k: how many elements of k are taken at a time.
        out_dtype: the dtype of the result; by default that of the operands, of integers int32.
        debug: whether to print the kernel.

    Raises:
        ValueError: the sizes are not made of whole blocks, or the matrices do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.matmul import matmul
        >>> matmul(jnp.ones((4, 8)), jnp.ones((8, 4)), block_shape=(2, 2), block_k=4)[0]
        Array([8., 8., 8., 8.], dtype=float32)
    """
    (m, k), (k2, n) = x.shape, y.shape
    block_m, block_n = min(block_shape[0], m), min(block_shape[1], n)
    block_k = min(block_k, k)
    if k != k2 or m % block_m or n % block_n or k % block_k:
        raise ValueError(
            f"matmul of shapes {x.shape} and {y.shape} needs whole blocks, got block_shape={block_shape} and "
            f"block_k={block_k}. Take divisors of the sizes."
        )
    is_integer = np.issubdtype(x.dtype, np.integer)
    held = np.dtype(np.int32 if is_integer else np.float32)
    out = out_dtype or (held if is_integer else x.dtype)
    return pallas_call(
        matmul_kernel,
        ShapeDtypeStruct((m, n), out),
        grid=(m // block_m, n // block_n, k // block_k),
        in_specs=[
            BlockSpec((block_m, block_k), lambda i, j, k: (i, k)),
            BlockSpec((block_k, block_n), lambda i, j, k: (k, j)),
        ],
        out_specs=BlockSpec((block_m, block_n), lambda i, j, k: (i, j)),
        scratch_shapes=[ANY((block_m, block_n), held)],
        debug=debug,
        name="matmul",
    )(x, y)


__dir__ = _own_names(__name__)
