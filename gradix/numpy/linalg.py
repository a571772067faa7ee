"""Linear algebra: norms, powers and chains of matrices; factorizations and equations of the files beside."""

from __future__ import annotations

from operator import index as as_int

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._base.lazy import claim
from gradix._base.listing import listing
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.numpy import matrices, matrix_host_implementations, products, shapes
from gradix.numpy.arithmetic import power
from gradix.numpy.axes import axes_of, axis_of
from gradix.numpy.contraction import einsum
from gradix.numpy.decompositions import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from gradix.numpy.determinants import SlogdetResult, det, slogdet
from gradix.numpy.extremes import max, min
from gradix.numpy.products import vecdot
from gradix.numpy.promotion import as_operand, broadcast_to, convert, inexact_operand, number
from gradix.numpy.reductions import sum
from gradix.numpy.solving import inv, lstsq, matrix_rank, pinv, solve, tensorinv, tensorsolve

matrix_transpose = shapes.matrix_transpose

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


# -- norms -----------------------------------------------------------------------------------------


@replayed
def norm(x, ord=None, axis=None, keepdims: bool = False) -> Array:
    """The norm of a vector, of a matrix, or of each one along some axes.

    Args:
        x: an array.
        ord: for vectors a number p, infinity with either sign, or 0 for the count of elements that
            are not zero; for matrices "fro", "nuc", 1, -1, 2, -2, or infinity with either sign. By
            default 2 and "fro".
        axis: one axis for vectors, two for matrices; by default all of a vector or matrix, or
            without `ord` of any array.
        keepdims: keep the axes, with size 1.

    Raises:
        ValueError: the order or the number of axes does not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
    """
    x = inexact_operand("norm", x)
    ndim = x.aval.ndim
    if axis is None:
        if ord is None:
            return _euclidean(x, tuple(range(ndim)), keepdims)
        if ndim not in (1, 2):
            raise ValueError(
                f"norm with ord={ord!r} needs a vector or a matrix, or the axes of these; got shape "
                f"{x.aval.shape}."
            )
        axis = tuple(range(ndim))
    axes = axes_of(axis, ndim)
    if len(axes) == 1:
        return _vector_norm(x, axes, keepdims, 2 if ord is None else ord)
    if len(axes) == 2:
        return _matrix_norm(x, axes, keepdims, "fro" if ord is None else ord)
    raise ValueError(
        f"Invalid axis values ({axis}) for jnp.linalg.norm: one axis for vectors, two for matrices."
    )


@replayed
def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2) -> Array:
    """The norm of vectors along an axis, or of all elements.

    Args:
        x: an array.
        axis: one axis or several, taken as one row; by default all.
        keepdims: keep the axes, with size 1.
        ord: a number p, infinity with either sign, or 0 for the count of elements that are not
            zero.

    Returns:
        Floats; of integers the largest, smallest and the sum of absolute values are integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
        Array([ 5., 10.], dtype=float32)
    """
    given = as_operand("vector_norm", x)
    if given.aval.dtype not in INEXACT and not isinstance(ord, str) and ord in (1, np.inf, -np.inf):
        return _whole_norm(given, axes_of(axis, given.aval.ndim), keepdims, ord)
    x = inexact_operand("vector_norm", given)
    return _vector_norm(x, axes_of(axis, x.aval.ndim), keepdims, ord)


def _whole_norm(x, axes, keepdims: bool, order):
    """A norm of integers that is one."""
    size = abs(x)
    if order == 1:
        return sum(size, axes, keepdims=keepdims)
    return (
        max(size, axes, keepdims=keepdims, initial=0)
        if order > 0
        else min(size, axes, keepdims=keepdims)
    )


@replayed
def matrix_norm(x, /, *, keepdims: bool = False, ord="fro") -> Array:
    """The norm of matrices, which are the last two axes.

    Args:
        x: an array.
        keepdims: keep the axes, with size 1.
        ord: "fro", "nuc", 1, -1, 2, -2, or infinity with either sign.

    Raises:
        ValueError: the array has less than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matrix_norm(jnp.ones((2, 2)))
        Array(2., dtype=float32)
    """
    x = inexact_operand("matrix_norm", x)
    if x.aval.ndim < 2:
        raise ValueError(f"matrix_norm needs two axes at least, got shape {x.aval.shape}.")
    return _matrix_norm(x, (x.aval.ndim - 2, x.aval.ndim - 1), keepdims, ord)


def _euclidean(x, axes, keepdims: bool):
    squares = lax.real(lax.mul(x, lax.conj(x))) if x.aval.dtype in COMPLEX else lax.mul(x, x)
    return lax.sqrt(sum(squares, axes, keepdims=keepdims))


def _vector_norm(x, axes, keepdims: bool, order):
    if order is None or order == 2:
        return _euclidean(x, axes, keepdims)
    if isinstance(order, str):
        raise ValueError(f"Invalid order '{order}' for vector norm: it takes numbers and infinity.")
    if order == np.inf:
        return max(lax.abs(x), axes, keepdims=keepdims, initial=0)
    if order == -np.inf:
        return min(lax.abs(x), axes, keepdims=keepdims, initial=np.inf)
    if order == 0:
        there = lax.ne(x, number(0, x.aval.dtype))
        return sum(
            convert(
                there, dtypes.real_dtype(x.aval.dtype) if x.aval.dtype in COMPLEX else x.aval.dtype
            ),
            axes,
            keepdims=keepdims,
        )
    size = lax.abs(x)
    if order == 1:
        return sum(size, axes, keepdims=keepdims)
    p = convert(as_operand("norm", order), size.aval.dtype)
    total = sum(power(size, p), axes, keepdims=keepdims)
    return power(total, lax.div(number(1, size.aval.dtype), p))


def _matrix_norm(x, axes, keepdims: bool, order):
    rows, columns = axes
    if order in ("fro", "f"):
        return _euclidean(x, axes, keepdims)
    if order in (2, -2, "nuc"):
        return _spectral_norm(x, axes, keepdims, order)
    if isinstance(order, str) or order not in (1, -1, np.inf, -np.inf):
        raise ValueError(
            f"Invalid order '{order}' for matrix norm: it takes 'fro', 'nuc', 1, -1, 2, -2, inf "
            "and -inf."
        )
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
    out = (
        sum(s, -1)
        if order == "nuc"
        else max(s, -1, initial=0)
        if order == 2
        else min(s, -1, initial=np.inf)
    )
    return lax.expand_dims(out, axes) if keepdims else out


@replayed(host=matrix_host_implementations.cond)
def cond(x, p=None):
    """The condition number of matrices: the norm times the norm of the inverse.

    Args:
        x: matrices, in the last two axes.
        p: the order of the norm, as for `norm`; by default 2, the ratio of the largest and least
            singular values.

    Raises:
        ValueError: the array has less than two axes, is empty, or has to be square for this `p`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
        Array(2., dtype=float32)
    """
    x = inexact_operand("cond", x)
    shape = x.aval.shape
    if len(shape) < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={shape}")
    if not shape[-1] or not shape[-2]:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={shape}")
    if p in (None, 2, -2):
        s = svdvals(x)
        return lax.div(s[..., -1], s[..., 0]) if p == -2 else lax.div(s[..., 0], s[..., -1])
    if shape[-1] != shape[-2]:
        raise ValueError(f"jnp.linalg.cond: for p={p}, array must be square; got arr.shape={shape}")
    axes = (x.aval.ndim - 2, x.aval.ndim - 1)
    return lax.mul(_matrix_norm(x, axes, False, p), _matrix_norm(inv(x), axes, False, p))


# -- powers and chains -----------------------------------------------------------------------------


@replayed
def matrix_power(a, n: int) -> Array:
    """The n-th power of square matrices, by repeated squaring; of the inverse where `n` is negative.

    Raises:
        TypeError: the matrices are not square, or `n` is no integer.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
        Array([[1, 3],
               [0, 1]], dtype=int32)
    """
    x = as_operand("matrix_power", a)
    shape = x.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError(f"Last 2 dimensions must be square, got shape {shape}.")
    try:
        n = as_int(n)
    except TypeError:
        raise TypeError(
            f"exponent must be an integer, got {n!r} of type {type(n).__name__}."
        ) from None
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return broadcast_to(matrices.eye(shape[-1], dtype=x.aval.dtype), shape)
    out = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return x if out is None else out


def multi_dot(arrays, *, precision=None) -> Array:
    """The product of a chain of matrices, multiplied in the order that takes the fewest operations.

    Args:
        arrays: two matrices at least; the first and the last may be vectors.
        precision: as for `matmul`.

    Raises:
        ValueError: there are less than two arrays, or their ranks or sizes do not make a product.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
        Array([12., 12.], dtype=float32)
    """
    xs = [as_operand("multi_dot", x, i) for i, x in enumerate(arrays)]
    if len(xs) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got {len(xs)}.")
    ranks = [x.aval.ndim for x in xs]
    if ranks[0] not in (1, 2) or ranks[-1] not in (1, 2) or any(r != 2 for r in ranks[1:-1]):
        raise ValueError(
            "multi_dot: the arrays must be matrices, the first and the last may be vectors; got ranks "
            f"{ranks}."
        )
    for x, y in zip(xs, xs[1:]):
        if x.aval.shape[-1] != y.aval.shape[0]:
            raise ValueError(
                f"multi_dot: shapes {x.aval.shape} and {y.aval.shape} of neighbours do not fit."
            )
    terms: list = []
    for x in xs:
        start = terms[-1][-1] if terms else 0
        terms.append([start, start + 1] if x.aval.ndim == 2 else [start])
    ends = [*(terms[0][:1] if ranks[0] == 2 else []), *(terms[-1][-1:] if ranks[-1] == 2 else [])]
    given = [v for x, t in zip(xs, terms) for v in (x, t)]
    return einsum(*given, ends, optimize="auto", precision=precision)


# -- matrices as the last axes ---------------------------------------------------------------------


def matmul(x1, x2, /, *, precision=None, preferred_element_type=None) -> Array:
    """The matrix product, as `numpy.matmul`.

    Args:
        x1, x2: of shapes (..., m, k) and (..., k, n), or vectors of size k.
        precision, preferred_element_type: as for `lax.dot_general`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matmul(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    return products.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1, x2, /, *, axes=2, precision=None, preferred_element_type=None, out_sharding=None
) -> Array:
    """The sum of products over several axes of each array, as `numpy.tensordot`.

    Args:
        x1, x2: arrays of any rank.
        axes: how many last axes of `x1` and first ones of `x2`, or a pair of sequences of axes.
        precision, preferred_element_type: as for `lax.dot_general`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
        (2, 4)
    """
    if out_sharding is not None:
        return divided(
            tensordot,
            out_sharding,
            x1,
            x2,
            axes=axes,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def cross(x1, x2, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three components.

    Args:
        x1, x2: arrays that broadcast, with three components along `axis`.
        axis: the axis of the components.

    Raises:
        ValueError: the vectors do not have three elements.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    x, y = as_operand("cross", x1), as_operand("cross", x2, 1)
    sizes = [v.aval.shape[axis_of(axis, v.aval.ndim)] for v in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(
            f"Both input arrays must be (arrays of) 3-dimensional vectors, but they have {sizes[0]} and "
            f"{sizes[1]} components."
        )
    return products.cross(x, y, axis=axis)


def outer(x1, x2, /) -> Array:
    """The products of every element of one vector with every element of another.

    Raises:
        ValueError: an operand is no vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.outer(jnp.arange(2), jnp.arange(2))
        Array([[0, 0],
               [0, 1]], dtype=int32)
    """
    x, y = as_operand("outer", x1), as_operand("outer", x2, 1)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, but they are "
            f"x1.ndim={x.aval.ndim} x2.ndim={y.aval.ndim}."
        )
    return products.outer(x, y)


def diagonal(x, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices, which are the last two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.diagonal(jnp.arange(4).reshape(2, 2))
        Array([0, 3], dtype=int32)
    """
    return matrices.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset: int = 0, dtype=None) -> Array:
    """The sums of the diagonals of matrices, which are the last two axes.

    Args:
        x: an array of shape (..., m, n).
        offset: which diagonal; positive ones are above the main one.
        dtype: of the sums; None for NumPy's choice.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.trace(jnp.arange(4).reshape(2, 2))
        Array(3, dtype=int32)
    """
    return matrices.trace(x, offset, -2, -1, dtype)


__dir__ = listing(__name__)
claim(__name__, "gradix.numpy.")
