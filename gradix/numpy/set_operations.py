"""Membership in sets, and unions, intersections and differences of two sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core.dimensions.expression import is_known_at_most
from gradix._core.dtypes import INEXACT
from gradix._core.operators import Array
from gradix.numpy.cumulative import cumsum
from gradix.numpy.indexing import take_index
from gradix.numpy.masks import index_dtype
from gradix.numpy.promotion import as_operand, convert, number, promote_dtypes
from gradix.numpy.searching import nonzero, searchsorted
from gradix.numpy.selection import where
from gradix.numpy.sets import differs_from_previous, first_of_runs, known_values, unique, with_one_nan
from gradix.numpy.shapes import ravel
from gradix.numpy.sorting import argsort, sort

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BOOL = np.dtype(bool)
_PAIRS = 1 << 20  # Up to so many pairs, membership is tested by comparing all of them.


@replayed
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among `test_elements`, as booleans of its shape; NaN never is.

    Args:
        element: an array.
        test_elements: an array of the values to look for.
        assume_unique: it has no effect.
        invert: whether to return the opposite.
        method: the method of the search: "auto", "compare_all", "binary_search" or "sort".

    Raises:
        ValueError: `method` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isin(jnp.arange(4), jnp.array([1, 3]))
        Array([False,  True, False,  True], dtype=bool)
    """
    del assume_unique
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"isin: method must be 'auto', 'compare_all', 'binary_search' or 'sort', got {method!r}.")
    x, tests = promote_dtypes("isin", element, test_elements)
    flat, among = ravel(x), ravel(tests)
    n, m = flat.aval.size, among.aval.size
    if n == 0 or m == 0:
        found = lax.full((n,), False)
    elif method == "compare_all" or (method == "auto" and is_known_at_most(n * m, _PAIRS)):
        pairs = lax.eq(lax.broadcast_in_dim(flat, (n, m), (0,)), lax.broadcast_in_dim(among, (n, m), (1,)))
        found = lax.reduce_or(pairs, (1,))
    else:
        line = sort(among)
        found = lax.eq(take_index(line, searchsorted(line, flat), mode="clip"), flat)
    return lax.reshape(convert(lax.bitwise_not(found) if invert else found, _BOOL), x.aval.shape)


# -- two sets --------------------------------------------------------------------------------------


def _rows(name: str, ar1, ar2) -> list:
    return [ravel(with_one_nan(x)) for x in promote_dtypes(name, ar1, ar2)]


def _firsts(line):
    """Whether each element of a sorted row is the first one of its value."""
    return first_of_runs(line, True)


def _alone(line):
    """Whether each element of a sorted row differs from those beside it; NaN differs from NaN."""
    n = line.aval.size
    if n == 0:
        return lax.full((0,), False)
    if type(n) is not int:
        return lax.bitwise_and(first_of_runs(line, False), lax.rev(first_of_runs(lax.rev(line, (0,)), False), (0,)))
    ends = [lax.full((1,), True)]
    new = differs_from_previous(line, False)
    return lax.bitwise_and(lax.concatenate([*ends, new], 0), lax.concatenate([new, *ends], 0))


def _kept(line, keep, size: int | None, fill, name: str):
    """The elements of a row to keep, their places, and which of them exist.

    Missing ones are filled in with `fill`, or with the first element if that is None.
    """
    n = line.aval.size
    if size is None:
        known_values(keep, name)
        (places,) = nonzero(keep)
        return take_index(line, places), places, None
    (places,) = nonzero(keep, size=size, fill_value=n)
    there = lax.lt(places, number(n, places.aval.dtype))
    if not n:
        return (lax.full((size,), convert(as_operand(name, fill or 0), line.aval.dtype)), places, there)
    values = take_index(line, places, mode="clip")
    first = (
        where(lax.broadcast_in_dim(take_index(there, 0), (), ()), take_index(values, 0), number(0, line.aval.dtype))
        if fill is None and size
        else as_operand(name, fill or 0)
    )
    if name == "setdiff1d" or fill is None:
        first = convert(first, line.aval.dtype)
    return where(there, values, first), places, there


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """A sorted vector of the distinct values that are in one of two arrays or in both.

    Args:
        ar1, ar2: arrays of any shape.
        size: how many values to return, by default all.
        fill_value: the value to fill in if there are fewer; by default the smallest one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.union1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    both = lax.concatenate(_rows("union1d", ar1, ar2), 0)
    if size is None:
        known_values(both, "union1d")
    return unique(convert(both, both.aval.dtype), size=size, fill_value=fill_value)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """A sorted vector of the distinct values that are in both of two arrays.

    Args:
        ar1, ar2: arrays, which are taken as rows.
        assume_unique: it has no effect.
        return_indices: whether to return the first places of the values in each array too.
        size: how many values to return, by default all.
        fill_value: the value to fill in if there are fewer; by default the smallest one. Missing
            places are the size of the array.

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
    if a.aval.size != 0 and b.aval.size != 0:
        found = searchsorted(take_index(b, other), values)
        at = [take_index(order, places, mode="clip"), take_index(other, found, mode="clip")]
    if there is not None:
        at = [where(there, i, number(x.aval.size, i.aval.dtype)) for i, x in zip(at, (a, b))]
    return values, *at


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """A sorted vector of the distinct values of `ar1` that are not in `ar2`.

    Args:
        ar1, ar2: arrays, which are taken as rows.
        assume_unique: whether the values of `ar1` are distinct; then they stay in their order.
        size: how many values to return, by default all.
        fill_value: the value to fill in if there are fewer; 0 by default.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.setdiff1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([3], dtype=int32)
    """
    a, b = [ravel(with_one_nan(as_operand("setdiff1d", x, i))) for i, x in enumerate((ar1, ar2))]
    line = a if assume_unique else sort(a)
    keep = isin(line, b, invert=True)
    if not assume_unique:
        keep = lax.bitwise_and(keep, _firsts(line))
    return _kept(line, keep, size, 0 if fill_value is None else fill_value, "setdiff1d")[0]


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """A sorted vector of the distinct values that are in one of two arrays, but not in both.

    A NaN equals no other, so one is kept for each array that has NaN.

    Args:
        ar1, ar2: arrays, which are taken as rows.
        assume_unique: values are counted as they are, so that those which occur twice in one array
            are left out; for arrays of distinct values the result is the same.
        size: how many values to return, by default all.
        fill_value: the value to fill in if there are fewer; by default the smallest one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([1, 2]))
        Array([2, 3], dtype=int32)
    """
    a, b = _rows("setxor1d", ar1, ar2)
    line = sort(lax.concatenate([a, b], 0))
    if assume_unique:
        return _kept(line, _alone(line), size, fill_value, "setxor1d")[0]
    keep = lax.bitwise_and(_firsts(line), lax.ne(isin(line, a), isin(line, b)))
    if line.aval.dtype in INEXACT and line.aval.size != 0:
        nan = lax.ne(line, line)
        theirs = [convert(lax.reduce_or(lax.ne(x, x), (0,)), index_dtype()) for x in (a, b)]
        keep = where(nan, lax.le(cumsum(convert(nan, index_dtype())), lax.add(*theirs)), keep)
    return _kept(line, keep, size, fill_value, "setxor1d")[0]
