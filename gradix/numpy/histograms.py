"""Counts of elements: histograms, bincount, digitize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._api.mapping.row_sums import summed_by_rows
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.dimensions.expression import may_be_empty
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix.numpy import extremes, reductions
from gradix.numpy.axes import known_int
from gradix.numpy.calculus import diff
from gradix.numpy.conversion import asarray
from gradix.numpy.logic import greater_equal
from gradix.numpy.promotion import as_operand, convert, inexact_operand, number, promote_dtypes_inexact
from gradix.numpy.ranges import linspace
from gradix.numpy.selection import where as choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """How often each of the numbers 0, 1, 2, … occurs in a vector.

    Args:
        x: a vector of integers or booleans; negative integers count as zero.
        weights: a vector of the length of `x`, which gives each element a weight; 1 by default.
        minlength: the least length of the result.
        length: the length of the result; larger numbers are left out. It is needed if `x` is
            traced.
        out_sharding: the sharding of the result.

    Returns:
        A vector of the default integer dtype, or of the dtype of `weights`.

    Raises:
        TypeError: `x` holds neither integers nor booleans.
        ValueError: `x` is not a vector, or `weights` has another shape.
        ConcretizationTypeError: `x` is traced and `length` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.bincount(jnp.array([1, 1, 3]))
        Array([0, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return divided(bincount, out_sharding, x, weights, minlength, length=length, leaves_sums=_counts_left)
    x = as_operand("bincount", x)
    if x.aval.dtype == bool:
        x = lax.convert_element_type(x, "int32")
    if x.aval.dtype not in dtypes.INTEGER:
        raise TypeError(f"bincount: x must hold integers, got dtype {x.aval.dtype}. Convert it by .astype(int).")
    if x.aval.ndim != 1:
        raise ValueError(f"bincount: x must be a vector, got shape {x.aval.shape}. Flatten it with jnp.ravel(x).")
    if length is None:
        if is_unknown(x):
            raise ConcretizationTypeError(
                x, "The values of x determine the length of the result of jnp.bincount. Pass length=, a static integer."
            )
        minlength = known_int(minlength, "minlength argument of jnp.bincount")
        least = int(lax.reduce_max(x, (0,)) if isinstance(x, Tracer) else np.asarray(x).max()) + 1 if x.aval.size else 0
        length = least if least > minlength else minlength
    length = known_int(length, "length argument of jnp.bincount")
    if weights is None:
        one = number(1, dtypes.python_scalar_dtype(int))
        counts = lax.full((length,), number(0, one.aval.dtype))
    else:
        one = as_operand("bincount", weights, 1)
        if one.aval.shape != x.aval.shape:
            raise ValueError(
                f"bincount: weights must have the shape of x, got shapes {one.aval.shape} and {x.aval.shape}."
            )
        counts = lax.full((length,), number(0, one.aval.dtype))
    return counts.at[lax.max(x, number(0, x.aval.dtype))].add(one, mode="drop")


@replayed
def _counts_left(sharding, x, weights, minlength, *, length) -> Array:
    """The counts, unreduced over the mesh axes over which `x` is divided."""
    if length is None:
        length = bincount(lax.stop_gradient(x), minlength=minlength).shape[0]
    given = [as_operand("bincount", v, i) for i, v in enumerate((x, weights)) if v is not None]
    return summed_by_rows(lambda x, w=None: bincount(x, w, length=length), sharding, *given)


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin into which each element falls.

    Args:
        x: an array of elements.
        bins: a vector of edges, increasing or decreasing.
        right: whether bins hold their right edges instead of their left ones.
        method: the method of the search, as for `searchsorted`.

    Returns:
        An integer array of the shape of `x`: 0 before the first edge, `len(bins)` after the last.

    Raises:
        ValueError: `bins` is not a vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.digitize(jnp.array([0.5, 1.5]), jnp.array([0, 1, 2]))
        Array([1, 2], dtype=int32)
    """
    bins = as_operand("digitize", bins, 1)
    x = as_operand("digitize", x)
    if bins.aval.ndim != 1:
        raise ValueError(f"digitize: bins must be a vector of edges, got shape {bins.aval.shape}.")
    n = bins.aval.shape[0]
    if not n:
        return lax.full(x.aval.shape, number(0, dtypes.python_scalar_dtype(int)))
    side: str = "left" if right else "right"
    options: dict[str, Any] = {} if method is None else {"method": method}
    rises = greater_equal(bins[-1], bins[0])
    found = choose(rises, bins, lax.rev(bins, (0,))).searchsorted(x, side=side, **options)
    return choose(rises, found, lax.sub(number(n, found.aval.dtype), found))


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike | Sequence[float] | str = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of the bins of `histogram`.

    Args:
        a: an array of elements.
        bins: the number of bins, or a vector of their edges.
        range: a pair of the first and the last edge; by default the smallest and the largest
            element.
        weights: it has no effect.

    Returns:
        A vector of the edges, one more than bins, in a floating dtype.

    Raises:
        ValueError: the number of bins is negative, or `range` is not a pair.
        NotImplementedError: `bins` is a string.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=2)
        Array([0., 2., 4.], dtype=float32)
    """
    del weights
    if isinstance(bins, str):
        raise NotImplementedError(
            f"histogram: bins must be a number or a vector of edges, got {bins!r}, for which the "
            "number of bins depends on the values. Take the edges of np.histogram_bin_edges."
        )
    x = inexact_operand("histogram_bin_edges", a)
    dtype = x.aval.dtype
    bins = as_array(bins) if type(bins) is int else asarray(bins)
    if bins.aval.ndim == 1:
        return convert(bins, dtype)
    if range is None:
        ends = none = [number(0, dtype), number(1, dtype)]
        if x.aval.size:
            ends = [extremes.min(x), extremes.max(x)]
        if may_be_empty(x.aval.size):
            is_empty = lax.eq(number(x.aval.size, np.dtype("int32")), np.int32(0))
            ends = [choose(is_empty, n, end) for n, end in zip(none, ends)]
    else:
        ends = [convert(v, dtype) for v in asarray(range)] if len(range) == 2 else _bad_range(range)
    low, high = ends
    count = known_int(bins, "bins argument of histogram_bin_edges")
    if count < 0:
        raise ValueError(f"histogram: bins must not be negative, got {count}.")
    flat = lax.eq(low, high)
    half = number(0.5, dtype)
    low, high = choose(flat, lax.sub(low, half), low), choose(flat, lax.add(high, half), high)
    return linspace(low, high, count + 1, dtype=dtype)


def _bad_range(range):
    raise ValueError(f"histogram: range must be None or a pair (first edge, last edge), got {range}.")


def histogram(
    a: ArrayLike,
    bins: ArrayLike | Sequence[float] | str = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """How many elements fall into each bin, and the edges of the bins.

    Args:
        a: an array of elements.
        bins: the number of bins, or a vector of their edges.
        range: a pair of the first and the last edge; by default the smallest and the largest
            element.
        weights: an array of the shape of `a`, which gives each element a weight; 1 by default.
        density: whether to divide the counts so that their integral over the bins is 1.

    Returns:
        A vector of the counts, and a vector of the edges, one more than bins; both in a floating
        dtype. All bins but the last one leave out their right edge.

    Raises:
        ValueError: `weights` and `a` differ in shape.
        NotImplementedError: `bins` is a string.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.histogram(jnp.array([1.0, 2.0, 1.0]), bins=2)[0]
        Array([2., 1.], dtype=float32)
    """
    if weights is None:
        x = inexact_operand("histogram", a)
        w = lax.full(x.aval.shape, number(1, x.aval.dtype))
    else:
        if np.shape(a) != np.shape(weights):
            raise ValueError(
                f"histogram: weights must have the shape of a, got shapes {np.shape(weights)} and {np.shape(a)}."
            )
        x, w = promote_dtypes_inexact("histogram", a, weights)
    edges = histogram_bin_edges(x, bins, range, w)
    x, w = lax.reshape(x, (x.aval.size,)), lax.reshape(w, (w.aval.size,))
    number_of = _bin_numbers(x, edges)
    counts = lax.full((edges.aval.shape[0],), number(0, w.aval.dtype)).at[number_of].add(w)[1:]
    if density:
        widths = diff(edges)
        counts = lax.div(lax.div(counts, convert(widths, counts.aval.dtype)), reductions.sum(counts))
    return counts, edges


def _bin_numbers(x, edges):
    """The bins of elements, from 1 on; 0 before the first edge, `len(edges)` after the last."""
    n = edges.aval.shape[0]
    found = edges.searchsorted(x, side="right")
    return choose(lax.eq(x, edges[-1]), number(n - 1, found.aval.dtype), found)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points of the plane fall into each cell of a grid, and the edges of the cells.

    Args:
        x: a vector of first coordinates.
        y: a vector of second coordinates.
        bins: the number of bins for both axes, or a vector of their edges; or a pair of these, one
            for each axis.
        range: a pair of the first and the last edge for each axis.
        weights: a vector that gives each point a weight; 1 by default.
        density: whether to divide the counts so that their integral over the cells is 1.

    Returns:
        A matrix of the counts, the edges along the first coordinate, and those along the second.

    Raises:
        ValueError: `x` and `y` are not vectors of one length.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.histogram2d(jnp.arange(3.0), jnp.arange(3.0), bins=2)[0]
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x, y = as_operand("histogram2d", x), as_operand("histogram2d", y, 1)
    if x.aval.ndim != 1 or x.aval.shape != y.aval.shape:
        raise ValueError(
            "histogram2d: x and y must be vectors of one length, got shapes "
            f"{x.aval.shape} and {y.aval.shape}. Flatten arrays of more axes with ravel()."
        )
    count = len(bins) if isinstance(bins, (list, tuple)) or np.ndim(bins) else 1
    if count != 1 and count != 2:
        edges = asarray(bins)
        bins = [edges, edges]
    x, y = promote_dtypes_inexact("histogram2d", x, y)
    n = x.aval.size
    sample = lax.concatenate([lax.reshape(v, (n, 1)) for v in (x, y)], 1)
    counts, (first, second) = histogramdd(sample, bins, range, weights, density)
    return counts, first, second


def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points of a space fall into each cell of a grid, and the edges of the cells.

    Args:
        sample: a matrix with a point in each row, and so with a column for each axis.
        bins: the number of bins along each axis; or a sequence with an entry for each axis, its
            number of bins or a vector of their edges.
        range: a sequence with an entry for each axis, None or a pair of its first and last edge.
        weights: a vector that gives each point a weight; 1 by default.
        density: whether to divide the counts so that their integral over the cells is 1.

    Returns:
        An array of the counts with as many axes as `sample` has columns, and a list of the edges
        along each axis.

    Raises:
        ValueError: `sample` is not a matrix, or `bins` or `range` do not fit its columns.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.histogramdd(jnp.ones((3, 2)), bins=1)[0]
        Array([[3]], dtype=int32)
    """
    x = inexact_operand("histogramdd", sample)
    if x.aval.ndim != 2:
        raise ValueError(f"histogramdd: sample must be a matrix with a point in each row, got shape {x.aval.shape}.")
    n, d = x.aval.shape
    if range is not None and len(range) != d:
        raise ValueError(
            f"histogramdd: range must have an entry for each of the {d} columns of sample, got {len(range)}."
        )
    try:
        per_axis = list(bins) if len(bins) == d else None
    except TypeError:
        per_axis = [bins] * d
    if per_axis is None:
        raise ValueError(
            f"histogramdd: bins must have an entry for each of the {d} columns of sample, got {len(bins)}."
        )
    columns = [lax.squeeze(c, (1,)) for c in lax.split(x, (1,) * d, axis=1)]
    ranges = [None] * d if range is None else range
    edges = [histogram_bin_edges(c, b, r) for c, b, r in zip(columns, per_axis, ranges)]
    cells, counts = _cell_counts(columns, edges, n, weights)
    if density:
        counts = convert(counts, x.aval.dtype)
        counts = lax.div(counts, reductions.sum(counts))
        for i, e in enumerate(edges):
            counts = lax.div(counts, lax.broadcast_in_dim(diff(e), cells, (i,)))
    return counts, edges


def _cell_counts(columns, edges, n: int, weights):
    """The shape of the grid, and the counts of the points inside it."""
    cells = tuple([e.aval.shape[0] - 1 for e in edges])
    bins = [_bin_numbers(c, e) for c, e in zip(columns, edges)]
    place = tuple([lax.sub(b, number(1, b.aval.dtype)) for b in bins])
    w = number(1, dtypes.python_scalar_dtype(int)) if weights is None else as_operand("histogramdd", weights)
    inside = None
    for p, size in zip(place, cells):
        ok = lax.bitwise_and(lax.ge(p, number(0, p.aval.dtype)), lax.lt(p, number(size, p.aval.dtype)))
        inside = ok if inside is None else lax.bitwise_and(inside, ok)
    w = choose(inside, w, number(0, w.aval.dtype))
    return cells, lax.full(cells, number(0, w.aval.dtype)).at[place].add(w, mode="drop")
