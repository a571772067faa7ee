"""The distinct values of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from gradix import lax
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, wrap_host
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix.numpy.axes import axis_of
from gradix.numpy.cumulative import cumsum
from gradix.numpy.indexing import take_index
from gradix.numpy.masks import counted_places, decides_sizes, index_dtype, padded
from gradix.numpy.promotion import as_operand, convert, number, value_of
from gradix.numpy.searching import nonzero
from gradix.numpy.selection import where
from gradix.numpy.shapes import moveaxis, ravel
from gradix.numpy.sorting import argsort, lexsort, sort

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class UniqueAll(NamedTuple):
    """The distinct values of an array, their first places, the inverse and the counts."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The distinct values of an array, and how often each occurs."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The distinct values of an array, and which of them each element is."""

    values: Any
    inverse_indices: Any


def known_values(x, name: str) -> np.ndarray:
    """The values of an array, as they determine the size of the result of `name`.

    Where a program is being traced, they are traced values.
    """
    x = value_of(x)
    if decides_sizes(x):
        return x
    if is_unknown(x):
        raise ConcretizationTypeError(
            x, f"The values determine the size of the result of jnp.{name}(). Pass size=n to jnp.{name} to fix it."
        )
    return x.host if isinstance(x, ArrayImpl) else np.asarray(x)


# -- unique ----------------------------------------------------------------------------------------


@overload
def unique(
    ar,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value=None,
    sorted: bool = True,
) -> Array: ...


@overload
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
) -> Any: ...


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements of an array, or its distinct parts along an axis, in increasing order.

    Args:
        ar: an array.
        return_index: whether to return the places where the values occur first too.
        return_inverse: whether to return the number of each element's value too.
        return_counts: whether to return how often each value occurs too.
        axis: the axis along which whole parts are compared; by default, elements are.
        equal_nan: whether all NaN are one value.
        size: how many values to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the value to fill in; by default the smallest one.
        sorted: it has no effect, since results are always sorted.

    Returns:
        A vector of the values in the dtype of `ar`, or with `axis` an array of the parts; or a
        tuple of it and the integer arrays asked for, in the order of the arguments.

    Raises:
        TypeError: `ar` holds random keys.
        ValueError: `ar` is empty, `size` is not 0, and `fill_value` is not given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique(jnp.array([3, 1, 1, 2]), return_counts=True)
        (Array([1, 2, 3], dtype=int32), Array([2, 1, 1], dtype=int32))
    """
    x = as_operand("unique", ar)
    if dtypes.is_extended(x.aval.dtype):
        raise TypeError(
            f"unique: ar must hold numbers, as random keys have no order, got "
            f"{x.aval.str_short()}. Compare their words, random.key_data(keys)."
        )
    x, shape = with_one_nan(x), x.aval.shape
    rows = ravel(x) if axis is None else moveaxis(x, axis_of(axis, x.aval.ndim), 0)
    asked = (True, return_index, return_inverse, return_counts)
    if size is None and decides_sizes(rows):
        out: list = _unique_counted(rows, equal_nan, return_index or return_inverse)
    elif size is None:
        out = _unique_known(known_values(rows, "unique"), equal_nan)
        weak = x.aval.weak_type and x.aval.dtype not in COMPLEX
        rest = [wrap_host(np.asarray(o, index_dtype())) for o in out[1:]]
        # A tracer's values are taken from it, so that they have its derivative.
        taken = isinstance(rows, Tracer)
        out = [take_index(rows, rest[0]) if taken else wrap_host(out[0], weak), *rest]
    else:
        out = _unique_of_size(rows, equal_nan, size, fill_value, return_index or return_inverse)
    if axis is None:
        out[2] = lax.reshape(out[2], shape)
    else:
        out[0] = moveaxis(out[0], 0, axis)
    out = [o for o, wanted in zip(out, asked) if wanted]
    return out[0] if len(out) == 1 else tuple(out)


def _unique_known(rows: np.ndarray, equal_nan: bool) -> list:
    own = rows.dtype
    if own in INEXACT and own.type.__module__ != "numpy":
        rows = rows.astype(np.float32)  # NumPy does not order NaN of types that are not its own.
    out = np.unique(
        rows,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=None if rows.ndim == 1 else 0,
        equal_nan=equal_nan,
    )
    return [out[0].astype(own, copy=False), out[1], np.reshape(out[2], rows.shape[:1]), out[3]]


def _unique_counted(rows, equal_nan: bool, places: bool) -> list:
    """As `_unique_of_size`, for as many values as there are."""
    n = rows.aval.shape[0]
    dtype = dtypes.places_dtype("unique", n)
    if n == 0:
        none = lax.full((0,), number(0, dtype))
        return [rows, none, none, none]
    order = _order_of(rows) if places or rows.aval.ndim > 1 else None
    sorted_rows = sort(rows) if order is None else take_index(rows, order)
    first = first_of_runs(sorted_rows, equal_nan)
    (starts,) = counted_places(first)
    values = take_index(sorted_rows, starts)
    number_of = lax.sub(cumsum(convert(first, dtype)), number(1, dtype))
    slots = starts.aval.shape[0]
    counts = lax.full((slots,), number(0, dtype)).at[number_of].add(number(1, dtype))
    if order is None or not places:
        return [values, starts, lax.full((n,), number(0, dtype)), counts]
    inverse = lax.full((n,), number(0, dtype)).at[order].set(number_of, unique_indices=True)
    return [values, take_index(order, starts), inverse, counts]


def _unique_of_size(rows, equal_nan: bool, size: int, fill_value, places: bool) -> list:
    """Values, first places, inverse and counts; `places` is whether the second and third count."""
    n = rows.aval.shape[0]
    dtype = dtypes.places_dtype("unique", n)
    if not n:
        if size and fill_value is None:
            raise ValueError(f"unique: ar is empty, so the {size} values must be filled in. Give fill_value=.")
        none = lax.full((size,), number(0, dtype))
        values = lax.full((size, *rows.aval.shape[1:]), convert(as_operand("unique", fill_value or 0), rows.aval.dtype))
        return [values, none, lax.full((0,), number(0, dtype)), none]
    order = _order_of(rows) if places or rows.aval.ndim > 1 else None
    sorted_rows = sort(rows) if order is None else take_index(rows, order)
    first = first_of_runs(sorted_rows, equal_nan)
    # One place more than `size` is needed, since the last value ends where the next one begins.
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
    """The indices that sort the rows of an array, by their elements from the first on."""
    if rows.aval.ndim == 1:
        return argsort(rows)
    flat = lax.reshape(rows, (rows.aval.shape[0], -1 if not rows.aval.size else rows.aval.size // rows.aval.shape[0]))
    return lexsort(lax.unstack(padded(flat, 1), 1)[::-1])  # zeros behind all rows leave their order


def first_of_runs(rows, equal_nan: bool):
    """Whether each row differs from the one before it; the first one does."""
    n = rows.aval.shape[0]
    if type(n) is int:
        ends = [lax.full((min(n, 1),), True)]
        return lax.concatenate([*ends, differs_from_previous(rows, equal_nan)], 0) if n else ends[0]
    at = lax.iota(index_dtype(), n)  # there may be no rows, which slices of them would have to know
    before = take_index(rows, lax.max(lax.sub(at, number(1, at.dtype)), number(0, at.dtype)))
    return lax.bitwise_or(lax.eq(at, number(0, at.dtype)), _differ(rows, before, equal_nan))


def differs_from_previous(rows, equal_nan: bool):
    """Whether each row but the first differs from the one before it."""
    return _differ(lax.slice_in_dim(rows, 1, None), lax.slice_in_dim(rows, 0, -1), equal_nan)


def _differ(a, b, equal_nan: bool):
    """Whether rows differ from those at the same place in another array."""
    rows = a
    out = lax.ne(a, b)
    if equal_nan and rows.aval.dtype in INEXACT:
        out = lax.bitwise_and(out, lax.bitwise_not(lax.bitwise_and(lax.ne(a, a), lax.ne(b, b))))
    return lax.reduce_or(out, tuple(range(1, rows.aval.ndim))) if rows.aval.ndim > 1 else out


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """A named tuple of the distinct values, their first places, the inverse and the counts.

    Args:
        x: an array of any shape.
        size: how many values to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the value to fill in; by default the smallest one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_all(jnp.array([2, 1, 1])).counts
        Array([2, 1], dtype=int32)
    """
    return UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueCounts:
    """A named tuple of the distinct values and how often each occurs.

    Args:
        x: an array of any shape.
        size: how many values to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the value to fill in; by default the smallest one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_counts(jnp.array([2, 1, 1])).values
        Array([1, 2], dtype=int32)
    """
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueInverse:
    """A named tuple of the distinct values and which of them each element is.

    Args:
        x: an array of any shape.
        size: how many values to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the value to fill in; by default the smallest one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_inverse(jnp.array([2, 1, 1])).inverse_indices
        Array([1, 0, 0], dtype=int32)
    """
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct values of an array, as a sorted vector.

    Args:
        x: an array of any shape.
        size: how many values to return, by default all. Later ones are cut, and missing ones
            are filled in.
        fill_value: the value to fill in; by default the smallest one.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.unique_values(jnp.array([2, 1, 1]))
        Array([1, 2], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# -- membership ------------------------------------------------------------------------------------


def with_one_nan(x):
    """`x` with nan + 0i for all complex numbers with NaN in a part, which have no order."""
    return where(lax.ne(x, x), number(complex(np.nan, 0), x.aval.dtype), x) if x.aval.dtype in COMPLEX else x
