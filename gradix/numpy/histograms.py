"""Counting: histograms, bincount, digitize."""

from __future__ import annotations

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix.numpy import extremes, reductions, row_host_implementations
from gradix.numpy.axes import known_int
from gradix.numpy.calculus import diff
from gradix.numpy.conversion import asarray
from gradix.numpy.logic import greater_equal
from gradix.numpy.promotion import (
    as_operand,
    convert,
    inexact_operand,
    number,
    promote_dtypes_inexact,
)
from gradix.numpy.ranges import linspace
from gradix.numpy.selection import where as choose


def bincount(
    x, weights=None, minlength: int = 0, *, length: int | None = None, out_sharding=None
) -> Array:
    """How often each of the numbers 0, 1, 2, … occurs.

    Args:
        x: a vector of integers; negative ones count as zero.
        weights: count each element with its weight.
        minlength: the least length of the result.
        length: the length of the result; larger numbers are left out. Needed where `x` is traced.
        out_sharding: how the result is to be divided.

    Raises:
        TypeError: `x` holds no integers.
        ConcretizationTypeError: `x` is traced and `length` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.bincount(jnp.array([1, 1, 3]))
        Array([0, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return divided(bincount, out_sharding, x, weights, minlength, length=length)
    del out_sharding
    x = as_operand("bincount", x)
    if x.aval.dtype == bool:
        x = lax.convert_element_type(x, "int32")
    if x.aval.dtype not in dtypes.INTEGER:
        raise TypeError(f"x argument to bincount must have an integer type; got {x.aval.dtype}")
    if x.aval.ndim != 1:
        raise ValueError(
            f"only 1-dimensional input supported in bincount, got shape {x.aval.shape}."
        )
    if length is None:
        if is_unknown(x):
            raise ConcretizationTypeError(
                x,
                "The error occurred because of argument 'x' of jnp.bincount. To avoid "
                "this error, pass a static `length` argument.",
            )
        minlength = known_int(minlength, "minlength argument of jnp.bincount")
        least = (
            int(lax.reduce_max(x, (0,)) if isinstance(x, Tracer) else np.asarray(x).max()) + 1
            if x.aval.size
            else 0
        )
        length = least if least > minlength else minlength
    length = known_int(length, "length argument of jnp.bincount")
    if weights is None:
        one = number(1, dtypes.python_scalar_dtype(int))
        counts = lax.full((length,), number(0, one.aval.dtype))
    else:
        one = as_operand("bincount", weights, 1)
        if one.aval.shape != x.aval.shape:
            raise ValueError(
                "shape of weights must match shape of x in bincount, got "
                f"{one.aval.shape} and {x.aval.shape}."
            )
        counts = lax.full((length,), number(0, one.aval.dtype))
    return counts.at[lax.max(x, number(0, x.aval.dtype))].add(one, mode="drop")


@replayed(host=row_host_implementations.digitize)
def digitize(x, bins, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin each element falls into.

    Args:
        x: the elements.
        bins: the edges, increasing or decreasing.
        right: whether a bin holds its right edge, rather than its left one.
        method: how to search, as for `searchsorted`.

    Raises:
        ValueError: `bins` is no vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.digitize(jnp.array([0.5, 1.5]), jnp.array([0, 1, 2]))
        Array([1, 2], dtype=int32)
    """
    bins = as_operand("digitize", bins, 1)
    x = as_operand("digitize", x)
    if bins.aval.ndim != 1:
        raise ValueError(
            f"digitize: bins must be a 1-dimensional array; got bins of shape {bins.aval.shape}."
        )
    n = bins.aval.shape[0]
    if not n:
        return lax.full(x.aval.shape, number(0, np.dtype("int32")))
    side, options = ("left" if right else "right"), {} if method is None else {"method": method}
    rises = greater_equal(bins[-1], bins[0])
    found = choose(rises, bins, lax.rev(bins, (0,))).searchsorted(x, side=side, **options)
    return choose(rises, found, lax.sub(number(n, found.aval.dtype), found))


def histogram_bin_edges(a, bins=10, range=None, weights=None) -> Array:
    """The edges of the bins of `histogram`.

    Args:
        a: the elements.
        bins: how many bins, or their edges.
        range: the first and last edge; by default the smallest and largest element.
        weights: accepted for compatibility.

    Raises:
        ValueError: the number of bins is negative.
        NotImplementedError: `bins` is a string.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=2)
        Array([0., 2., 4.], dtype=float32)
    """
    del weights
    if isinstance(bins, str):
        raise NotImplementedError(
            f"string values for `bins` not implemented, got {bins!r}: the number of bins would "
            "depend on the values. Compute it first, e.g. with np.histogram_bin_edges."
        )
    x = inexact_operand("histogram_bin_edges", a)
    dtype = x.aval.dtype
    bins = as_array(bins) if type(bins) is int else asarray(bins)
    if bins.aval.ndim == 1:
        return convert(bins, dtype)
    if range is None:
        ends = (
            [extremes.min(x), extremes.max(x)]
            if x.aval.size
            else [number(0, dtype), number(1, dtype)]
        )
    else:
        ends = [convert(v, dtype) for v in asarray(range)] if len(range) == 2 else _bad_range(range)
    low, high = ends
    count = known_int(bins, "bins argument of histogram_bin_edges")
    if count < 0:
        raise ValueError(
            f"bins must not be negative: it is how many there are, or their edges; got {count}."
        )
    flat = lax.eq(low, high)
    half = number(0.5, dtype)
    low, high = choose(flat, lax.sub(low, half), low), choose(flat, lax.add(high, half), high)
    return linspace(low, high, count + 1, dtype=dtype)


def _bad_range(range):
    raise ValueError(
        f"`range` must be either None or a sequence of scalars (low, high), got {range}"
    )


def histogram(
    a, bins=10, range=None, weights=None, density: bool | None = None
) -> tuple[Array, Array]:
    """How many elements fall into each bin.

    Args:
        a: the elements.
        bins: how many bins, or their edges.
        range: the first and last edge; by default the smallest and largest element.
        weights: count each element with its weight.
        density: divide so that the integral over the bins is 1.

    Returns:
        The counts, and the edges: one more than bins. All bins but the last leave out their right
            edge.

    Raises:
        ValueError: `weights` and `a` differ in shape.

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
                f"weights should have the same shape as a, got {np.shape(weights)} and {np.shape(a)}."
            )
        x, w = promote_dtypes_inexact("histogram", a, weights)
    edges = histogram_bin_edges(x, bins, range, w)
    x, w = lax.reshape(x, (x.aval.size,)), lax.reshape(w, (w.aval.size,))
    number_of = _bin_numbers(x, edges)
    counts = lax.full((edges.aval.shape[0],), number(0, w.aval.dtype)).at[number_of].add(w)[1:]
    if density:
        widths = diff(edges)
        counts = lax.div(
            lax.div(counts, convert(widths, counts.aval.dtype)), reductions.sum(counts)
        )
    return counts, edges


def _bin_numbers(x, edges):
    """1 for the first bin, and so on; elements before the edges get 0, those after them the number past the last."""
    n = edges.aval.shape[0]
    found = edges.searchsorted(x, side="right")
    return choose(lax.eq(x, edges[-1]), number(n - 1, found.aval.dtype), found)


def histogram2d(
    x, y, bins=10, range=None, weights=None, density: bool | None = None
) -> tuple[Array, Array, Array]:
    """How many points of the plane fall into each cell.

    Args:
        x: the first coordinates.
        y: the second coordinates.
        bins: how many bins for each axis, or their edges, or a pair of such.
        range: pairs of first and last edges.
        weights: count each point with its weight.
        density: divide so that the integral over the cells is 1.

    Returns:
        The counts, the edges along the first coordinate, and those along the second.

    Raises:
        ValueError: `x` and `y` are no vectors of one length.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.histogram2d(jnp.arange(3.0), jnp.arange(3.0), bins=2)[0]
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x, y = as_operand("histogram2d", x), as_operand("histogram2d", y, 1)
    if x.aval.ndim != 1 or x.aval.shape != y.aval.shape:
        raise ValueError(
            "histogram2d takes the coordinates of points as two rows of one length, got shapes "
            f"{x.aval.shape} and {y.aval.shape}. Use ravel() on arrays of more axes."
        )
    count = 1 if np.ndim(bins) == 0 and not isinstance(bins, (list, tuple)) else len(bins)
    if count != 1 and count != 2:
        edges = asarray(bins)
        bins = [edges, edges]
    x, y = promote_dtypes_inexact("histogram2d", x, y)
    n = x.aval.size
    sample = lax.concatenate([lax.reshape(v, (n, 1)) for v in (x, y)], 1)
    counts, (first, second) = histogramdd(sample, bins, range, weights, density)
    return counts, first, second


def histogramdd(sample, bins=10, range=None, weights=None, density: bool | None = None):
    """How many points of a space fall into each cell.

    Args:
        sample: the points, one in each row.
        bins: how many bins for each axis, or their edges, one entry for each axis.
        range: pairs of first and last edges, or None, one for each axis.
        weights: count each point with its weight.
        density: divide so that the integral over the cells is 1.

    Returns:
        The counts, and a list of the edges along each axis.

    Raises:
        ValueError: `sample` is no matrix, or there are not as many bins or ranges as axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.histogramdd(jnp.ones((3, 2)), bins=1)[0]
        Array([[3]], dtype=int32)
    """
    x = inexact_operand("histogramdd", sample)
    if x.aval.ndim != 2:
        raise ValueError(
            f"input samples must be of shape (points, axes), got shape {x.aval.shape}."
        )
    n, d = x.aval.shape
    if range is not None and len(range) != d:
        raise ValueError(f"For sample.shape=(N, D), len(range) must be D={d}, got {len(range)}.")
    try:
        per_axis = list(bins) if len(bins) == d else None
    except TypeError:
        per_axis = [bins] * d
    if per_axis is None:
        raise ValueError(f"should be a bin for each dimension: got {len(bins)} for {d} axes.")
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
    """The shape of the grid, and the counts of points inside it."""
    cells = tuple([e.aval.shape[0] - 1 for e in edges])
    place = tuple(
        [lax.sub(_bin_numbers(c, e), number(1, np.dtype("int32"))) for c, e in zip(columns, edges)]
    )
    w = (
        number(1, dtypes.python_scalar_dtype(int))
        if weights is None
        else as_operand("histogramdd", weights)
    )
    inside = None
    for p, size in zip(place, cells):
        ok = lax.bitwise_and(
            lax.ge(p, number(0, p.aval.dtype)), lax.lt(p, number(size, p.aval.dtype))
        )
        inside = ok if inside is None else lax.bitwise_and(inside, ok)
    w = choose(inside, w, number(0, w.aval.dtype))
    return cells, lax.full(cells, number(0, w.aval.dtype)).at[place].add(w, mode="drop")
