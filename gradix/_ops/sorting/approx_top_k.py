"""approx_max_k and approx_min_k."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from gradix._core import dtypes
from gradix._core.dimensions.expression import is_symbolic_dim, may_have
from gradix._core.operators import Array
from gradix._ops.canonicalization import canonical_axis
from gradix._ops.complex_parts import neg
from gradix._ops.operands import as_operand
from gradix._ops.sorting.sort import top_k

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _extremes(name: str, operand, k, reduction_dimension, recall_target, size_override, *, largest: bool) -> list:
    x = as_operand(name, operand)
    if not x.aval.ndim:
        raise TypeError(f"{name} operand must have >= 1 dimension, got shape ().")
    if x.aval.dtype not in dtypes.FLOAT:
        raise ValueError(
            f"{name} operand must be a floating type, got {dtypes.dtype_name(x.aval.dtype)}. For "
            "integers use lax.top_k, or .astype('float32')."
        )
    axis, k = canonical_axis(reduction_dimension, x.aval.ndim), k if is_symbolic_dim(k) else index(k)
    size = x.aval.shape[axis]
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}.")
    if not may_have(size, k):
        raise ValueError(f"k must be smaller than the size of reduction_dim {size}, got {k}.")
    if not 0 < recall_target <= 1:
        raise ValueError(f"recall_target must be above 0 and at most 1, got {recall_target}.")
    if size_override != -1 and size_override < size:
        raise ValueError(
            f"reduction_input_size_override must be -1 or at least the size {size} of the axis, got {size_override}."
        )
    if largest:
        return top_k(x, k, axis=axis)
    values, places = top_k(neg(x), k, axis=axis)
    return [neg(values), places]


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """About the `k` largest elements along an axis, at least `recall_target` of them, and indices.

    On CPUs they are exactly those of `lax.top_k`.

    Args:
        operand: an array of a floating dtype.
        k: the number of elements.
        reduction_dimension: the axis.
        recall_target: the share of the results that must be among the true ones, above 0 and at
            most 1.
        reduction_input_size_override: the size of the whole axis where `operand` is a part of it;
            -1 for its own.
        aggregate_to_topk: False permits more than `k` results, in any order.

    Returns:
        A list of values and int32 indices.

    Raises:
        ValueError: `k`, a size or the dtype is out of range.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.approx_max_k(jnp.array([1.0, 3.0, 2.0]), 2)
        [Array([3., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    return _extremes(
        "approx_max_k", operand, k, reduction_dimension, recall_target, reduction_input_size_override, largest=True
    )


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The `k` smallest elements along an axis and their indices; see `approx_max_k`.

    Args:
        operand: floating-point numbers of any shape.
        k: the number of elements.
        reduction_dimension: the axis; negative ones count from the end.
        recall_target, reduction_input_size_override, aggregate_to_topk: as for `approx_max_k`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.approx_min_k(jnp.array([1.0, 3.0, 2.0]), 2)
        [Array([1., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _extremes(
        "approx_min_k", operand, k, reduction_dimension, recall_target, reduction_input_size_override, largest=False
    )
