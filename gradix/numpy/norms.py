"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy.arithmetic import power
from gradix.numpy.axes import axes_of
from gradix.numpy.decompositions import svdvals
from gradix.numpy.extremes import max, min
from gradix.numpy.promotion import as_operand, convert, inexact_operand, number, working_dtype
from gradix.numpy.reductions import sum
from gradix.numpy.solving import inv

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes


@replayed
def norm(x: ArrayLike, ord: float | str | None = None, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """The norms of vectors or of matrices along axes of an array.

    Args:
        x: an array, real or complex.
        ord: for vectors a number p, inf, -inf, or 0 for the number of elements other than zero; for
            matrices "fro", "nuc", 1, -1, 2, -2, inf or -inf. By default 2 and "fro".
        axis: one axis for vectors, two for matrices; by default all axes of a vector or matrix, or
            of any array if `ord` is not given.
        keepdims: whether the axes stay, with size 1.

    Returns:
        A real array in a floating dtype, with the shape of `x` without the axes.

    Raises:
        ValueError: `ord` is unknown, or does not fit the number of axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
        >>> jnp.linalg.norm(jnp.ones((3, 4)), axis=1), jnp.linalg.norm(jnp.eye(4))
        (Array([2., 2., 2.], dtype=float32), Array(2., dtype=float32))

    See also:
        `jnp.linalg.vector_norm`, `jnp.linalg.matrix_norm`, `jnp.vdot`.
    """
    x = inexact_operand("norm", x)
    ndim = x.aval.ndim
    if axis is None:
        if ord is None:
            return _euclidean(x, tuple(range(ndim)), keepdims)
        if ndim not in (1, 2):
            raise ValueError(
                f"norm: with ord={ord!r}, x must be a vector or a matrix, got shape "
                f"{x.aval.shape}. Give axis= for norms along its axes."
            )
        axis = tuple(range(ndim))
    axes = axes_of(axis, ndim)
    if len(axes) == 1:
        return _vector_norm(x, axes, keepdims, 2 if ord is None else ord)
    if len(axes) == 2:
        return _matrix_norm(x, axes, keepdims, "fro" if ord is None else ord)
    raise ValueError(f"norm: axis must be one axis for vectors or two for matrices, got {axis}.")


@replayed
def vector_norm(x: ArrayLike, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float | str = 2) -> Array:
    """The norms of vectors along axes of an array, or of all its elements.

    Args:
        x: an array, real or complex.
        axis: an axis, or several that are taken as one row; all by default.
        keepdims: whether the axes stay, with size 1.
        ord: a number p, inf, -inf, or 0 for the number of elements other than zero.

    Returns:
        A real array with the shape of `x` without the axes, in a floating dtype. For integers and
        `ord` 1, inf or -inf, the norms are integers.

    Raises:
        ValueError: `ord` is a string, or `axis` is out of bounds.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
        Array([ 5., 10.], dtype=float32)
    """
    given = as_operand("vector_norm", x)
    if given.aval.dtype not in INEXACT and not isinstance(ord, str) and ord in (1, np.inf, -np.inf):
        return _integer_norm(given, axes_of(axis, given.aval.ndim), keepdims, ord)
    x = inexact_operand("vector_norm", given)
    return _vector_norm(x, axes_of(axis, x.aval.ndim), keepdims, ord)


def _integer_norm(x, axes, keepdims: bool, order):
    """A norm of integers that is an integer itself."""
    size = abs(x)
    if order == 1:
        return sum(size, axes, keepdims=keepdims)
    return max(size, axes, keepdims=keepdims, initial=0) if order > 0 else min(size, axes, keepdims=keepdims)


@replayed
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str = "fro") -> Array:
    """The norms of matrices.

    Args:
        x: matrices of shape (..., m, n), real or complex.
        keepdims: whether the axes of the matrices stay, with size 1.
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Returns:
        A real array of shape (...), in a floating dtype.

    Raises:
        ValueError: `x` has less than two axes, or `ord` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matrix_norm(jnp.ones((2, 2)))
        Array(2., dtype=float32)
    """
    x = inexact_operand("matrix_norm", x)
    if x.aval.ndim < 2:
        raise ValueError(f"matrix_norm: x must have at least two axes, got shape {x.aval.shape}.")
    return _matrix_norm(x, (x.aval.ndim - 2, x.aval.ndim - 1), keepdims, ord)


def _widely(function):
    """The norm of half precisions in float32, as their squares and sums overflow."""

    def norm(x, *args):
        dtype = x.aval.dtype
        work = working_dtype(dtype)
        out = function(convert(x, work, x.aval.weak_type), *args)
        return out if work == dtype else convert(out, dtype)

    return norm


@_widely
def _euclidean(x, axes, keepdims: bool):
    squares = lax.real(lax.mul(x, lax.conj(x))) if x.aval.dtype in COMPLEX else lax.mul(x, x)
    return lax.sqrt(sum(squares, axes, keepdims=keepdims))


@_widely
def _vector_norm(x, axes, keepdims: bool, order):
    if order is None or order == 2:
        return _euclidean(x, axes, keepdims)
    if isinstance(order, str):
        raise ValueError(f"ord must be a number, inf or -inf for vectors, got {order!r}.")
    if order == np.inf:
        return max(lax.abs(x), axes, keepdims=keepdims, initial=0)
    if order == -np.inf:
        return min(lax.abs(x), axes, keepdims=keepdims, initial=np.inf)
    if order == 0:
        there = lax.ne(x, number(0, x.aval.dtype))
        return sum(
            convert(there, dtypes.real_dtype(x.aval.dtype) if x.aval.dtype in COMPLEX else x.aval.dtype),
            axes,
            keepdims=keepdims,
        )
    size = lax.abs(x)
    if order == 1:
        return sum(size, axes, keepdims=keepdims)
    p = convert(as_operand("norm", order), size.aval.dtype)
    total = sum(power(size, p), axes, keepdims=keepdims)
    return power(total, lax.div(number(1, size.aval.dtype), p))


@_widely
def _matrix_norm(x, axes, keepdims: bool, order):
    rows, columns = axes
    if order in ("fro", "f"):
        return _euclidean(x, axes, keepdims)
    if order in (2, -2, "nuc"):
        return _spectral_norm(x, axes, keepdims, order)
    if isinstance(order, str) or order not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices, got {order!r}.")
    inner, outer_axis = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = sum(lax.abs(x), inner, keepdims=True)
    out = (
        max(sums, outer_axis, keepdims=True, initial=0)
        if order > 0
        else min(sums, outer_axis, keepdims=True, initial=np.inf)
    )
    return out if keepdims else lax.squeeze(out, axes)


def _spectral_norm(x, axes, keepdims: bool, order):
    rest = tuple([i for i in range(x.aval.ndim) if i not in axes])
    s = svdvals(lax.transpose(x, (*rest, *axes)))
    out = sum(s, -1) if order == "nuc" else max(s, -1, initial=0) if order == 2 else min(s, -1, initial=np.inf)
    return lax.expand_dims(out, axes) if keepdims else out


@replayed
def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """The condition numbers of matrices: their norm times the norm of their inverse.

    Args:
        x: matrices of shape (..., m, n), real or complex; square ones, unless `p` is 2 or -2.
        p: the order of the norm, as for `norm`; by default 2, which gives the ratio of the largest
            and the smallest singular value.

    Returns:
        A real array of shape (...), in a floating dtype.

    Raises:
        ValueError: the array has less than two axes or is empty, or the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
        Array(2., dtype=float32)
    """
    x = inexact_operand("cond", x)
    shape = x.aval.shape
    if len(shape) < 2:
        raise ValueError(f"cond: x must have at least two axes, got shape {shape}.")
    if not shape[-1] or not shape[-2]:
        raise ValueError(f"cond: matrices must not be empty, got shape {shape}.")
    if p in (None, 2, -2):
        s = svdvals(x)
        return lax.div(s[..., -1], s[..., 0]) if p == -2 else lax.div(s[..., 0], s[..., -1])
    if shape[-1] != shape[-2]:
        raise ValueError(f"cond: matrices must be square for p={p!r}, got shape {shape}. Use p=2 for others.")
    axes = (x.aval.ndim - 2, x.aval.ndim - 1)
    return lax.mul(_matrix_norm(x, axes, False, p), _matrix_norm(inv(x), axes, False, p))
