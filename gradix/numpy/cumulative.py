"""Running sums and products along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.axes import axis_of, no_out
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike


def _running(name: str, op, a, axis, dtype, out, *, fill=None, promote: bool = False):
    no_out(name, out)
    x = as_operand(name, a)
    own = x.aval.dtype
    if fill is not None and own in dtypes.INEXACT:
        x = where(lax.ne(x, x), number(fill, own), x)
    if axis is None:
        x, axis = lax.reshape(x, (x.aval.size,)), 0
    x = x if x.aval.shape else lax.reshape(x, (1,))  # A scalar is taken as a row of one element.
    axis = axis_of(axis, x.aval.ndim)
    if dtype is not None:
        own = dtypes.requested_dtype(dtype, name, stacklevel=4)
    elif own in dtypes.BOOL or (promote and own in dtypes.INTEGER):
        own = _widened(own) if promote else dtypes.python_scalar_dtype(int)
    if own in dtypes.BOOL:
        return convert(op(convert(convert(x, own), dtypes.python_scalar_dtype(int)), axis=axis), own)
    return op(convert(x, own), axis=axis)


def _widened(dtype):
    """The dtype of running sums and products: the default integer dtype for integers of fewer bits."""
    default = dtypes.python_scalar_dtype(int)
    if dtype in dtypes.UNSIGNED:
        default = dtypes.canonicalize_dtype("uint64")
    return default if dtype in dtypes.BOOL or dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(default) else dtype


@replayed
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running sums along an axis.

    Args:
        a: an array.
        axis: the axis; by default, the array is taken as one row.
        dtype: the dtype of the sums; by default that of `a`, and for booleans the default integers.
        out: not supported.

    Returns:
        An array of the shape of `a`, or a vector if `axis` is None.

    Raises:
        ValueError: `axis` is out of bounds.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.cumsum(jnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", lax.cumsum, a, axis, dtype, out)


@replayed
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running products along an axis.

    Args:
        a: an array.
        axis: the axis; by default, the array is taken as one row.
        dtype: the dtype of the products; by default that of `a`, and for booleans the default
            integers.
        out: not supported.

    Returns:
        An array of the shape of `a`, or a vector if `axis` is None.

    Raises:
        ValueError: `axis` is out of bounds.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.cumprod(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", lax.cumprod, a, axis, dtype, out)


def accumulated_sum(a, axis: int = 0, dtype=None):
    """The running sums along an axis, as `add.accumulate` returns them."""
    return _running("add.accumulate", lax.cumsum, a, axis, dtype, None)


def accumulated_product(a, axis: int = 0, dtype=None):
    """The running products along an axis, as `multiply.accumulate` returns them."""
    return _running("multiply.accumulate", lax.cumprod, a, axis, dtype, None)


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running sums along an axis, with NaN counted as zero.

    Args:
        a: an array.
        axis: the axis; by default, the array is taken as one row.
        dtype: the dtype of the sums; by default that of `a`.
        out: not supported.

    Returns:
        An array of the shape of `a`, or a vector if `axis` is None.

    Raises:
        ValueError: `axis` is out of bounds.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
        Array([1., 1., 4.], dtype=float32)
    """
    return _running("nancumsum", lax.cumsum, a, axis, dtype, out, fill=0)


def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running products along an axis, with NaN counted as one.

    Args:
        a: an array.
        axis: the axis; by default, the array is taken as one row.
        dtype: the dtype of the products; by default that of `a`.
        out: not supported.

    Returns:
        An array of the shape of `a`, or a vector if `axis` is None.

    Raises:
        ValueError: `axis` is out of bounds.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
        Array([2., 2., 6.], dtype=float32)
    """
    return _running("nancumprod", lax.cumprod, a, axis, dtype, out, fill=1)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The running sums along an axis, as the array API standard defines them.

    Args:
        x: an array with at least one axis.
        axis: the axis; it must be named if there are several.
        dtype: the dtype of the sums; by default that of `x`, and for booleans and integers of fewer
            bits the default integers.
        include_initial: whether a zero comes first.

    Returns:
        An array of the shape of `x`; with `include_initial`, the axis is longer by one.

    Raises:
        ValueError: `x` is a scalar, or `axis` is missing or out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", lax.cumsum, 0, x, axis, dtype, include_initial=include_initial)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The running products along an axis, as the array API standard defines them.

    Args:
        x: an array with at least one axis.
        axis: the axis; it must be named if there are several.
        dtype: the dtype of the products; by default that of `x`, and for booleans and integers of
            fewer bits the default integers.
        include_initial: whether a one comes first.

    Returns:
        An array of the shape of `x`; with `include_initial`, the axis is longer by one.

    Raises:
        ValueError: `x` is a scalar, or `axis` is missing or out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", lax.cumprod, 1, x, axis, dtype, include_initial=include_initial)


def _cumulative(name: str, op, first, x, axis, dtype, *, include_initial):
    x = as_operand(name, x)
    if not x.aval.ndim:
        raise ValueError(f"{name}: x must have at least one axis, got a scalar.")
    if axis is None:
        if x.aval.ndim > 1:
            raise ValueError(
                f"{name}: axis is missing for an array of shape {x.aval.shape}. Name one of its "
                f"{x.aval.ndim} axes; only for a vector may axis be left out."
            )
        axis = 0
    axis = axis_of(axis, x.aval.ndim)
    y = _running(name, op, x, axis, dtype, None, promote=True)
    if not include_initial:
        return y
    shape = tuple([1 if i == axis else n for i, n in enumerate(y.aval.shape)])
    return lax.concatenate([lax.full(shape, number(first, y.aval.dtype)), y], axis)
