"""Matrices with a pattern: identity, triangles, diagonals, Vandermonde matrices."""

from __future__ import annotations

from operator import index as as_int
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base import errors
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.array import wrap_host
from gradix._core.dimensions.expression import as_dim, is_count, is_symbolic_shape, larger, smaller
from gradix._core.operators import Array
from gradix._core.trace import Tracer, is_unknown
from gradix.numpy.arithmetic import power
from gradix.numpy.axes import axis_of, no_out
from gradix.numpy.indexing import take_index
from gradix.numpy.placement import place
from gradix.numpy.promotion import as_operand, broadcast_to, convert, number, numeric_operand
from gradix.numpy.ranges import arange
from gradix.numpy.reductions import sum

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Device, DTypeLike, Size
    from gradix._core.sharding import Sharding

_BOOL = np.dtype(bool)
masks = lazy_module("gradix.numpy.masks")

_INT32 = np.dtype("int32")


# -- identity and triangles ------------------------------------------------------------------------


@replayed
def eye(
    N: Size,
    M: Size | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; `N` by default.
        k: the diagonal; positive ones lie above the main one.
        dtype: the dtype; the default floating dtype if None.
        device: the device, or sharding, to which the matrix goes.

    Raises:
        TypeError: `N` or `M` is traced or not an integer.
        ValueError: `N` or `M` is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.eye(2, 3, k=1)
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
        >>> jnp.eye(2, dtype=int)
        Array([[1, 0],
               [0, 1]], dtype=int32)

    See also:
        `jnp.identity`, `jnp.diag`, `jnp.tri`, `nn.one_hot`.
    """
    dtype = dtypes.requested_dtype(dtype, "eye", stacklevel=3)
    shape = _matrix_shape("eye", N, M)
    rows, columns = lax.broadcasted_iota(_INT32, shape, 0), lax.broadcasted_iota(_INT32, shape, 1)
    out = convert(lax.eq(lax.add(rows, _offset(k)), columns), dtype)
    return out if device is None else place(out, device, None)


def _matrix_shape(name: str, rows, columns) -> tuple:
    shape = (rows, rows if columns is None else columns)
    for n in shape:
        if is_unknown(n) or isinstance(n, float) or not hasattr(n, "__index__") and not hasattr(n, "__floordiv__"):
            raise TypeError(
                f"{name}: the numbers of rows and columns must be static integers, got {shape}. "
                "They determine the shape of the matrix: pass what they depend on as static (static_argnums or "
                f"static_argnames of jit).{errors.places_of(n) if isinstance(n, Tracer) else ''}"
            )
        if isinstance(n, int) and n < 0:
            raise ValueError(f"{name}: the numbers of rows and columns must not be negative, got {shape}.")
    return shape


def _row_numbers(shape: tuple, k):
    """The row number of each element plus `k`."""
    return lax.add(lax.broadcasted_iota(_INT32, shape, 0), _offset(k))


def _offset(k):
    """The number of a diagonal; those beyond every matrix are cut to what an int32 holds."""
    if isinstance(k, int):
        return number(max(-(1 << 30), min(k, 1 << 30)), _INT32)
    return convert(as_operand("k", k), _INT32)


def identity(n: Size, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix of shape (n, n), in the default floating dtype if `dtype` is None.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.identity(2, int)
        Array([[1, 0],
               [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


@replayed
def tri(N: Size, M: Size | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below a diagonal, and zeros above it.

    Args:
        N: the number of rows.
        M: the number of columns; `N` by default.
        k: the diagonal; positive ones lie above the main one.
        dtype: the dtype of the matrix; float32 if None, also with x64 enabled.

    Raises:
        TypeError: `N` or `M` is traced or not an integer.
        ValueError: `N` or `M` is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.tri(2, 3, dtype=int)
        Array([[1, 0, 0],
               [1, 1, 0]], dtype=int32)
    """
    dtype = np.dtype("float32") if dtype is None else dtypes.requested_dtype(dtype, "tri", stacklevel=3)
    return convert(_lower(_matrix_shape("tri", N, M), k), dtype)


def _lower(shape: tuple, k):
    """A mask of the elements on and below diagonal `k` of a matrix."""
    return lax.ge(_row_numbers(shape, k), lax.broadcasted_iota(_INT32, shape, 1))


@replayed
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The matrix with zeros above diagonal `k`, or each matrix of a stack (..., m, n).

    Raises:
        ValueError: `m` has less than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.tril(jnp.ones((2, 2)))
        Array([[1., 0.],
               [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, k, True)


@replayed
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The matrix with zeros below diagonal `k`, or each matrix of a stack (..., m, n).

    Raises:
        ValueError: `m` has less than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.triu(jnp.ones((2, 2)))
        Array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, False)


def _triangle(name: str, m, k, lower: bool):
    x = as_operand(name, m)
    shape = x.aval.shape
    if len(shape) < 2:
        raise ValueError(f"{name}: m must have at least two axes, got shape {shape}.")
    k = k if lower else k - 1
    mask = broadcast_to(_lower(shape[-2:], k), shape)
    zeros = lax.full_like(x, 0)
    return lax.select_n(mask, zeros, x) if lower else lax.select_n(mask, x, zeros)


def _triangle_indices(mask: np.ndarray) -> tuple:
    dtype = dtypes.python_scalar_dtype(int)
    return tuple([wrap_host(i.astype(dtype)) for i in np.nonzero(mask)])


def _open_triangle_indices(n, k: int, m, lower: bool) -> tuple:
    """The indices of a triangle of a matrix of symbolic size."""
    k = k if lower else k - 1
    count = _below(n + k, m) - _below(k, m)
    mask = _lower((n, m), k)
    mask = mask if lower else lax.bitwise_not(mask)
    places, _ = masks.first_places(lax.reshape(mask, (n * m,)), count if lower else n * m - count)
    return tuple(masks.unravelled(places, (n, m)))


def _below(diagonal, m):
    """The number of elements below a diagonal, in the rows of m columns down to row `diagonal`."""
    within = smaller(larger(diagonal, 0), m)
    return within * (within + 1) // 2 + larger(diagonal - m, 0) * m


def tril_indices(n: Size, k: int = 0, m: Size | None = None) -> tuple:
    """Row and column indices of the elements on and below diagonal `k` of an `n` by `m` matrix.

    Args:
        n: the number of rows.
        k: the diagonal; positive ones lie above the main one.
        m: the number of columns; `n` by default.

    Returns:
        A pair of integer vectors.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.tril_indices(2)
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, k = as_dim(n), as_int(k)
    m = n if m is None else as_dim(m)
    if is_symbolic_shape((n, m)):
        return _open_triangle_indices(n, k, m, True)
    return _triangle_indices(np.tri(n, m, k, dtype=bool))


def triu_indices(n: Size, k: int = 0, m: Size | None = None) -> tuple:
    """Row and column indices of the elements on and above diagonal `k` of an `n` by `m` matrix.

    Args:
        n: the number of rows.
        k: the diagonal; positive ones lie above the main one.
        m: the number of columns; `n` by default.

    Returns:
        A pair of integer vectors.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.triu_indices(2)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, k = as_dim(n), as_int(k)
    m = n if m is None else as_dim(m)
    if is_symbolic_shape((n, m)):
        return _open_triangle_indices(n, k, m, False)
    return _triangle_indices(~np.tri(n, m, k - 1, dtype=bool))


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple:
    """The row and column indices of the elements on and below diagonal `k` of a matrix.

    Raises:
        ValueError: `arr` is not a matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.tril_indices_from(jnp.ones((2, 2)))
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _two_axes("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple:
    """The row and column indices of the elements on and above diagonal `k` of a matrix.

    Raises:
        ValueError: `arr` is not a matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.triu_indices_from(jnp.ones((2, 2)))
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, m = _two_axes("triu_indices_from", arr)
    return triu_indices(n, k, m)


def _two_axes(name: str, arr) -> tuple:
    shape = arr.shape if hasattr(arr, "shape") else as_operand(name, arr).aval.shape
    if len(shape) != 2:
        raise ValueError(f"{name}: arr must be a matrix, got shape {shape}.")
    return shape


# -- diagonals -------------------------------------------------------------------------------------


def diag_indices(n: int, ndim: int = 2) -> tuple:
    """The indices of the main diagonal of an array with `ndim` axes of size `n`.

    Returns:
        A tuple of `ndim` vectors, each with the numbers 0, 1, ... n - 1.

    Raises:
        ValueError: `n` or `ndim` is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.diag_indices(2)
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = as_dim(n), as_int(ndim)
    for name, value in (("n", n), ("ndim", ndim)):
        if value < 0:
            raise ValueError(f"diag_indices: {name} must not be negative, got {value}.")
    return (arange(n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple:
    """The indices of the main diagonal of an array whose axes have one size.

    Returns:
        A tuple with a vector for each axis.

    Raises:
        ValueError: the array has less than two axes, or axes of different sizes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.diag_indices_from(jnp.ones((2, 2)))
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = as_operand("diag_indices_from", arr).aval.shape
    if len(shape) < 2:
        raise ValueError(f"diag_indices_from: arr must have at least two axes, got shape {shape}.")
    if len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: the axes of arr must have equal sizes, got shape {shape}.")
    return diag_indices(shape[0], len(shape))


@replayed
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements on a diagonal, along a new last axis.

    Args:
        a: an array with at least two axes.
        offset: the diagonal; positive ones lie above the main one.
        axis1: the axis of the rows.
        axis2: the axis of the columns.

    Returns:
        An array of the dtype of `a`, with its shape without the two axes, and the diagonal last.

    Raises:
        ValueError: the array has less than two axes, or both axes are the same.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.diagonal(jnp.arange(9).reshape(3, 3), 1)
        Array([1, 5], dtype=int32)
    """
    x = as_operand("diagonal", a)
    ndim = x.aval.ndim
    if ndim < 2:
        raise ValueError(f"diagonal: the array must have at least two axes, got shape {x.aval.shape}.")
    i, j = axis_of(axis1, ndim), axis_of(axis2, ndim)
    if i == j:
        raise ValueError(f"diagonal: axis1 and axis2 must differ, got {axis1} and {axis2}.")
    offset = as_int(offset)
    x = lax.transpose(x, (*[n for n in range(ndim) if n not in (i, j)], i, j))
    rows, columns = x.aval.shape[-2:]
    # JAX types the result so.
    weak = x.aval.weak_type and not (ndim == 2 and rows == columns and not offset)
    return convert(_last_diagonal(x, offset), x.aval.dtype, weak)


def _last_diagonal(x, offset: int):
    *lead, rows, columns = x.aval.shape
    size = larger(0, smaller(rows + min(offset, 0), columns - max(offset, 0)))
    if not size:
        return lax.full((*lead, 0), number(0, x.aval.dtype))
    top, left = max(-offset, 0), max(offset, 0)
    n = len(lead)
    if is_count(size):
        at = lax.iota(np.dtype("int32"), size)
        return take_index(x, (..., at + top, at + left))
    x = lax.slice(x, (*(0,) * n, top, left), (*lead, top + size, left + size))
    # Written in rows of size + 1, the diagonal of a square matrix is the first column.
    flat = lax.reshape(x, (*lead, size * size))
    flat = lax.pad(flat, number(0, x.aval.dtype), (*[(0, 0, 0)] * n, (0, size, 0)))
    return lax.squeeze(lax.slice_in_dim(lax.reshape(flat, (*lead, size, size + 1)), 0, 1, axis=n + 1), (n + 1,))


@replayed
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with a vector on its diagonal `k`, or the diagonal `k` of a matrix.

    Returns:
        A matrix of shape (n + |k|, n + |k|) for a vector of size n, or a vector.

    Raises:
        ValueError: `v` is neither a vector nor a matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.diag(jnp.array([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x = as_operand("diag", v)
    k = as_int(k)
    if x.aval.ndim == 2:
        return diagonal(x, k)
    if x.aval.ndim != 1:
        raise ValueError(
            f"diag: v must be a vector or a matrix, got shape {x.aval.shape}. Use jnp.diagonal for stacks of matrices."
        )
    n = x.aval.shape[0] + abs(k)
    zero = number(0, x.aval.dtype, x.aval.weak_type)
    row = lax.pad(x, zero, ((max(0, k), max(0, -k), 0),))
    on = lax.eq(_row_numbers((n, n), k), lax.broadcasted_iota(_INT32, (n, n), 1))
    return lax.select_n(on, lax.full((n, n), zero), lax.broadcast_in_dim(row, (n, n), (1,)))


@replayed
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of `v`, taken as one row, on its diagonal `k`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.diagflat(jnp.array([[1, 2]]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x = as_operand("diagflat", v)
    return diag(convert(lax.reshape(x, (x.aval.size,)), x.aval.dtype), k)


@replayed
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The sum of the elements on a diagonal.

    Args:
        a: an array with at least two axes.
        offset: the diagonal; positive ones lie above the main one.
        axis1: the axis of the rows.
        axis2: the axis of the columns.
        dtype: the dtype of the sum; by default that of `a`, and for booleans and integers of fewer
            bits the default integers.
        out: not supported.

    Returns:
        An array with the shape of `a` without the two axes.

    Raises:
        ValueError: the array has less than two axes, or both axes are the same.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.trace(jnp.arange(9).reshape(3, 3))
        Array(12, dtype=int32)
    """
    no_out("trace", out)
    return sum(diagonal(numeric_operand("trace", a), offset, axis1, axis2), -1, dtype)


@replayed
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix whose rows hold powers of the elements of a vector (a Vandermonde matrix).

    Args:
        x: a vector.
        N: the number of columns; by default the size of `x`.
        increasing: whether the powers increase from column to column, from 0 on.

    Returns:
        A matrix of shape (size of `x`, N), in the dtype of `x`.

    Raises:
        ValueError: `x` is not a vector, or `N` is negative.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.vander(jnp.array([1, 2, 3]))
        Array([[1, 1, 1],
               [4, 2, 1],
               [9, 3, 1]], dtype=int32)
    """
    x = as_operand("vander", x)
    if x.aval.ndim != 1:
        raise ValueError(f"vander: x must be a vector, got shape {x.aval.shape}.")
    n = x.aval.shape[0] if N is None else as_int(N)
    if n < 0:
        raise ValueError(f"vander: N must not be negative, got {N}.")
    exponents = lax.iota(x.aval.dtype if x.aval.dtype != _BOOL else _INT32, n)
    if not increasing:
        exponents = lax.sub(number(n - 1, exponents.aval.dtype), exponents)
    rows = lax.broadcast_in_dim(x, (x.aval.shape[0], 1), (0,))
    return power(rows, lax.broadcast_in_dim(exponents, (1, n), (1,)))
