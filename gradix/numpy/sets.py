"""Arrays as sets: unique values, unions, intersections, differences, membership."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, wrap_host
from gradix._core.dimensions.expression import is_known_at_most
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.trace import is_unknown
from gradix.numpy.axes import axis_of
from gradix.numpy.cumulative import cumsum
from gradix.numpy.indexing import take_index
from gradix.numpy.promotion import as_operand, convert, number, promote_dtypes, value_of
from gradix.numpy.searching import nonzero, searchsorted
from gradix.numpy.selection import where
from gradix.numpy.shapes import moveaxis, ravel
from gradix.numpy.sorting import argsort, lexsort, sort

_BOOL = np.dtype(bool)
_PAIRS = 1 << 20  # up to so many pairs membership is tested by comparing them all


class UniqueAll(NamedTuple):
    """The distinct values of an array, where each occurs first, which of them each element is, and their counts."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The distinct values of an array and how often each occurs."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The distinct values of an array and which of them each element is."""

    values: Any
    inverse_indices: Any


def _known(x, name: str) -> np.ndarray:
    x = value_of(x)
    if is_unknown(x):
        raise ConcretizationTypeError(
            x,
            f"The error arose for an argument of jnp.{name}(): how many values there "
            f"are is the size of the result. Pass size=n to jnp.{name} to fix it.",
        )
    return x.host if isinstance(x, ArrayImpl) else np.asarray(x)


def _index_dtype():
    return dtypes.python_scalar_dtype(int)


# -- unique ----------------------------------------------------------------------------------------


def unique(
    ar,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value=None,
    sorted: bool = True,
) -> Any:
    """The distinct values of an array, or the distinct slices along an axis, in increasing order.

    Args:
        ar: an array.
        return_index: also return where each occurs first.
        return_inverse: also return which of them each element is.
        return_counts: also return how often each occurs.
        axis: compare whole slices along this axis; by default elements.
        equal_nan: whether all NaN are one value.
        size: how many values to return, needed where `ar` is traced: later ones are cut, missing
            ones filled up.
        fill_value: the value to fill up with; by default the least one.
        sorted: results are always sorted.

    Raises:
        ConcretizationTypeError: `ar` is traced and `size` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique(jnp.array([3, 1, 1, 2]), return_counts=True)
        (Array([1, 2, 3], dtype=int32), Array([2, 1, 1], dtype=int32))
    """
    x = as_operand("unique", ar)
    if dtypes.is_extended(x.aval.dtype):
        raise TypeError(
            f"unique compares numbers, and random keys have no order; got {x.aval.str_short()}. Compare "
            "their words, random.key_data(keys)."
        )
    x, shape = _with_one_nan(x), x.aval.shape
    rows = ravel(x) if axis is None else moveaxis(x, axis_of(axis, x.aval.ndim), 0)
    asked = (True, return_index, return_inverse, return_counts)
    if size is None:
        out: list = _unique_known(_known(rows, "unique"), equal_nan)
        weak = x.aval.weak_type and x.aval.dtype not in COMPLEX
        out = [
            wrap_host(out[0], weak),
            *[wrap_host(np.asarray(o, _index_dtype())) for o in out[1:]],
        ]
    else:
        out = _unique_of_size(rows, equal_nan, size, fill_value, return_index or return_inverse)
    if axis is None:
        out[2] = lax.reshape(out[2], shape)
    else:
        out[0] = moveaxis(out[0], 0, axis)
    out = [o for o, wanted in zip(out, asked) if wanted]
    return out[0] if len(out) == 1 else tuple(out)


def _unique_known(rows: np.ndarray, equal_nan: bool) -> list:
    out = np.unique(
        rows,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=None if rows.ndim == 1 else 0,
        equal_nan=equal_nan,
    )
    return [out[0], out[1], np.reshape(out[2], rows.shape[:1]), out[3]]


def _unique_of_size(rows, equal_nan: bool, size: int, fill_value, places: bool) -> list:
    """Values, first places, inverse and counts; places and inverse only if asked for, as they cost more."""
    n, dtype = rows.aval.shape[0], _index_dtype()
    if not n:
        if size and fill_value is None:
            raise ValueError(
                "jnp.unique: for zero-sized input with nonzero size argument, fill_value must be "
                "specified"
            )
        none = lax.full((size,), number(0, dtype))
        values = lax.full(
            (size, *rows.aval.shape[1:]),
            convert(as_operand("unique", fill_value or 0), rows.aval.dtype),
        )
        return [values, none, lax.full((0,), number(0, dtype)), none]
    order = _order_of(rows) if places or rows.aval.ndim > 1 else None
    sorted_rows = sort(rows) if order is None else take_index(rows, order)
    first = lax.concatenate([lax.full((1,), True), _differs(sorted_rows, equal_nan)], 0)
    # the last value kept ends where the next begins
    (after,) = nonzero(first, size=size + 1, fill_value=n)
    starts = lax.slice_in_dim(after, 0, size)
    there = lax.lt(starts, number(n, dtype))
    at = where(there, starts, number(0, dtype))
    values = take_index(sorted_rows, at)
    if fill_value is not None:
        fill = convert(as_operand("unique", fill_value), rows.aval.dtype)
        keep = lax.broadcast_in_dim(there, values.aval.shape, (0,))
        values = where(keep, values, fill)
    counts = where(there, lax.sub(lax.slice_in_dim(after, 1, None), starts), number(0, dtype))
    if order is None or not places:
        return [values, starts, lax.full((n,), number(0, dtype)), counts]
    slot = lax.sub(cumsum(convert(first, dtype)), number(1, dtype))
    inverse = lax.full((n,), number(0, dtype)).at[order].set(slot, unique_indices=True)
    return [values, take_index(order, at), inverse, counts]


def _order_of(rows):
    """The indices that sort rows of any shape, by their elements in turn."""
    if rows.aval.ndim == 1:
        return argsort(rows)
    flat = lax.reshape(
        rows,
        (rows.aval.shape[0], -1 if not rows.aval.size else rows.aval.size // rows.aval.shape[0]),
    )
    return lexsort(lax.unstack(flat, 1)[::-1])


def _differs(rows, equal_nan: bool):
    """Whether each row differs from the one before."""
    a, b = lax.slice_in_dim(rows, 1, None), lax.slice_in_dim(rows, 0, -1)
    out = lax.ne(a, b)
    if equal_nan and rows.aval.dtype in INEXACT:
        out = lax.bitwise_and(out, lax.bitwise_not(lax.bitwise_and(lax.ne(a, a), lax.ne(b, b))))
    return lax.reduce_or(out, tuple(range(1, rows.aval.ndim))) if rows.aval.ndim > 1 else out


def unique_all(x, /, *, size: int | None = None, fill_value=None) -> UniqueAll:
    """The distinct values, their first places, the inverse and the counts.

    Args:
        x: an array of any shape.
        size: how many distinct values to return, needed where `x` is traced: later ones are cut,
            missing ones filled up.
        fill_value: what to fill up with; by default the least value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_all(jnp.array([2, 1, 1])).counts
        Array([2, 1], dtype=int32)
    """
    return UniqueAll(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(x, /, *, size: int | None = None, fill_value=None) -> UniqueCounts:
    """The distinct values and how often each occurs.

    Args:
        x: an array of any shape.
        size: how many distinct values to return, needed where `x` is traced: later ones are cut,
            missing ones filled up.
        fill_value: what to fill up with; by default the least value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_counts(jnp.array([2, 1, 1])).values
        Array([1, 2], dtype=int32)
    """
    return UniqueCounts(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_inverse(x, /, *, size: int | None = None, fill_value=None) -> UniqueInverse:
    """The distinct values and which of them each element is.

    Args:
        x: an array of any shape.
        size: how many distinct values to return, needed where `x` is traced: later ones are cut,
            missing ones filled up.
        fill_value: what to fill up with; by default the least value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_inverse(jnp.array([2, 1, 1])).inverse_indices
        Array([1, 0, 0], dtype=int32)
    """
    return UniqueInverse(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_values(x, /, *, size: int | None = None, fill_value=None) -> Array:
    """The distinct values.

    Args:
        x: an array of any shape.
        size: how many distinct values to return, needed where `x` is traced: later ones are cut,
            missing ones filled up.
        fill_value: what to fill up with; by default the least value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_values(jnp.array([2, 1, 1]))
        Array([1, 2], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# -- membership ------------------------------------------------------------------------------------


@replayed
def isin(
    element, test_elements, assume_unique: bool = False, invert: bool = False, *, method="auto"
) -> Array:
    """Whether each element is among `test_elements`; NaN never is.

    Args:
        element: an array.
        test_elements: the values to look for, of any shape.
        assume_unique: accepted for compatibility.
        invert: tell instead whether it is not.
        method: "auto", "compare_all", "binary_search" or "sort".

    Raises:
        ValueError: `method` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isin(jnp.arange(4), jnp.array([1, 3]))
        Array([False,  True, False,  True], dtype=bool)
    """
    del assume_unique
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"Invalid value {method=}. Valid values are 'auto', 'compare_all', 'binary_search' and "
            "'sort'."
        )
    x, tests = promote_dtypes("isin", element, test_elements)
    flat, among = ravel(x), ravel(tests)
    n, m = flat.aval.size, among.aval.size
    if not n or not m:
        found = lax.full((n,), False)
    elif method == "compare_all" or (method == "auto" and is_known_at_most(n * m, _PAIRS)):
        pairs = lax.eq(
            lax.broadcast_in_dim(flat, (n, m), (0,)), lax.broadcast_in_dim(among, (n, m), (1,))
        )
        found = lax.reduce_or(pairs, (1,))
    else:
        line = sort(among)
        found = lax.eq(take_index(line, searchsorted(line, flat), mode="clip"), flat)
    return lax.reshape(convert(lax.bitwise_not(found) if invert else found, _BOOL), x.aval.shape)


# -- two sets --------------------------------------------------------------------------------------


def _rows(name: str, ar1, ar2) -> list:
    return [ravel(_with_one_nan(x)) for x in promote_dtypes(name, ar1, ar2)]


def _with_one_nan(x):
    """Complex numbers with NaN in either part are one value, nan + 0i, as they have no order among each other."""
    return (
        where(lax.ne(x, x), number(complex(np.nan, 0), x.aval.dtype), x)
        if x.aval.dtype in COMPLEX
        else x
    )


def _firsts(line):
    """Whether each element of a sorted row is the first of its value."""
    if not line.aval.size:
        return lax.full((0,), False)
    return lax.concatenate([lax.full((1,), True), _differs(line, True)], 0)


def _kept(line, keep, size: int | None, fill, name: str):
    """The elements of a row to keep, their places and which of them there are; `fill` None stands for the first."""
    n = line.aval.size
    if size is None:
        _known(keep, name)
        (places,) = nonzero(keep)
        return take_index(line, places), places, None
    (places,) = nonzero(keep, size=size, fill_value=n)
    there = lax.lt(places, number(n, places.aval.dtype))
    if not n:
        return (
            lax.full((size,), convert(as_operand(name, fill or 0), line.aval.dtype)),
            places,
            there,
        )
    values = take_index(line, places, mode="clip")
    first = (
        where(
            lax.broadcast_in_dim(take_index(there, 0), (), ()),
            take_index(values, 0),
            number(0, line.aval.dtype),
        )
        if fill is None and size
        else as_operand(name, fill or 0)
    )
    if name == "setdiff1d" or fill is None:
        first = convert(first, line.aval.dtype)
    return where(there, values, first), places, there


def union1d(ar1, ar2, *, size: int | None = None, fill_value=None) -> Array:
    """The distinct values in either of two arrays, sorted.

    Args:
        ar1, ar2: arrays of any shape.
        size: how many to return, needed where the arrays are traced.
        fill_value: what to fill up with; by default the least value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.union1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    both = lax.concatenate(_rows("union1d", ar1, ar2), 0)
    if size is None:
        _known(both, "union1d")
    return unique(convert(both, both.aval.dtype), size=size, fill_value=fill_value)


def intersect1d(
    ar1,
    ar2,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value=None,
) -> Any:
    """The distinct values in both of two arrays, sorted.

    Args:
        ar1, ar2: the arrays, taken in one row.
        assume_unique: each array holds no value twice.
        return_indices: also return where in each array the values occur first.
        size: how many to return, needed where the arrays are traced.
        fill_value: what to fill up with; by default the least value. Indices are filled with the
            array's size.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.intersect1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([1], dtype=int32)
    """
    a, b = _rows("intersect1d", ar1, ar2)
    order = argsort(a)
    line = take_index(a, order)
    keep = lax.bitwise_and(_firsts(line), isin(line, b))
    values, places, there = _kept(line, keep, size, fill_value, "intersect1d")
    if not return_indices:
        return values
    other = argsort(b)
    at = [places, places]
    if a.aval.size and b.aval.size:
        found = searchsorted(take_index(b, other), values)
        at = [take_index(order, places, mode="clip"), take_index(other, found, mode="clip")]
    if there is not None:
        at = [where(there, i, number(x.aval.size, i.aval.dtype)) for i, x in zip(at, (a, b))]
    return values, *at


def setdiff1d(
    ar1, ar2, assume_unique: bool = False, *, size: int | None = None, fill_value=None
) -> Array:
    """The distinct values of `ar1` that `ar2` does not hold, sorted.

    Args:
        ar1, ar2: the arrays, taken in one row.
        assume_unique: the values of `ar1` are distinct; they then stay in their order.
        size: how many to return, needed where the arrays are traced.
        fill_value: what to fill up with; by default 0.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.setdiff1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([3], dtype=int32)
    """
    a, b = [ravel(_with_one_nan(as_operand("setdiff1d", x, i))) for i, x in enumerate((ar1, ar2))]
    line = a if assume_unique else sort(a)
    keep = isin(line, b, invert=True)
    if not assume_unique:
        keep = lax.bitwise_and(keep, _firsts(line))
    return _kept(line, keep, size, 0 if fill_value is None else fill_value, "setdiff1d")[0]


def setxor1d(
    ar1, ar2, assume_unique: bool = False, *, size: int | None = None, fill_value=None
) -> Array:
    """The distinct values in one of two arrays but not both, sorted; a NaN equals none, so each array's is kept.

    Args:
        ar1, ar2: the arrays, taken in one row.
        assume_unique: each array holds no value twice.
        size: how many to return, needed where the arrays are traced.
        fill_value: what to fill up with; by default the least value.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([2, 3], dtype=int32)
    """
    del assume_unique
    a, b = _rows("setxor1d", ar1, ar2)
    line = sort(lax.concatenate([a, b], 0))
    keep = lax.bitwise_and(_firsts(line), lax.ne(isin(line, a), isin(line, b)))
    if line.aval.dtype in INEXACT and line.aval.size:
        nan = lax.ne(line, line)
        theirs = [convert(lax.reduce_or(lax.ne(x, x), (0,)), _index_dtype()) for x in (a, b)]
        keep = where(nan, lax.le(cumsum(convert(nan, _index_dtype())), lax.add(*theirs)), keep)
    return _kept(line, keep, size, fill_value, "setxor1d")[0]
