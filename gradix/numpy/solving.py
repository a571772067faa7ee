"""Systems of linear equations, inverses, least squares, and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from operator import index as as_int
from typing import TYPE_CHECKING, SupportsIndex

import ml_dtypes
import numpy as np

from gradix import lax
from gradix._api.derivatives.autodiff import jvp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dimensions.expression import has_counts, larger
from gradix._core.operators import Array
from gradix.numpy import extremes, matrix_host_implementations, reductions
from gradix.numpy.decompositions import svd
from gradix.numpy.matrices import eye
from gradix.numpy.promotion import (
    as_operand,
    broadcast_to,
    convert,
    inexact_operand,
    number,
    promote_dtypes_inexact,
    raise_rank,
)
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

__all__ = ["inv", "lstsq", "matrix_rank", "pinv", "solve", "tensorinv", "tensorsolve"]


def square_operand(name: str, a):
    """Square matrices in a floating or complex dtype."""
    x = inexact_operand(name, a)
    shape = x.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{name}: matrices must be square, of shape (..., n, n), got {shape}.")
    return x


# -- equations -------------------------------------------------------------------------------------


@replayed
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solutions x of the systems of linear equations `a @ x = b`.

    Args:
        a: square matrices of shape (..., n, n), real or complex.
        b: a vector of size n, or matrices of shape (..., n, k); leading axes broadcast.

    Returns:
        An array of shape (..., n) or (..., n, k), in a floating or complex dtype. It is infinite or
        NaN where a matrix is singular.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)
    """
    a, b = promote_dtypes_inexact("solve", a, b)
    _check_system(a.aval.shape, b.aval.shape)
    if b.aval.ndim == 1:
        return _solve(a, b[:, None])[..., 0]
    return _solve(a, b)


def _check_system(a: tuple, b: tuple) -> None:
    if len(a) < 2:
        raise ValueError(f"solve: a must have at least two axes, got shape {a}.")
    if not b:
        raise ValueError("solve: b must have at least one axis, got a scalar.")
    if len(b) > 1 and len(b) == len(a) - 1 and b[-2:-1] != a[-1:]:
        raise ValueError(
            f"solve: shapes {a} and {b} do not fit. Write solve(a, b[..., None])[..., 0] for a stack of vectors."
        )
    rows = b[0] if len(b) == 1 else b[-2]
    if a[-1] != a[-2] or rows != a[-1]:
        raise ValueError(f"solve: a must have shape (..., n, n), and b (n,) or (..., n, k), got shapes {a} and {b}.")


def _solve(a, b):
    """The solutions; one matrix with a stack of right sides becomes a system of more columns."""
    if a.aval.ndim == 2 and b.aval.ndim > 2:
        rows = lax.transpose(b, (b.aval.ndim - 2, *range(b.aval.ndim - 2), b.aval.ndim - 1))
        found = solve_stack(a, lax.reshape(rows, (rows.aval.shape[0], prod(rows.aval.shape[1:]))))
        found = lax.reshape(found, rows.aval.shape)
        return lax.transpose(found, (*range(1, b.aval.ndim - 1), 0, b.aval.ndim - 1))
    lead = _lead("solve", a, b)
    return solve_stack(broadcast_to(a, (*lead, *a.aval.shape[-2:])), broadcast_to(b, (*lead, *b.aval.shape[-2:])))


def _lead(name: str, a, b) -> tuple:
    """The shape to which the leading axes of two stacks of matrices broadcast."""
    if a.aval.shape[:-2] == b.aval.shape[:-2]:
        return a.aval.shape[:-2]
    try:
        return lax.broadcast_shapes(a.aval.shape[:-2], b.aval.shape[:-2])
    except ValueError:
        raise ValueError(
            f"{name}: the stacks of matrices of shapes {a.aval.shape} and {b.aval.shape} do not "
            "broadcast. The axes before the last two must agree or have size 1."
        ) from None


def solve_stack(a, b):
    """The solutions for stacks of square matrices and right sides with the same leading axes."""
    factors, _, order = lax.linalg.lu(lax.stop_gradient(a))
    # Concrete arrays are not differentiated, and so need no rules.
    if type(a) is ArrayImpl and type(b) is ArrayImpl:
        return lax.linalg._solve_factored(factors, order, b)
    return lax.custom_linear_solve(
        lambda x: lax.linalg._product(a, x),
        b,
        lambda _, y: lax.linalg._solve_factored(factors, order, y),
        lambda _, y: lax.linalg._solve_factored_transposed(factors, order, y),
    )


@replayed(host=matrix_host_implementations.inv)
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices (..., n, n); infinite or NaN for singular ones.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    x = square_operand("inv", a)
    return solve_stack(x, broadcast_to(eye(x.aval.shape[-1], dtype=x.aval.dtype), x.aval.shape))


# -- least squares and ranks -----------------------------------------------------------------------


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The shortest x among those for which `a @ x` is nearest to `b` (least squares).

    Args:
        a: a matrix of shape (m, n), real or complex.
        b: a vector of size m, or a matrix of shape (m, k).
        rcond: singular values below this fraction of the largest one count as zero; by default
            max(m, n) times the rounding error of the dtype.
        numpy_resid: whether the residuals are as NumPy's: empty if the rank is less than n, or
            m <= n.

    Returns:
        A tuple of x, of shape (n,) or (n, k), the sums of squared residuals, of shape (1,) or (k,),
        the rank, and the singular values.

    Raises:
        TypeError: `a` is not a matrix, or `b` neither a vector nor a matrix.
        ValueError: `a` and `b` differ in their number of rows.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))[0].round(5)
        Array([2.], dtype=float32)
    """
    a, b = promote_dtypes_inexact("lstsq", a, b)
    if a.aval.shape[:1] != b.aval.shape[:1]:
        raise ValueError(
            f"lstsq: a and b must have the same number of rows, got shapes {a.aval.shape} and {b.aval.shape}."
        )
    if a.aval.ndim != 2 or b.aval.ndim not in (1, 2):
        raise TypeError(
            f"lstsq: a must be a matrix, and b a vector or a matrix, got shapes {a.aval.shape} and {b.aval.shape}."
        )
    m, n = a.aval.shape
    vector = b.aval.ndim == 1
    rhs = b[:, None] if vector else b
    x, rank, s = _least_squares(a, rhs, rcond)
    if numpy_resid and (m <= n or not isinstance(rank, ArrayImpl) or int(rank) < n):
        resid = lax.full((0,), 0, s.aval.dtype)
    else:
        off = rhs - lax.linalg._product(a, x)
        resid = reductions.sum(lax.square(lax.abs(off)), axis=0)
    return x[:, 0] if vector else x, resid, rank, s


def _least_squares(a, b, rcond):
    m, n = a.aval.shape
    if not a.aval.size:
        s = lax.full((0,), 0, dtypes.real_dtype(a.aval.dtype) if a.aval.dtype in dtypes.COMPLEX else a.aval.dtype)
        return lax.full((n, b.aval.shape[1]), 0, a.aval.dtype), reductions.sum(lax.ne(s, s)), s
    if rcond is None:
        rcond = larger(m, n) * float(ml_dtypes.finfo(a.aval.dtype).eps)
    else:
        rcond = where(rcond < 0, float(ml_dtypes.finfo(a.aval.dtype).eps), rcond)
    x, s = _shortest(a, b, rcond)
    return x, reductions.sum(_kept(s, rcond)), s


def _kept(s, rcond):
    return (s > 0) & (s >= convert(as_operand("lstsq", rcond), s.aval.dtype) * s[0])


@partial(custom_jvp, nondiff_argnums=(2,))
def _shortest(a, b, rcond):
    u, s, vh = svd(a, full_matrices=False)
    kept = _kept(s, rcond)
    inverse = where(kept, 1 / where(kept, s, number(1, s.aval.dtype)), number(0, s.aval.dtype)).astype(a.aval.dtype)
    x = lax.linalg._product(lax.linalg._adjoint(vh), inverse[:, None] * lax.linalg._product(lax.linalg._adjoint(u), b))
    return x, s


@_shortest.defjvp
def _shortest_jvp(rcond, primals, tangents):
    """The derivative of `pinv(a) b`, which does not depend on the choice of singular vectors."""
    (a, b), (ta, tb) = primals, tangents
    mul, adjoint = lax.linalg._product, lax.linalg._adjoint
    x, _ = _shortest(a, b, rcond)
    s, ds = jvp(lambda a: svd(a, full_matrices=False, compute_uv=False), (a,), (ta,))
    p, back = _pinv(a, rcond, False), adjoint(ta)
    across = mul(back, mul(adjoint(p), x))
    along = tb - mul(ta, x) + mul(adjoint(p), mul(back, b - mul(a, x))) - mul(a, across)
    return (x, s), (mul(p, along) + across, ds)


@replayed
def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The pseudoinverses of matrices.

    Args:
        a: matrices of shape (..., m, n), real or complex.
        rtol: singular values up to this fraction of the largest one count as zero; by default
            10 · max(m, n) times the rounding error of the dtype.
        hermitian: whether the matrices are Hermitian, for which a faster method is used.
        rcond: the older name of `rtol`.

    Returns:
        Matrices of shape (..., n, m), in a floating or complex dtype.

    Raises:
        ValueError: both `rtol` and `rcond` are given, or `a` has less than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0]]))
        Array([[0.5],
               [0. ]], dtype=float32)
    """
    x = inexact_operand("pinv", a)
    lax.linalg._check_matrices("pinv", x.aval)
    if rtol is not None and rcond is not None:
        raise ValueError(f"pinv: rtol and rcond are two names of one number, got {rtol} and {rcond}. Give rtol.")
    rtol = rcond if rtol is None else rtol
    if not x.aval.size:
        return lax.full((*x.aval.shape[:-2], x.aval.shape[-1], x.aval.shape[-2]), 0, x.aval.dtype)
    if rtol is None:
        rtol = 10.0 * larger(*x.aval.shape[-2:]) * float(ml_dtypes.finfo(x.aval.dtype).eps)
    return _pinv(x, rtol, bool(hermitian))


def _pinv_of(x, rtol, hermitian: bool):
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    # there may be no first one where values decide how many there are
    top = extremes.max(s, -1, initial=0)[..., None] if has_counts(s.aval.shape) else s[..., :1]
    limit = raise_rank(convert(as_operand("pinv", rtol), s.aval.dtype)[..., None], top.ndim) * top
    inverse = where(s > limit, 1 / where(s > limit, s, number(1, s.aval.dtype)), number(0, s.aval.dtype))
    return lax.linalg._product(
        lax.linalg._adjoint(vh) * inverse[..., None, :].astype(u.aval.dtype), lax.linalg._adjoint(u)
    )


_pinv = custom_jvp(_pinv_of, nondiff_argnums=(1, 2))


@_pinv.defjvp
def _pinv_jvp(rtol, hermitian, primals, tangents):
    """The formula 4.12 of Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).

    Products of three are taken in the order in which the square matrix between them is the smaller one.
    Matrices that count as Hermitian are read as their Hermitian parts, and so are their tangents.
    """
    (a,), (t,) = primals, tangents
    mul, adjoint = lax.linalg._product, lax.linalg._adjoint
    if hermitian:
        t = (t + adjoint(t)) / 2
    is_tall = larger(*a.aval.shape[-2:]) == a.aval.shape[-2]

    def thrice(x, y, z):
        return mul(mul(x, y), z) if is_tall else mul(x, mul(y, z))

    p = _pinv(a, rtol, hermitian)
    back, p_h = adjoint(t), adjoint(p)
    left, right = thrice(p, p_h, back), thrice(back, p_h, p)  # P Pᴴ dAᴴ (I - A P) and (I - P A) dAᴴ Pᴴ P
    return p, left - thrice(left, a, p) + right - thrice(p, a, right) - thrice(p, t, p)


@replayed
def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """The ranks of matrices: how many of their singular values are not negligible.

    Args:
        M: matrices of shape (..., m, n), real or complex; the rank of a vector is 1 unless it is 0.
        rtol: singular values up to this fraction of the largest one are negligible; by default
            max(m, n) times the rounding error of the dtype.
        hermitian: whether the matrices are Hermitian, for which a faster method is used.
        tol: the limit itself, instead of a fraction.

    Returns:
        Integers of shape (...).

    Raises:
        ValueError: both `rtol` and `tol` are given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
        Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise ValueError(f"matrix_rank: tol and rtol exclude each other, got {tol} and {rtol}. Give one of them.")
    x = inexact_operand("matrix_rank", M)
    if x.aval.ndim < 2:
        return reductions.any(lax.ne(x, number(0, x.aval.dtype))).astype(np.dtype("int32"))
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is None:
        part = larger(*x.aval.shape[-2:]) * float(ml_dtypes.finfo(s.aval.dtype).eps) if rtol is None else rtol
        tol = convert(as_operand("matrix_rank", part), s.aval.dtype) * extremes.max(s, axis=-1, initial=0)
    return reductions.sum(s > convert(as_operand("matrix_rank", tol), s.aval.dtype)[..., None], axis=-1)


# -- tensors as matrices ---------------------------------------------------------------------------


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array with respect to `tensordot` over its first `ind` axes.

    Returns:
        An array of the shape `a.shape[ind:] + a.shape[:ind]`, in a floating or complex dtype.

    Raises:
        ValueError: `ind` is not positive, or the first `ind` axes do not hold as many elements as
            the others.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4)).shape
        (4, 2, 2)
    """
    x, ind = inexact_operand("tensorinv", a), as_int(ind)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}.")
    first, rest = x.aval.shape[:ind], x.aval.shape[ind:]
    if prod(first) != prod(rest):
        raise ValueError(
            f"tensorinv: the first {ind} axes of shape {x.aval.shape} must hold as many elements "
            f"as the others, got {prod(first)} and {prod(rest)}. Give another ind."
        )
    return lax.reshape(inv(lax.reshape(x, (prod(first), prod(rest)))), (*rest, *first))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[SupportsIndex] | None = None) -> Array:
    """The solution x of `tensordot(a, x, x.ndim) = b`.

    Args:
        a: an array whose first axes have the shape of `b`; the others hold as many elements.
        b: an array.
        axes: axes of `a` to move to its end first.

    Returns:
        An array of the shape `a.shape[b.ndim:]`, in a floating or complex dtype.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
        Array([1., 1., 1., 1.], dtype=float32)
    """
    a, b = promote_dtypes_inexact("tensorsolve", a, b)
    if axes is not None:
        moved = [as_int(i) % a.aval.ndim for i in axes]
        a = lax.transpose(a, (*[i for i in range(a.aval.ndim) if i not in moved], *moved))
    rest = a.aval.shape[b.aval.ndim :]
    if prod(a.aval.shape[: b.aval.ndim]) != prod(rest) or b.aval.size != prod(rest):
        raise ValueError(
            f"tensorsolve: the first {b.aval.ndim} axes of a must hold as many elements as b, and "
            f"as its other axes, got shapes {a.aval.shape} and {b.aval.shape}."
        )
    size = prod(rest)
    return lax.reshape(solve(lax.reshape(a, (size, size)), lax.reshape(b, (size,))), rest)
