"""Reductions over axes: sums, products, and truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.config import state
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, FLOAT, INTEGER
from gradix._core.operators import Array
from gradix.numpy.axes import ALL, axes_of, no_out, positions_and_names
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number
from gradix.numpy.selection import where as choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes, DTypeLike

_BOOL = np.dtype(bool)
_F32 = np.dtype("float32")
# Sums in these dtypes are neither widened nor computed in another dtype.
_DIRECT = frozenset(np.dtype(t) for t in ("float32", "float64", "complex64", "complex128", "int64", "uint64"))
_DIRECT_OF_32 = frozenset(np.dtype(t) for t in ("int32", "uint32"))


def keep_axes(out, shape: tuple, axes: tuple):
    """A reduced array with its reduced axes put back, with size 1."""
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    return lax.broadcast_in_dim(out, tuple([n if i in kept else 1 for i, n in enumerate(shape)]), kept)


def where_mask(name: str, where):
    mask = as_operand(name, where)
    if mask.aval.dtype != _BOOL:
        raise ValueError(
            f"{name}: where must be None or a boolean array, got dtype {mask.aval.dtype}. Write "
            "where != 0 for the elements other than zero."
        )
    return mask


def mask_like(name: str, where, shape: tuple):
    """The mask `where` broadcast to the shape of the array."""
    mask = where_mask(name, where)
    if len(mask.aval.shape) > len(shape):
        raise ValueError(f"{name}: where of shape {mask.aval.shape} does not broadcast to the array's shape {shape}.")
    return broadcast_to(mask, shape)


def initial_value(name: str, initial, dtype):
    if type(initial) in (int, float, bool) or type(initial) is complex and dtype in COMPLEX:
        return number(initial, dtype)
    value = as_operand(name, initial)
    if value.aval.dtype in COMPLEX and dtype not in COMPLEX and value is not initial:
        warnings.warn(
            f"{name}: the imaginary part of initial={initial} is dropped for dtype {dtype}. Pass a real number.",
            np.exceptions.ComplexWarning,
            stacklevel=5,
        )
    if value.aval.ndim:
        raise ValueError(f"{name}: initial must be a scalar, got shape {value.aval.shape}.")
    return convert(value, dtype)


def _promoted_integer(dtype):
    """The dtype in which integers and booleans are summed: the default one for fewer bits."""
    if dtype == _BOOL:
        return dtypes.python_scalar_dtype(int)
    if dtype in dtypes.UNSIGNED:
        wide = dtypes.canonicalize_dtype(np.dtype("uint64"))
    elif dtype in INTEGER:
        wide = dtypes.python_scalar_dtype(int)
    else:
        return dtype
    return wide if dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(wide) else dtype


class _Fold(NamedTuple):
    """An operation that reduces by combining two elements, and starts from its identity."""

    name: str
    reduce: Callable
    combine: Callable
    identity: int


_SUM = _Fold("sum", lax.reduce_sum, lax.add, 0)
_PROD = _Fold("prod", lax.reduce_prod, lax.mul, 1)


def _accumulate(fold: _Fold, a, axis, dtype, out, keepdims, *, initial, where, promote_integers):
    """A sum or product with all its options."""
    name, op, combine, identity = fold
    no_out(name, out)
    x = as_operand(name, a)
    own = x.aval.dtype
    if dtype is not None:
        result = dtypes.requested_dtype(dtype, name, stacklevel=4)
    else:
        result = _promoted_integer(own) if promote_integers or own == _BOOL else own
    # Half precision is summed in float32, unless the user named the dtype.
    half = dtype is None and result in FLOAT and result.itemsize < 4
    x = convert(x, _F32 if half else result)
    axis, names = positions_and_names(axis)
    if result == _BOOL:  # Sums of booleans are `or`, since 1 + 1 is 1; products are `and`.
        op, combine = (lax.reduce_or, lax.bitwise_or) if identity == 0 else (lax.reduce_and, lax.bitwise_and)
    axes, shape = axes_of(axis, x.aval.ndim), x.aval.shape
    if where is not None:
        x = choose(where_mask(name, where), x, number(identity, x.aval.dtype))
        shape = x.aval.shape
    y = op(x, axes)
    if names:
        y = over_named_axes(name, y, names)
    if initial is not None:
        y = combine(initial_value(name, initial, y.aval.dtype), y)
    if keepdims:
        y = keep_axes(y, shape, axes)
    return convert(y, result) if half else y


def over_named_axes(name: str, x, names: tuple):
    """`x` reduced over mapped axes."""
    across = {"sum": lax.psum, "max": lax.pmax, "min": lax.pmin}.get(name)
    if across is None:
        raise NotImplementedError(
            f"{name} over the named axes {names} is not implemented; sum, max, min, mean and var "
            "are. Collect the parts with lax.all_gather and reduce these."
        )
    return across(x, names)


def sum(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of the elements, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to sum over; all by default.
        dtype: the dtype of the sum; by default that of `a`, and for booleans and integers of fewer
            bits the default integers.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a number to add.
        where: booleans that broadcast with `a` and tell which elements count.
        promote_integers: whether integers of fewer bits become the default ones.

    Returns:
        An array with the shape of `a` without the reduced axes.

    Raises:
        ValueError: an axis is out of bounds, or `where` is not boolean.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
        >>> x = jnp.array([1.0, jnp.nan, 3.0])
        >>> jnp.sum(x, where=~jnp.isnan(x), keepdims=True)
        Array([4.], dtype=float32)

    See also:
        `jnp.nansum`, `jnp.mean`, `jnp.cumsum`, `jnp.einsum`, `ops.segment_sum`.
    """
    if isinstance(a, Array) and dtype is None and where is None and initial is None and out is None and not keepdims:
        aval = a.aval
        own = aval.dtype
        if not aval.weak_type and (own in _DIRECT or (own in _DIRECT_OF_32 and not state.jax_enable_x64)):
            ndim = aval.ndim
            if type(axis) is int and 0 <= axis < ndim:
                return lax._sum(a, (axis,))
            if axis is None:
                return lax._sum(a, ALL[ndim])
            if not positions_and_names(axis)[1]:
                return lax._sum(a, axes_of(axis, ndim))
    return _accumulate(
        _SUM, a, axis, dtype, out, keepdims, initial=initial, where=where, promote_integers=promote_integers
    )


@replayed
def prod(
    a: ArrayLike,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product of the elements, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to multiply over; all by default.
        dtype: the dtype of the product; by default that of `a`, and for booleans and integers of
            fewer bits the default integers.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a number to multiply by.
        where: booleans that broadcast with `a` and tell which elements count.
        promote_integers: whether integers of fewer bits become the default ones.

    Returns:
        An array with the shape of `a` without the reduced axes.

    Raises:
        ValueError: an axis is out of bounds, or `where` is not boolean.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.prod(jnp.array([1, 2, 3]))
        Array(6, dtype=int32)
    """
    return _accumulate(
        _PROD, a, axis, dtype, out, keepdims, initial=initial, where=where, promote_integers=promote_integers
    )


# -- truth -----------------------------------------------------------------------------------------


def _truth(name: str, op, identity: bool, a, axis, out, *, keepdims, where):
    no_out(name, out)
    x = as_operand(name, a)
    if x.aval.dtype != _BOOL:
        # A conversion to booleans would drop the imaginary part.
        x = lax.ne(x, number(0, x.aval.dtype))
    axis, names = positions_and_names(axis)
    axes, shape = axes_of(axis, x.aval.ndim), x.aval.shape
    if where is not None:
        x = choose(where_mask(name, where), x, number(identity, _BOOL))
        shape = x.aval.shape
    y = op(x, axes)
    if names:
        y = over_named_axes(name, y, names)
    return keep_axes(y, shape, axes) if keepdims else y


@replayed
def all(
    a: ArrayLike, axis: Axes | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether all elements are true, that is other than zero, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast with `a` and tell which elements count.

    Returns:
        Booleans, with the shape of `a` without the reduced axes.

    Raises:
        ValueError: an axis is out of bounds, or `where` is not boolean.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=0)
        Array([ True, False], dtype=bool)
        >>> jnp.all(jnp.array([])), jnp.all(jnp.array([1, 0]), where=jnp.array([True, False]))
        (Array(True, dtype=bool), Array(True, dtype=bool))

    See also:
        `jnp.any`, `jnp.allclose`, `jnp.array_equal`, `jnp.logical_and`.
    """
    return _truth("all", lax.reduce_and, True, a, axis, out, keepdims=keepdims, where=where)


@replayed
def any(
    a: ArrayLike, axis: Axes | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether at least one element is true, that is other than zero, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        where: booleans that broadcast with `a` and tell which elements count.

    Returns:
        Booleans, with the shape of `a` without the reduced axes.

    Raises:
        ValueError: an axis is out of bounds, or `where` is not boolean.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.any(jnp.array([[True, False], [True, False]]), axis=0)
        Array([ True, False], dtype=bool)
    """
    return _truth("any", lax.reduce_or, False, a, axis, out, keepdims=keepdims, where=where)


@replayed
def count_nonzero(a: ArrayLike, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """How many elements are other than zero, over all axes or some.

    Args:
        a: an array.
        axis: the axis, or axes, to reduce; all by default.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the default integer dtype, with the shape of `a` without the reduced axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.count_nonzero(jnp.array([0, 3, 0, 4]))
        Array(2, dtype=int32)
    """
    x = as_operand("count_nonzero", a)
    if x.aval.dtype != _BOOL:
        x = lax.ne(x, number(0, x.aval.dtype))
    return sum(x, axis, dtypes.python_scalar_dtype(int), None, keepdims)
