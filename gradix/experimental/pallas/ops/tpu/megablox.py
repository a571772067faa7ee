"""Products of rows in groups, each with a matrix of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._core.annotations import DTypeLike
from gradix._core.operators import Array


def _from(array: Any, offset: Any, sizes: Any, axis: int) -> tuple[Any, Any]:
    """The array of rows in groups, moved so that the first row of group `offset` is the first, and that row."""
    if offset is None:
        return array, 0
    first = jnp.where(jnp.arange(sizes.shape[0]) < jnp.reshape(offset, ()), sizes, 0).sum()
    return jnp.roll(array, -first, axis), first


def gmm(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    preferred_element_type: DTypeLike = np.float32,
    tiling: tuple[int, int, int] = (128, 128, 128),
    group_offset: Array | None = None,
    existing_out: Array | None = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Any:
    """The rows of `lhs`, in groups one after another, each times the matrix of its group.

    Args:
        lhs: rows, of shape (m, k).
        rhs: a matrix for each group, of shape (groups, k, n).
        group_sizes: int32, the number of rows of each group.
        preferred_element_type: the dtype of the result.
        group_offset: the number of the group that the first matrix is for, if `rhs` has fewer
            matrices than there are groups; None is 0.
        existing_out: an array (m, n) whose rows stay where no matrix is; by default they are zeros.
        transpose_rhs: whether matrices are given as (groups, n, k).
        tiling, interpret: accepted; they have no effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.megablox import gmm
        >>> matrices = jnp.array([1.0, 10.0]).reshape(2, 1, 1)
        >>> gmm(jnp.ones((3, 1)), matrices, jnp.array([1, 2]))
        Array([[ 1.],
               [10.],
               [10.]], dtype=float32)
    """
    lhs, rhs, sizes = map(jnp.asarray, (lhs, rhs, group_sizes))
    rhs = rhs.swapaxes(1, 2) if transpose_rhs else rhs
    rows, first = _from(lhs, group_offset, sizes, 0)
    own = sizes if group_offset is None else lax.dynamic_slice(sizes, (jnp.reshape(group_offset, ()),), rhs.shape[:1])
    own = own[: rhs.shape[0]]
    out = lax.ragged_dot(rows, rhs, own, preferred_element_type=preferred_element_type)
    place = jnp.arange(lhs.shape[0])
    is_made = (place >= first) & (place < first + own.sum())
    out = jnp.roll(out, first, 0) if group_offset is not None else out
    other = jnp.zeros((), out.dtype) if existing_out is None else jnp.asarray(existing_out).astype(out.dtype)
    return jnp.where(is_made[:, None], out, other)


def tgmm(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    preferred_element_type: DTypeLike = np.float32,
    tiling: tuple[int, int, int] = (128, 128, 128),
    interpret: bool = False,
) -> Any:
    """For each group of columns of `lhs` and rows of `rhs`, their product, of shape (groups, k, n).

    Args:
        lhs: shape (k, m).
        rhs: shape (m, n).
        group_sizes: int32, the number of columns and rows of each group.
        preferred_element_type: the dtype of the result.
        tiling, interpret: accepted; they have no effect here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas.ops.tpu.megablox import tgmm
        >>> tgmm(jnp.ones((1, 3)), jnp.ones((3, 1)), jnp.array([1, 2])).ravel()
        Array([1., 2.], dtype=float32)
    """
    lhs, rhs, sizes = map(jnp.asarray, (lhs, rhs, group_sizes))
    numbers = lax.RaggedDotDimensionNumbers(
        (((1,), (0,)), ((), ())), lhs_ragged_dimensions=(1,), rhs_group_dimensions=()
    )
    return lax.ragged_dot_general(lhs, rhs, sizes, numbers, preferred_element_type=preferred_element_type)


__dir__ = _own_names(__name__)
