"""Linear algebra: norms, powers and chains of matrices, and the factorizations and solvers."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int
from typing import TYPE_CHECKING, Any

from gradix._api.constraints import divided
from gradix._api.jit.replay import replayed
from gradix._base.lazy import alias, claim
from gradix._base.listing import listing
from gradix._core.operators import Array
from gradix.numpy import matrices, products, shapes
from gradix.numpy.axes import axis_of
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
from gradix.numpy.norms import cond, matrix_norm, norm, vector_norm
from gradix.numpy.products import vecdot as _vecdot
from gradix.numpy.promotion import as_operand, broadcast_to
from gradix.numpy.solving import inv, lstsq, matrix_rank, pinv, solve, tensorinv, tensorsolve

if TYPE_CHECKING:
    from gradix import lax
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

matrix_transpose = alias(shapes.matrix_transpose, "matrix_transpose", __name__)
vecdot = alias(_vecdot, "vecdot", __name__)

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


# -- powers and chains -----------------------------------------------------------------------------


@replayed
def matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th power of square matrices (..., m, m), by repeated squaring.

    If `n` is negative, it is the power -n of the inverse, in a floating dtype.

    Raises:
        TypeError: the matrices are not square, or `n` is not an integer.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
        Array([[1, 3],
               [0, 1]], dtype=int32)
    """
    x = as_operand("matrix_power", a)
    shape = x.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError(f"matrix_power: matrices must be square, got shape {shape}.")
    try:
        n = as_int(n)
    except TypeError:
        raise TypeError(f"matrix_power: n must be an integer, got {n!r} of type {type(n).__name__}.") from None
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


def multi_dot(arrays: Sequence[ArrayLike], *, precision: lax.PrecisionLike = None) -> Array:
    """The product of a chain of matrices, computed in the order that takes the fewest operations.

    Args:
        arrays: a sequence of at least two matrices; the first and the last may be vectors.
        precision: the precision of products, as for `matmul`.

    Returns:
        A matrix, or a vector for one vector at the ends, or a scalar for two.

    Raises:
        ValueError: there are less than two arrays, or their ranks or sizes do not make a product.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
        Array([12., 12.], dtype=float32)
    """
    xs = [as_operand("multi_dot", x, i) for i, x in enumerate(arrays)]
    if len(xs) < 2:
        raise ValueError(f"multi_dot takes at least two arrays, got {len(xs)}.")
    ranks = [x.aval.ndim for x in xs]
    if ranks[0] not in (1, 2) or ranks[-1] not in (1, 2) or any(r != 2 for r in ranks[1:-1]):
        raise ValueError(
            "multi_dot: the arrays must be matrices, but for vectors at the ends, got shapes "
            f"{', '.join([str(x.aval.shape) for x in xs])}."
        )
    for x, y in zip(xs, xs[1:]):
        if x.aval.shape[-1] != y.aval.shape[0]:
            raise ValueError(
                f"multi_dot: neighbours of shapes {x.aval.shape} and {y.aval.shape} do not fit. "
                "The last axis of one and the first of the next must have the same size."
            )
    terms: list = []
    for x in xs:
        start = terms[-1][-1] if terms else 0
        terms.append([start, start + 1] if x.aval.ndim == 2 else [start])
    ends = [*(terms[0][:1] if ranks[0] == 2 else []), *(terms[-1][-1:] if ranks[-1] == 2 else [])]
    given = [v for x, t in zip(xs, terms) for v in (x, t)]
    return einsum(*given, ends, optimize="auto", precision=precision)


# -- matrices as the last axes ---------------------------------------------------------------------


def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The matrix product of `x1` and `x2`, as `jnp.matmul`.

    Args:
        x1, x2: arrays of shapes (..., m, k) and (..., k, n), or vectors of size k.
        precision, preferred_element_type: as for `lax.dot_general`.

    Returns:
        An array of shape (..., m, n), without the axes that vectors lack, in the promoted dtype.

    Raises:
        ValueError: an operand is a scalar.
        TypeError: the sizes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matmul(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[Any] = 2,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The sums of products of `x1` and `x2` over several axes of each, as `jnp.tensordot`.

    Args:
        x1, x2: arrays of any rank.
        axes: the number of last axes of `x1` and first axes of `x2`, or a pair of sequences of
            axes.
        precision, preferred_element_type: as for `lax.dot_general`.
        out_sharding: the sharding of the result.

    Returns:
        An array with the other axes of `x1`, then those of `x2`, in the promoted dtype.

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
    return products.tensordot(x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross products of vectors with three components.

    Args:
        x1, x2: arrays that broadcast, with size 3 along `axis`.
        axis: the axis of the components.

    Returns:
        An array of the broadcast shape, in the promoted dtype.

    Raises:
        ValueError: the vectors do not have three components.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    x, y = as_operand("cross", x1), as_operand("cross", x2, 1)
    sizes = [v.aval.shape[axis_of(axis, v.aval.ndim)] for v in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(f"cross: x1 and x2 must have size 3 along axis {axis}, got sizes {sizes[0]} and {sizes[1]}.")
    return products.cross(x, y, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of each element of `x1` with each element of `x2`: a matrix for two vectors.

    Raises:
        ValueError: an operand is not a vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.outer(jnp.arange(2), jnp.arange(2))
        Array([[0, 0],
               [0, 1]], dtype=int32)
    """
    x, y = as_operand("outer", x1), as_operand("outer", x2, 1)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            f"linalg.outer: x1 and x2 must be vectors, got shapes {x.aval.shape} and "
            f"{y.aval.shape}. jnp.outer flattens them."
        )
    return products.outer(x, y)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices (..., m, n), as an array with the diagonal along its last axis.

    Raises:
        ValueError: `x` has less than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.diagonal(jnp.arange(4).reshape(2, 2))
        Array([0, 3], dtype=int32)
    """
    return matrices.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices.

    Args:
        x: an array of shape (..., m, n).
        offset: the diagonal; positive ones lie above the main one.
        dtype: the dtype of the sums; by default that of `x`, and for booleans and integers of fewer
            bits the default integers.

    Returns:
        An array of shape (...).

    Raises:
        ValueError: `x` has less than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.trace(jnp.arange(4).reshape(2, 2))
        Array(3, dtype=int32)
    """
    return matrices.trace(x, offset, -2, -1, dtype)


__dir__ = listing(__name__)
claim(__name__, "gradix.numpy.")
