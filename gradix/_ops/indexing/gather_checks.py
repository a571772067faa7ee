"""What shapes and dimension numbers of gather and scatter must satisfy."""

from __future__ import annotations

from gradix._core import dtypes
from gradix._core.dimensions.expression import may_be_empty
from gradix._core.dtypes import INTEGER
from gradix._ops.indexing.gather_dimension_numbers import window_sizes


def _sorted_distinct(op, name, dims):
    if list(dims) != sorted(dims):
        raise TypeError(f"{name} in {op} op must be sorted; got {dims}")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{name} in {op} op must not repeat; got: {dims}.")


def check_numbers(op, names, shape, indices, dnums):
    """Check what the dimension numbers of both gather and scatter must satisfy."""
    windowed, dropped, index_map, batching, batching_at = dnums
    ndim, rank = len(shape), indices.ndim
    if indices.dtype not in INTEGER:
        raise ValueError(f"indices must have an integer type, got {dtypes.dtype_name(indices.dtype)}.")
    if not rank:
        raise TypeError(
            f"{op} indices must have at least one axis, the last, for index vectors; got shape (). Add it with x[None]."
        )
    for name, dims in ((names[0], windowed), (names[1], dropped), ("operand_batching_dims", batching)):
        _sorted_distinct(op, name, dims)
    for name, dims, end in (
        (names[1], dropped, ndim),
        (names[2], index_map, ndim),
        ("operand_batching_dims", batching, ndim),
        (names[3], batching_at, rank - 1),
    ):
        if any(not 0 <= d < end for d in dims):
            raise TypeError(
                f"Invalid {name} set in {op} op; valid range is [0, {end}); got: "
                f"{', '.join([str(d) for d in dims if not 0 <= d < end])}."
            )
        if len(set(dims)) != len(dims):
            raise TypeError(f"{name} in {op} op must not repeat; got: {dims}.")
    if len(index_map) != indices.shape[-1]:
        raise TypeError(
            f"{op} op has {len(index_map)} elements in {names[2]} and the bound of dimension "
            f"index_vector_dim={rank - 1} of indices is {indices.shape[-1]}. These two numbers must be "
            "equal."
        )
    if set(dropped) & set(batching) or set(index_map) & set(batching):
        raise TypeError(
            f"{names[1]}, {names[2]} and operand_batching_dims in {op} op must be disjoint; got: "
            f"{dropped}, {index_map} and {batching}."
        )
    if len(batching) != len(batching_at) or any(shape[d] != indices.shape[i] for d, i in zip(batching, batching_at)):
        raise TypeError(
            f"operand_batching_dims and {names[3]} in {op} op must name axes of equal sizes; got "
            f"{batching} of operand shape {shape} and {batching_at} of indices shape {indices.shape}."
        )


def check_gather(shape, indices, dnums, slice_sizes):
    """Raise TypeError or ValueError when these do not describe a gather."""
    names = "offset_dims", "collapsed_slice_dims", "start_index_map", "start_indices_batching_dims"
    check_numbers("gather", names, shape, indices, dnums)
    if len(slice_sizes) != len(shape):
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={len(shape)}"
        )
    for d, (n, m) in enumerate(zip(slice_sizes, shape)):
        if not may_be_empty(m) and not 0 <= n <= m:
            raise TypeError(
                f"Slice size at index {d} in gather op is out of range, must be within [0, {m} + 1), got {n}."
            )
    for d in (*dnums.collapsed_slice_dims, *dnums.operand_batching_dims):
        if slice_sizes[d] > 1:
            raise TypeError(
                f"Gather op can only collapse slice dims with bound 1, but bound is {slice_sizes[d]} for index {d}."
            )
    kept = len(shape) - len(dnums.collapsed_slice_dims) - len(dnums.operand_batching_dims)
    if kept != len(dnums.offset_dims):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension or "
            f"explicitly collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, {dnums}."
        )
    rank = indices.ndim - 1 + len(dnums.offset_dims)
    if any(not 0 <= d < rank for d in dnums.offset_dims):
        raise TypeError(
            f"Offset dimensions in gather op are out of bounds; got {dnums.offset_dims}, but should have "
            f"been in [0, {rank})"
        )


def check_scatter(scatter, x, indices, updates, dnums):
    """Raise TypeError or ValueError when these do not describe a scatter."""
    if x.dtype != updates.dtype:
        raise TypeError(
            f"lax.scatter requires arguments to have the same dtypes, got {dtypes.dtype_name(x.dtype)}, "
            f"{dtypes.dtype_name(updates.dtype)}. Convert the updates with .astype(x.dtype)."
        )
    if scatter.combine is not None and x.dtype not in scatter.accepts:
        raise TypeError(f"{scatter.name} does not accept dtype {dtypes.dtype_name(x.dtype)}.")
    names = (
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "scatter_indices_batching_dims",
    )
    window, inserted, _, batching, _ = dnums
    rank = len(window) + max(indices.ndim - 1, 0)
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    check_numbers("scatter", names, x.shape, indices, dnums)
    if len(window) + len(inserted) + len(batching) != x.ndim:
        raise TypeError(
            f"Scatter op has window of size {len(window) + len(inserted) + len(batching)}; doesn't match "
            f"operand of rank {x.ndim}."
        )
    if any(not 0 <= d < rank for d in window):
        raise TypeError(f"Invalid update_window_dims set in scatter op; valid range is [0, {rank}); got: {window}.")
    for d, n in enumerate(window_sizes(x.shape, updates.shape, dnums)):
        if d not in inserted and d not in batching and n > x.shape[d]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {d}, updates bound is {n}, operand "
                f"bound is {x.shape[d]}."
            )
    outer = [i for i in range(rank) if i not in window]
    for k, i in enumerate(outer):
        if updates.shape[i] != indices.shape[k]:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
                f"corresponding dimensions of scatter indices. For scatter dimension {k}, updates bound is "
                f"{updates.shape[i]}, indices bound is {indices.shape[k]}."
            )
