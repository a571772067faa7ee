"""Functions that order elements: sort, argsort, lexsort, partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dimensions.expression import is_count
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy import row_host_implementations
from gradix.numpy.at import IndexUpdateHelper
from gradix.numpy.axes import axis_of
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.shapes import ravel

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike

_INT = np.dtype("int32")


def _prepared(name: str, a, axis, kind, order) -> tuple[Array, int]:
    if kind is not None:
        raise TypeError(f"{name}: kind is not supported, got {kind!r}. Use stable=True or stable=False.")
    if order is not None:
        raise TypeError(f"{name}: order is not supported, as arrays have no fields, got {order!r}. Omit it.")
    x = as_operand(name, a)
    return (ravel(x), 0) if axis is None else (x, axis_of(axis, x.aval.ndim))


@replayed
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in increasing order along an axis, NaN last.

    Args:
        a: an array.
        axis: the axis; None takes the array as one row.
        kind, order: not supported.
        stable: whether equal elements keep their order.
        descending: whether to sort from the largest element to the smallest.

    Returns:
        An array of the dtype and shape of `a`, or a vector if `axis` is None.

    Raises:
        TypeError: `kind` or `order` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.sort(jnp.array([3, 1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    x, axis = _prepared("sort", a, axis, kind, order)
    out = lax.sort(x, dimension=axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


@replayed
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that put the elements in increasing order along an axis, NaN last.

    Args:
        a: an array.
        axis: the axis; None takes the array as one row.
        kind, order: not supported.
        stable: whether equal elements keep their order.
        descending: whether to sort from the largest element to the smallest.
        dtype: the integer dtype of the result; the default integer dtype if None.

    Returns:
        An integer array of the shape of `a`, or a vector if `axis` is None.

    Raises:
        TypeError: `kind` or `order` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.argsort(jnp.array([3, 1, 2]))
        Array([1, 2, 0], dtype=int32)
    """
    x, axis = _prepared("argsort", a, axis, kind, order)
    dtype = None if dtype is None else dtypes.requested_dtype(dtype, "argsort")
    dtype = dtypes.places_dtype("argsort", x.aval.shape[axis], dtype)
    places = lax.broadcasted_iota(dtype, x.aval.shape, axis)
    if not descending:
        return lax.sort((x, places), dimension=axis, is_stable=stable, num_keys=1)[1]
    if not stable:
        return lax.rev(lax.sort((x, places), dimension=axis, is_stable=False, num_keys=1)[1], (axis,))
    # The array is reversed before and after, so that equal elements keep their order.
    out = lax.sort((lax.rev(x, (axis,)), lax.rev(places, (axis,))), dimension=axis, is_stable=True, num_keys=1)[1]
    return lax.rev(out, (axis,))


@replayed
def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The indices that sort by several keys along an axis; the last key counts most.

    Returns:
        An array of the default integer dtype and the shape of the keys.

    Raises:
        TypeError: there are no keys, or `keys` is not a sequence.
        ValueError: the keys differ in shape.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.lexsort((jnp.array([1, 0, 0]), jnp.array([5, 5, 4])))
        Array([2, 1, 0], dtype=int32)
    """
    if isinstance(keys, (Array, np.ndarray)):
        keys = lax.unstack(as_operand("lexsort", keys), 0)
    elif not hasattr(keys, "__iter__"):
        raise TypeError(f"lexsort takes a sequence of keys, got {keys!r}. Use argsort for one key.")
    rows = [as_operand("lexsort", k, i) for i, k in enumerate(keys)]
    if not rows:
        raise TypeError("lexsort takes at least one key, got an empty sequence.")
    shapes = {k.aval.shape for k in rows}
    if len(shapes) > 1:
        raise ValueError(
            f"lexsort: the keys must have the same shape, got {', '.join([str(k.aval.shape) for k in rows])}."
        )
    if not rows[0].aval.ndim:
        return number(0, dtypes.python_scalar_dtype(int))
    axis = axis_of(axis, rows[0].aval.ndim)
    dtype = dtypes.places_dtype("lexsort", rows[0].aval.shape[axis])
    places = lax.broadcasted_iota(dtype, rows[0].aval.shape, axis)
    return lax.sort((*rows[::-1], places), dimension=axis, num_keys=len(rows))[-1]


def sort_complex(a: ArrayLike) -> Array:
    """The elements as complex numbers, in increasing order along the last axis.

    They are ordered by real part, then by imaginary part.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.sort_complex(jnp.array([2, 1]))
        Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    out = sort(as_operand("sort_complex", a))
    dtype = out.aval.dtype
    return out if dtype in COMPLEX else convert(out, dtypes.to_complex_dtype(dtypes.to_inexact_dtype(dtype)))


# -- partition -------------------------------------------------------------------------------------


def _descending(x):
    """Numbers that sort in the opposite order, without overflow; its own inverse function."""
    return lax.neg(x) if x.aval.dtype in INEXACT else lax.bitwise_not(x)


def _partition_of(name: str, a, kth, axis) -> tuple[Array, int, int]:
    x = as_operand(name, a)
    if x.aval.dtype in COMPLEX:
        raise NotImplementedError(
            f"{name}: a must be real, got dtype {x.aval.dtype}. Sort by the real part: x[jnp.argsort(x.real)]."
        )
    axis = axis_of(axis, x.aval.ndim)
    n = x.aval.shape[axis]
    return x, kth if is_count(n) else axis_of(kth, n), axis


@replayed(host=row_host_implementations.partition)
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements along an axis, with element `kth` in its place of the sorted order.

    No larger elements come before it, and no smaller ones after it.

    Args:
        a: a real array.
        kth: the place of the element; negative ones count from the end.
        axis: the axis.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: `kth` or `axis` is out of bounds.
        NotImplementedError: `a` is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.partition(jnp.array([5, 3, 1, 4]), 1)
        Array([1, 3, 5, 4], dtype=int32)
    """
    x, kth, axis = _partition_of("partition", a, kth, axis)
    if is_count(x.aval.shape[axis]):
        return sort(x, axis)  # each order of the others is right
    low = _descending(lax.top_k(_descending(x), kth + 1, axis=axis)[0])
    high = lax.top_k(x, x.aval.shape[axis] - kth - 1, axis=axis)[0]
    return lax.concatenate([low, high], axis)


@replayed(host=row_host_implementations.argpartition)
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition the elements along an axis, as `partition` does.

    Args:
        a: a real array.
        kth: the place of the element; negative ones count from the end.
        axis: the axis.

    Returns:
        An int32 array of the shape of `a`.

    Raises:
        ValueError: `kth` or `axis` is out of bounds.
        NotImplementedError: `a` is complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.argpartition(jnp.array([5, 3, 1, 4]), 1)
        Array([2, 1, 0, 3], dtype=int32)
    """
    x, kth, axis = _partition_of("argpartition", a, kth, axis)
    if is_count(x.aval.shape[axis]):
        return argsort(x, axis)
    n = x.aval.shape[axis]
    low = lax.top_k(_descending(x), kth + 1, axis=axis)[1]
    places = [lax.broadcasted_iota(_INT, low.aval.shape, d) if d != axis else low for d in range(x.aval.ndim)]
    rest = lax.full(x.aval.shape, number(1, _INT))
    rest = IndexUpdateHelper(rest)[tuple(places)].set(0, unique_indices=True)
    high = lax.top_k(rest, n - kth - 1, axis=axis)[1]
    return lax.concatenate([low, high], axis)
