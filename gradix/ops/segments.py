"""Sums, products and extremes of the rows of an array, grouped by a number for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.mapping.row_sums import summed_by_rows
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.dimensions.expression import as_dim
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix._ops.indexing.index_values import wide_index
from gradix._ops.indexing.scatter import scatter_add, scatter_max, scatter_min, scatter_mul
from gradix.numpy.promotion import as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.operators import Array
    from gradix._core.sharding import PartitionSpec
    from gradix._ops.indexing.gather_dimension_numbers import GatherScatterMode


class _Kind(NamedTuple):
    """How a function combines the rows of a segment."""

    name: str
    scatter: Callable
    reduce: Callable
    identity: Callable


def _segment(kind: _Kind, data, segment_ids, num_segments, promises: dict, bucket_size):
    name, scatter, reduce, identity = kind
    data, ids = as_operand(name, data), as_operand(name, segment_ids)
    if ids.aval.dtype not in dtypes.INTEGER:
        raise TypeError(
            f"{name}: segment_ids must be integers, got dtype {ids.aval.dtype}. Convert them: ids.astype(int)."
        )
    if not data.aval.shape or ids.aval.shape != data.aval.shape[:1]:
        data, ids = _spread(name, data, ids)
    count = _count(name, ids) if num_segments is None else as_dim(num_segments)
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, got {count}.")
    rows, tail = data.aval.shape[0], data.aval.shape[1:]
    start = identity(data.aval.dtype)
    if bucket_size is None:
        return _scatter(
            scatter, lax.full((count, *tail), start, data.aval.dtype), lax.expand_dims(ids, (1,)), data, 1, **promises
        )
    buckets = -(-rows // bucket_size)
    ids = wide_index(ids, buckets, count)
    numbers = lax.iota(ids.aval.dtype, rows) // bucket_size
    places = lax.concatenate([lax.expand_dims(numbers, (1,)), lax.expand_dims(ids, (1,))], 1)
    parts = _scatter(scatter, lax.full((buckets, count, *tail), start, data.aval.dtype), places, data, 2, **promises)
    return reduce(parts, (0,))


def _spread(name: str, data, ids):
    """The data broadcast to the shape of the ids, both with the axes of the ids joined to one."""
    row = data.aval.shape[1:]
    shape = (*ids.aval.shape, *row)
    try:
        fits = lax.broadcast_shapes(data.aval.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} takes one segment id for each row of data, got data of shape "
            f"{data.aval.shape} and segment_ids of shape {ids.aval.shape}. Incompatible types for "
            "broadcasting: reshape data so that its first axis is that of segment_ids."
        )
    places = tuple(range(len(shape) - data.aval.ndim, len(shape)))
    whole = lax.broadcast_in_dim(data, shape, places)
    return lax.reshape(whole, (ids.aval.size, *row)), lax.reshape(ids, (ids.aval.size,))


def _scatter(scatter, into, places, data, depth: int, *, indices_are_sorted, unique_indices, mode):
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, data.aval.ndim)),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
    )
    return scatter(
        into,
        places,
        data,
        numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=lax.GatherScatterMode.FILL_OR_DROP if mode is None else lax.GatherScatterMode.asked(mode),
    )


def _count(name: str, ids) -> int:
    """One more than the largest id."""
    if is_unknown(ids):
        raise ConcretizationTypeError(
            ids,
            f"Without the num_segments argument of {name}(), the values of segment_ids determine "
            f"the number of segments. Write {name}(data, ids, num_segments=n).",
        )
    if not ids.aval.size:
        raise ValueError(
            f"{name}: segment_ids is empty (a zero-size array), so the number of segments is not "
            "known. Give num_segments=."
        )
    top = lax.reduce_max(ids, tuple(range(ids.aval.ndim))) if isinstance(ids, Tracer) else ids.host.max()
    return max(int(top) + 1, 0)


def _lowest(dtype):
    return False if dtype in dtypes.BOOL else -np.inf if dtype in dtypes.INEXACT else dtypes.iinfo(dtype).min


def _highest(dtype):
    return True if dtype in dtypes.BOOL else np.inf if dtype in dtypes.INEXACT else dtypes.iinfo(dtype).max


def _sums_left(sharding, data, segment_ids, num_segments, *options) -> Array:
    """The sums of segments, unreduced over the mesh axes over which rows are divided."""
    if num_segments is None:
        num_segments = _count("segment_sum", segment_ids)
    data, segment_ids = as_operand("segment_sum", data), as_operand("segment_sum", segment_ids, 1)

    def one(data, segment_ids):
        return segment_sum(data, segment_ids, num_segments, *options)

    return summed_by_rows(one, sharding, data, segment_ids)


def _public(name: str, summary: str, empty: str, shown: str, scatter, reduce, *, identity):
    kind = _Kind(name, scatter, reduce, identity)

    def function(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: GatherScatterMode | str | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> Array:
        if out_sharding is not None:
            spec = getattr(out_sharding, "spec", out_sharding)
            if kind.scatter is not scatter_add and getattr(spec, "unreduced", None):
                raise NotImplementedError(
                    f"unreduced for {name} is not supported: out_sharding={out_sharding} asks for the "
                    "parts of a sum, and parts that are combined otherwise cannot be summed later. "
                    "Leave these axes out, and the result is combined at once."
                )
            return divided(
                function,
                out_sharding,
                data,
                segment_ids,
                num_segments,
                indices_are_sorted,
                unique_indices,
                bucket_size,
                mode,
                leaves_sums=_sums_left,
            )
        promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
        return _segment(kind, data, segment_ids, num_segments, promises, bucket_size)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
        data: an array whose rows are reduced.
        segment_ids: a vector with the number of each row's segment; rows with numbers out of bounds
            do not count.
        num_segments: the number of segments; by default one more than the largest of `segment_ids`.
            It is needed if these are traced.
        indices_are_sorted: a promise that the numbers ascend.
        unique_indices: a promise that no number occurs twice.
        bucket_size: for more accuracy, reduce so many rows at a time, and then the results.
        mode: how to treat numbers out of bounds, a `GatherScatterMode`; rows are dropped by
            default.
        out_sharding: the sharding of the result.

    Returns:
        An array of shape `(num_segments, *data.shape[1:])` and the dtype of `data`; it is {empty}
        for a segment without rows.

    Raises:
        TypeError: `segment_ids` are not integers.
        ValueError: the shapes do not fit, or `num_segments` is negative or missing for empty data.
        ConcretizationTypeError: `segment_ids` is traced and `num_segments` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import ops
        >>> ops.{name}(jnp.array([1.0, 2.0, 5.0]), jnp.array([0, 0, 1]))
        {shown}
    """
    return function


segment_sum = _public(
    "segment_sum",
    "The sum of the rows of each segment.",
    "0",
    "Array([3., 5.], dtype=float32)",
    scatter_add,
    lax.reduce_sum,
    identity=lambda dtype: 0,
)
segment_prod = _public(
    "segment_prod",
    "The product of the rows of each segment.",
    "1",
    "Array([2., 5.], dtype=float32)",
    scatter_mul,
    lax.reduce_prod,
    identity=lambda dtype: 1,
)
segment_max = _public(
    "segment_max",
    "The elementwise maximum of the rows of each segment.",
    "the smallest value of the dtype",
    "Array([2., 5.], dtype=float32)",
    scatter_max,
    lax.reduce_max,
    identity=_lowest,
)
segment_min = _public(
    "segment_min",
    "The elementwise minimum of the rows of each segment.",
    "the largest value of the dtype",
    "Array([1., 5.], dtype=float32)",
    scatter_min,
    lax.reduce_min,
    identity=_highest,
)
