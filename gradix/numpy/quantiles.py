"""Medians, quantiles and percentiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.lax.order import ranked
from gradix.numpy import reductions, row_host_implementations
from gradix.numpy.axes import axes_of, no_out
from gradix.numpy.promotion import as_operand, broadcast_to, convert, inexact_operand, number
from gradix.numpy.selection import where as choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
_F32, _INT32 = np.dtype("float32"), np.dtype("int32")


@replayed(host=row_host_implementations.quantile)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which a fraction `q` of the elements lies; NaN if an element is NaN.

    Args:
        a: an array.
        q: a fraction in [0, 1], or a vector of fractions.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        overwrite_input: only False is allowed, since arrays are immutable.
        method: what to take between two elements: 'linear', 'lower', 'higher', 'midpoint' or
            'nearest'; or 'inverted_cdf', the only method that takes weights.
        keepdims: whether the reduced axes stay, with size 1.
        weights: an array of the shape of `a`, or of its shape along `axis`, of weights.

    Returns:
        An array in a floating dtype, with an axis for the fractions if `q` is a vector, then the
        shape of `a` without the reduced axes.

    Raises:
        ValueError: `a` is complex or empty, `q` has several axes, or `method` is unknown.
        NotImplementedError: `out` is given, or weights with another method.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.quantile(jnp.arange(5.0), 0.3)
        Array(1.2, dtype=float32)
    """
    _check_options("quantile", out, overwrite_input, method, weights)
    return _quantile("quantile", a, q, axis, method, keepdims, weights=weights, skip_nan=False)


@replayed
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which a fraction `q` of the elements that are not NaN lies.

    Args:
        a: an array.
        q: a fraction in [0, 1], or a vector of fractions.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        overwrite_input: only False is allowed, since arrays are immutable.
        method: the method, as for `quantile`.
        keepdims: whether the reduced axes stay, with size 1.
        weights: the weights, as for `quantile`; only the method 'inverted_cdf' takes them.

    Returns:
        An array as `quantile` returns it; NaN where all elements are NaN.

    Raises:
        ValueError: `a` is complex or empty, `q` has several axes, or `method` is unknown.
        NotImplementedError: `out` is given, or weights with another method.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
        Array(2., dtype=float32)
    """
    _check_options("nanquantile", out, overwrite_input, method, weights)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights=weights, skip_nan=True)


@replayed(host=row_host_implementations.percentile)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The value below which `q` percent of the elements lie, the `quantile` of `q / 100`.

    Args:
        a: an array.
        q: a number from 0 to 100, or a vector of such numbers.
        axis, out, overwrite_input, method, keepdims, weights, out_sharding: as for `quantile`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.percentile(jnp.arange(5.0), 30)
        Array(1.2, dtype=float32)
    """
    if out_sharding is not None:
        return divided(percentile, out_sharding, a, q, axis, out, overwrite_input, method, keepdims, weights=weights)
    _check_options("percentile", out, overwrite_input, method, weights)
    return _quantile(
        "percentile", a, _fraction("percentile", q), axis, method, keepdims, weights=weights, skip_nan=False
    )


@replayed
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which `q` percent of the elements that are not NaN lie.

    Args:
        a: an array.
        q: a number from 0 to 100, or a vector of such numbers.
        axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.

    Returns:
        An array as `quantile` returns it; NaN where all elements are NaN.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
        Array(2., dtype=float32)
    """
    _check_options("nanpercentile", out, overwrite_input, method, weights)
    return _quantile(
        "nanpercentile", a, _fraction("nanpercentile", q), axis, method, keepdims, weights=weights, skip_nan=True
    )


@replayed(host=row_host_implementations.median)
def median(
    a: ArrayLike, axis: Axes | None = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The middle element in order, or the mean of the two middle ones; NaN if an element is NaN.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        overwrite_input: only False is allowed, since arrays are immutable.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array in a floating dtype, with the shape of `a` without the reduced axes.

    Raises:
        ValueError: `a` is complex or empty.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.median(jnp.array([3, 1, 2, 5]))
        Array(2.5, dtype=float32)
    """
    _check_options("median", out, overwrite_input)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, weights=None, skip_nan=False)


@replayed
def nanmedian(
    a: ArrayLike, axis: Axes | None = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The middle element of those that are not NaN, or the mean of the two middle ones.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        overwrite_input: only False is allowed, since arrays are immutable.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array in a floating dtype, with the shape of `a` without the reduced axes; NaN where all
        elements are NaN.

    Raises:
        ValueError: `a` is complex or empty.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nanmedian(jnp.array([3.0, jnp.nan, 2.0]))
        Array(2.5, dtype=float32)
    """
    _check_options("nanmedian", out, overwrite_input)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, weights=None, skip_nan=True)


# -- how they are computed -------------------------------------------------------------------------


def _fraction(name: str, q):
    if isinstance(q, (int, float)):
        return q / 100
    q = inexact_operand(name, as_operand(name, q, 1))
    return lax.div(q, number(100.0, q.aval.dtype))


def _check_options(name: str, out, overwrite_input, method: str = "linear", weights=None) -> None:
    """Raise for options that these functions do not have, or that exclude each other."""
    no_out(name, out)
    if overwrite_input:
        raise ValueError(f"{name}: overwrite_input must be False, as arrays are immutable. Leave it out.")
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}.")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{name}: only the method 'inverted_cdf' takes weights, got method={method!r}.")


def _quantile(name: str, a, q, axis, method: str, keepdims, *, weights, skip_nan: bool):
    x, q = _operands(name, a, q)
    axes, shape = axes_of(axis, x.aval.ndim), x.aval.shape
    w = None if weights is None else _rows(_weights(name, weights, x, axis, axes), axes)
    x = _rows(x, axes)
    if not x.aval.shape[0]:
        raise ValueError(f"{name}: the array of shape {shape} has no elements along axis={axis}.")
    picked = _inverted_cdf(x, q, w, skip_nan) if method == "inverted_cdf" else _between(x, q, method, skip_nan)
    rest = tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes])
    return lax.reshape(picked, q.aval.shape + rest)


def _operands(name: str, a, q) -> tuple[Array, Array]:
    """The array and the fractions, both floating; positions are computed with at least float32."""
    x = inexact_operand(name, a)
    if x.aval.dtype in COMPLEX:
        raise ValueError(f"{name}: a must be real, as complex numbers have no order, got dtype {x.aval.dtype}.")
    dtype = x.aval.dtype if x.aval.dtype.itemsize >= 4 else _F32
    q = number(q, dtype) if isinstance(q, (int, float)) else convert(as_operand(name, q, 1), dtype)
    if q.aval.ndim > 1:
        raise ValueError(f"{name}: q must have rank 0 or 1, got shape {q.aval.shape}.")
    return convert(x, x.aval.dtype), q


def _rows(x, axes: tuple):
    """The array as a matrix: the reduced axes become its rows, the others its columns."""
    rest = tuple([i for i in range(x.aval.ndim) if i not in axes])
    x = lax.transpose(x, axes + rest)
    n = math.prod(x.aval.shape[: len(axes)])
    return lax.reshape(x, (n, math.prod(x.aval.shape[len(axes) :])))


def _between(x, q, method: str, skip_nan: bool):
    """The elements at fractions of each sorted column, of shape (fractions, columns)."""
    n, columns = x.aval.shape
    dtype = q.aval.dtype
    q = lax.reshape(q, (q.aval.size, 1))
    nan = lax.ne(x, x)
    if skip_nan:
        last = lax.sub(reductions.sum(lax.bitwise_not(nan), 0, dtype), number(1, dtype))
        place = lax.mul(q, lax.reshape(last, (1, columns)))
    else:
        last = number(n - 1, dtype)
        place = lax.mul(q, last)
    low, high = lax.floor(place), lax.ceil(place)
    share = lax.sub(place, low)
    low, high = (
        lax.clamp(number(0, dtype), v, broadcast_to(last, v.aval.shape) if skip_nan else last) for v in (low, high)
    )
    m = q.aval.shape[0]
    # Ranks of elements and of their upper neighbours alternate.
    pairs = lax.convert_element_type(lax.concatenate([low, high], 1), _INT32)
    ranks = lax.reshape(pairs, (2 * m, low.aval.shape[1]))
    rows = lax.reshape(ranked(x, broadcast_to(ranks, (2 * m, columns))), (m, 2, columns))
    low_rows, high_rows = [lax.squeeze(lax.slice_in_dim(rows, k, k + 1, axis=1), (1,)) for k in (0, 1)]
    out = _mixed(low_rows, high_rows, convert(share, x.aval.dtype), method)
    gone = reductions.all(nan, 0) if skip_nan else _any(nan)
    return choose(lax.reshape(gone, (1, columns)), number(math.nan, x.aval.dtype), out)


def _any(flags):
    """Whether an element of each column is true; XLA:CPU reduces float32 faster than booleans."""
    return lax.gt(lax.reduce_max(convert(flags, _F32), (0,)), number(0, _F32))


def _take_rows(x, rows):
    """`x[rows[i, j], j]`; `rows` may have one column that stands for all."""
    if rows.aval.shape[1] == 1:
        return x[lax.reshape(rows, (rows.aval.shape[0],))]
    return x[rows, lax.broadcasted_iota(_INT32, (1, x.aval.shape[1]), 1)]


def _mixed(low, high, share, method: str):
    dtype = low.aval.dtype
    if method == "linear":
        rest = lax.sub(number(1.0, dtype), share)
        return lax.add(lax.mul(low, rest), lax.mul(high, share))
    if method == "lower":
        return low
    if method == "higher":
        return high
    if method == "midpoint":
        return lax.mul(lax.add(low, high), number(0.5, dtype))
    return choose(lax.le(share, number(0.5, dtype)), low, high)


def _weights(name: str, weights, x, axis, axes: tuple):
    w = as_operand(name, weights)
    shape, own = x.aval.shape, w.aval.shape
    if own != shape:
        if axis is None or own != tuple([shape[i] for i in axes]):
            raise ValueError(
                f"{name}: weights must have the shape of a, {shape}, or its shape along axis={axis}, got {own}."
            )
        order = tuple(sorted(range(len(axes)), key=lambda i: axes[i]))
        w = lax.broadcast_in_dim(lax.transpose(w, order), shape, tuple(sorted(axes)))
    return convert(w, x.aval.dtype if w.aval.dtype not in INEXACT else dtypes.to_inexact_dtype(w.aval.dtype))


def _inverted_cdf(x, q, w, skip_nan: bool):
    """The first element of each sorted column at which the running weight reaches the fraction."""
    n, columns = x.aval.shape
    nan = lax.ne(x, x)
    w = lax.full((n, columns), number(1.0, q.aval.dtype)) if w is None else convert(w, q.aval.dtype)
    if skip_nan:
        w = choose(nan, number(0.0, w.aval.dtype), w)
    x, w = lax.sort((x, w), dimension=0, num_keys=1)
    running = lax.cumsum(w, axis=0)
    total = lax.slice_in_dim(running, n - 1, n, axis=0)
    wanted = lax.mul(lax.reshape(q, (q.aval.size, 1, 1)), lax.reshape(total, (1, 1, columns)))
    before = lax.lt(lax.reshape(running, (1, n, columns)), wanted)
    empty = lax.le(lax.reshape(running, (1, n, columns)), number(0.0, running.aval.dtype))
    rows = reductions.sum(lax.bitwise_or(before, empty), 1, _INT32)
    rows = lax.min(rows, number(n - 1, _INT32))
    out = _take_rows(x, rows) if columns > 1 else _take_rows(x, lax.reshape(rows, (rows.aval.shape[0], 1)))
    gone = reductions.all(nan, 0) if skip_nan else reductions.any(nan, 0)
    return choose(lax.reshape(gone, (1, columns)), number(math.nan, x.aval.dtype), out)
