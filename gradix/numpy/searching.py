"""Functions that find indices: nonzero and its like, searchsorted, and raveled indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, wrap_host
from gradix._core.dimensions.expression import as_dim, is_known_at_most, is_symbolic_dim
from gradix._core.dtypes import COMPLEX, INEXACT, INTEGER
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix.numpy.bisection import count_by_halving
from gradix.numpy.division import remainder
from gradix.numpy.indexing import take_index
from gradix.numpy.masks import counted_places, decided_places, decides_sizes, first_places, index_dtype, unravelled
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number, promote_dtypes
from gradix.numpy.selection import truth, where
from gradix.numpy.shapes import ravel

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike

_INT = np.dtype("int32")
_METHODS = ("compare_all", "scan", "scan_unrolled", "sort")


# -- nonzero ---------------------------------------------------------------------------------------


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> tuple:
    """The indices of the elements other than zero, as a tuple of vectors, one for each axis.

    Args:
        a: an array with at least one axis.
        size: how many indices to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the index to fill in, or a tuple with one for each axis; 0 by default.

    Returns:
        Vectors of the default integer dtype.

    Raises:
        ValueError: `a` is a scalar, or `fill_value` does not fit its axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nonzero(jnp.array([0, 3, 0, 4]))
        (Array([1, 3], dtype=int32),)
    """
    mask = truth("nonzero", a)
    if not mask.aval.ndim:
        raise ValueError("nonzero: a must have at least one axis, got a scalar. Write jnp.atleast_1d(a).")
    dtype = dtypes.places_dtype("nonzero", mask.aval.size)
    if size is None and isinstance(mask, Tracer) and mask._decides:
        return tuple(decided_places(mask))
    if size is None and decides_sizes(mask):
        return tuple(counted_places(mask))
    if size is None:
        return tuple([wrap_host(i.astype(dtype)) for i in np.nonzero(_known(mask))])
    fills = _fills(fill_value, mask.aval.ndim)
    if size == 0 or not mask.aval.size:
        return tuple([lax.full((size,), number(0, dtype) if mask.aval.size else f) for f in fills])
    places, there = first_places(ravel(mask), size)
    out = unravelled(places, mask.aval.shape)
    return tuple([where(there, i, f) for i, f in zip(out, fills)])


def _known(mask) -> np.ndarray:
    if isinstance(mask, Tracer):
        raise ConcretizationTypeError(
            mask,
            "The values of the array determine the length of the result of jnp.nonzero. Pass "
            "size=: jnp.nonzero(x, size=n, fill_value=0). jnp.where(condition, x, y) with three "
            "arguments needs no size.",
        )
    return mask.host if isinstance(mask, ArrayImpl) else np.asarray(mask)


def _fills(fill_value, ndim: int) -> list:
    dtype = index_dtype()
    if isinstance(fill_value, tuple):
        if len(fill_value) != ndim:
            raise ValueError(f"fill_value must be a scalar or a tuple of length {ndim}, got {fill_value}.")
        return [_fill(as_operand("nonzero", f), dtype) for f in fill_value]
    fill = as_operand("nonzero", 0 if fill_value is None else fill_value)
    if fill.aval.ndim:
        raise ValueError(f"fill_value must be a scalar or a tuple of length {ndim}, got {fill_value}.")
    return [_fill(fill, dtype)] * ndim


def _fill(value, dtype):
    """The value to fill in, as an index; a floating one stays so, and so do the results."""
    return value if value.aval.dtype in dtypes.INEXACT else convert(value, dtype)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The indices of the elements other than zero in the array taken as one row, as a vector.

    Args:
        a: an array of any shape.
        size: how many indices to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the index to fill in; 0 by default.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.flatnonzero(jnp.array([[0, 3], [0, 4]]))
        Array([1, 3], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The indices of the elements other than zero, as a matrix with a row for each element.

    Args:
        a: an array of any shape.
        size: how many rows to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the index to fill in, or one for each axis; 0 by default.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.argwhere(jnp.array([[0, 3], [0, 4]]))
        Array([[0, 1],
               [1, 1]], dtype=int32)
    """
    x = as_operand("argwhere", a)
    if not x.aval.ndim:
        count = len(nonzero(lax.reshape(x, (1,)), size=size)[0])
        return lax.full((count, 0), number(0, index_dtype()))
    fills = fill_value
    if isinstance(fill_value, Array) and fill_value.aval.ndim:
        fills = tuple(lax.unstack(fill_value, 0))
    return lax.stack(list(nonzero(x, size=size, fill_value=fills)), 1)


# -- searchsorted ----------------------------------------------------------------------------------


@replayed
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """The indices at which values can be inserted into a sorted vector so that it stays sorted.

    Args:
        a: a sorted vector, in which NaN comes last.
        v: an array of values.
        side: "left" for the place before equal elements, "right" for the place after them.
        sorter: the indices that sort `a`, if it is not sorted.
        method: "scan" and "scan_unrolled" for bisection, "compare_all" to compare all pairs, "sort"
            to sort both arrays together.

    Returns:
        An array of default integers of the shape of `v`.

    Raises:
        ValueError: `a` is not a vector, or `side` or `method` is unknown.
        OverflowError: `a` has more elements than default integers can count.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), 2, side="right")
        Array(3, dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}.")
    if method not in _METHODS:
        raise ValueError(f"searchsorted: method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}.")
    x, v = promote_dtypes("searchsorted", a, v)
    if x.aval.ndim != 1:
        raise ValueError(f"searchsorted: a must be a vector, got shape {x.aval.shape}.")
    n = x.aval.shape[0]
    own = dtypes.places_dtype("searchsorted", n + 1 if type(n) is int else n)
    if sorter is not None:
        x = take_index(x, as_operand("searchsorted", sorter))
    return convert(_places(x, v, side, method), own)


def _places(x, v, side: str, method: str):
    n = x.aval.shape[0]
    if not n:
        return lax.full(v.aval.shape, number(0, _INT))
    goes_before = _before if side == "left" else _not_after
    if method == "compare_all" or is_known_at_most(n, 16):
        return _count_all(x, v, goes_before)
    # Bisection needs a number of steps that depends on the size, which must be known.
    if method == "sort" or type(n) is not int:
        return _count_by_sorting(x, v, side)
    return count_by_halving(x, v, goes_before, _INT)


def _before(x, v):
    """`x < v`, elementwise, with NaN last; complex numbers by real, then by imaginary part.

    Those with NaN in the imaginary part come after all others, and those with NaN in the real part
    after these, as NumPy has them.
    """
    if x.aval.dtype in COMPLEX:
        parts = [(f(x), f(v)) for f in (lax.real, lax.imag)]
        keys = [*[(lax.ne(a, a), lax.ne(b, b)) for a, b in parts], *parts]
        found = _before(*keys[-1])
        for a, b in keys[-2::-1]:
            same = lax.bitwise_not(lax.bitwise_or(_before(a, b), _before(b, a)))
            found = lax.bitwise_or(_before(a, b), lax.bitwise_and(same, found))
        return found
    less = lax.lt(x, v)
    if x.aval.dtype not in INEXACT:
        return less
    return lax.bitwise_or(less, lax.bitwise_and(lax.eq(x, x), lax.ne(v, v)))


def _not_after(x, v):
    return lax.bitwise_not(_before(v, x))


def _count_all(x, v, goes_before):
    shape = (*v.aval.shape, x.aval.shape[0])
    hits = goes_before(
        lax.broadcast_in_dim(x, shape, (len(shape) - 1,)), lax.broadcast_in_dim(v, shape, range(len(shape) - 1))
    )
    return lax.reduce_sum(convert(hits, _INT), (len(shape) - 1,))


def _count_by_sorting(x, v, side: str):
    flat = ravel(v)
    n, m = x.aval.shape[0], flat.aval.shape[0]
    first, second = (flat, x) if side == "left" else (x, flat)
    both = lax.concatenate([first, second], 0)
    order = lax.sort((both, lax.iota(_INT, n + m)), num_keys=1)[1]
    rank = lax.full((n + m,), number(0, _INT)).at[order].set(lax.iota(_INT, n + m), unique_indices=True)
    start = 0 if side == "left" else n
    own = lax.slice(rank, (start,), (start + m,))
    among = lax.sort((flat, lax.iota(_INT, m)), num_keys=1)[1]
    before = lax.full((m,), number(0, _INT)).at[among].set(lax.iota(_INT, m), unique_indices=True)
    return lax.reshape(lax.sub(own, before), v.aval.shape)


# -- raveled indices -------------------------------------------------------------------------------


def unravel_index(indices: ArrayLike, shape: int | Sequence[int] | Array | np.ndarray) -> tuple:
    """The indices along each axis of an array of `shape`, for indices into it as one row.

    Returns:
        A tuple of integer arrays of the shape and dtype of `indices`, one for each axis. Indices
        out of bounds are clipped.

    Raises:
        TypeError: the indices are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unravel_index(jnp.array(5), (2, 3))
        (Array(1, dtype=int32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    i = as_operand("unravel_index", indices)
    given: Any = shape
    sizes = (
        tuple([as_dim(n) for n in given]) if isinstance(given, (tuple, list)) or np.ndim(given) else (as_dim(given),)
    )
    if i.aval.dtype not in INTEGER:
        raise TypeError(f"unravel_index: indices must be integers, got dtype {i.aval.dtype}.")
    total, weak = prod(sizes), i.aval.weak_type
    i = lax._wide_index(i, total)
    i = where(lax.lt(i, number(0, i.aval.dtype)), i + total, i)
    i = lax.max(lax.min(i, number(total - 1, i.aval.dtype)), number(0, i.aval.dtype))
    return tuple([convert(v, v.aval.dtype, weak) for v in unravelled(i, sizes)])


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices into an array taken as one row, for indices along each of its axes.

    Args:
        multi_index: a sequence of integer arrays, one for each axis.
        dims: the shape of the array.
        mode: how to treat indices out of bounds: "raise" (not under a transformation), "wrap",
            "clip", or "ignore", which takes them as they are.
        order: "C" if the last axis varies fastest, "F" if the first does.
        dtype: an integer dtype for the result; by default that of the indices, or a wider
            one if it does not hold the last index.

    Returns:
        An integer array of the broadcast shape of the indices.

    Raises:
        ValueError: an index is out of bounds, the lengths differ, or `mode` or `order` is unknown.
        TypeError: the indices are not integers.
        ConcretizationTypeError: an index is traced, and `mode` is "raise".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ravel_multi_index((1, 2), (2, 3))
        Array(5, dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise ValueError(
            "ravel_multi_index: multi_index must have an array for each axis, got "
            f"{len(multi_index)} arrays for dims={dims}."
        )
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(f"ravel_multi_index: mode must be 'raise', 'wrap', 'clip' or 'ignore', got {mode!r}.")
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}.")
    parts = promote_dtypes("ravel_multi_index", *multi_index)
    if parts[0].aval.dtype not in INTEGER:
        raise TypeError(f"ravel_multi_index: multi_index must hold integers, got dtype {parts[0].aval.dtype}.")
    given, last = parts[0].aval.dtype, prod(dims) - 1
    parts = [lax._wide_index(p, last + 1) for p in parts]
    if mode == "raise":
        _check_inside(parts, dims)
    elif mode == "clip":
        parts = [lax.max(lax.min(p, number(n - 1, p.aval.dtype)), number(0, p.aval.dtype)) for p, n in zip(parts, dims)]
    elif mode == "wrap":
        parts = [remainder(p, number(n, p.aval.dtype)) for p, n in zip(parts, dims)]
    if dtype is not None:
        parts = [convert(p, dtypes.requested_dtype(dtype, "ravel_multi_index")) for p in parts]
    pairs = list(zip(parts, dims))
    out: Any = None
    step = 1
    for p, n in pairs[::-1] if order == "C" else pairs:
        term = p if step == 1 else p * step
        out, step = term if out is None else out + term, step * n
    fits = dtype is None and (is_symbolic_dim(last) or last <= dtypes.iinfo(given).max)
    return convert(out, given if fits else out.aval.dtype)


def _check_inside(parts, dims) -> None:
    for p, n in zip(parts, dims):
        if is_unknown(p):
            raise ConcretizationTypeError(
                p,
                "jnp.ravel_multi_index with mode='raise' must know its indices. Use mode='wrap' or "
                "mode='clip' instead.",
            )
        held = p.host if isinstance(p, ArrayImpl) else np.asarray(p)
        if ((held < 0) | (held >= n)).any():
            raise ValueError(
                f"invalid entry in multi_index of ravel_multi_index: indices from {held.min()} to {held.max()} are out "
                f"of bounds for an axis of size {n}. Use mode='wrap' or mode='clip' to allow them."
            )


def mask_indices(n: int, mask_func: Callable[[Array, Any], Array], k: int = 0, *, size: int | None = None) -> tuple:
    """The row and column indices of the elements of an (n, n) matrix that `mask_func` keeps.

    Args:
        n: the number of rows and of columns.
        mask_func: a function of a matrix and `k`, such as `triu`, that sets elements to zero.
        k: the second argument of the function.
        size: how many indices to return; it is needed under a transformation. Later ones are cut,
            and missing ones are 0.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.mask_indices(2, jnp.triu)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    ones = broadcast_to(number(1, _INT), (n, n))
    return nonzero(mask_func(ones, k), size=size)
