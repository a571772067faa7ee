"""Systems of equations and what comes with them: inverses, least squares, ranks."""

from __future__ import annotations

from math import prod
from operator import index as as_int

import ml_dtypes
import numpy as np

from gradix import lax
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
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
)
from gradix.numpy.selection import where

__all__ = [
    "inv",
    "lstsq",
    "matrix_rank",
    "pinv",
    "solve",
    "tensorinv",
    "tensorsolve",
]


def square_operand(name: str, a):
    x = inexact_operand(name, a)
    shape = x.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {shape}.")
    return x


# -- equations -------------------------------------------------------------------------------------


@replayed
def solve(a, b) -> Array:
    """x with `a @ x = b`.

    Args:
        a: square matrices, in the last two axes.
        b: one vector, or matrices in the last two axes; leading axes broadcast.

    Returns:
        The solution; infinite or NaN where a matrix is singular.

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
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={a}")
    if not b:
        raise ValueError("right hand array must have one axis at least; got b.shape=()")
    if len(b) > 1 and len(b) == len(a) - 1 and b[-2:-1] != a[-1:]:
        raise ValueError(
            f"Invalid shapes for solve: {a}, {b}. A stack of vectors is written b[..., None], and the "
            "result's last axis squeezed."
        )
    rows = b[0] if len(b) == 1 else b[-2]
    if a[-1] != a[-2] or rows != a[-1]:
        raise ValueError(
            f"solve needs square matrices and as many rows on the right side, got shapes {a} and {b}."
        )


def _solve(a, b):
    """One matrix and many right sides make one system with more columns; otherwise the stacks broadcast."""
    if a.aval.ndim == 2 and b.aval.ndim > 2:
        rows = lax.transpose(b, (b.aval.ndim - 2, *range(b.aval.ndim - 2), b.aval.ndim - 1))
        found = solve_stack(a, lax.reshape(rows, (rows.aval.shape[0], prod(rows.aval.shape[1:]))))
        found = lax.reshape(found, rows.aval.shape)
        return lax.transpose(found, (*range(1, b.aval.ndim - 1), 0, b.aval.ndim - 1))
    lead = _lead("solve", a, b)
    return solve_stack(
        broadcast_to(a, (*lead, *a.aval.shape[-2:])), broadcast_to(b, (*lead, *b.aval.shape[-2:]))
    )


def _lead(name: str, a, b) -> tuple:
    """The leading axes of two stacks of matrices together."""
    if a.aval.shape[:-2] == b.aval.shape[:-2]:
        return a.aval.shape[:-2]
    try:
        return lax.broadcast_shapes(a.aval.shape[:-2], b.aval.shape[:-2])
    except ValueError:
        raise ValueError(
            f"{name}: the stacks of matrices of shapes {a.aval.shape} and {b.aval.shape} do not "
            "broadcast: the axes before the last two must agree or have size 1."
        ) from None


def solve_stack(a, b):
    factors, _, order = lax.linalg.lu(lax.stop_gradient(a))
    # nothing to differentiate: no need of the rules
    if type(a) is ArrayImpl and type(b) is ArrayImpl:
        return lax.linalg._solve_factored(factors, order, b)
    return lax.custom_linear_solve(
        lambda x: lax.linalg._product(a, x),
        b,
        lambda _, y: lax.linalg._solve_factored(factors, order, y),
        lambda _, y: lax.linalg._solve_factored_transposed(factors, order, y),
    )


@replayed(host=matrix_host_implementations.inv)
def inv(a) -> Array:
    """The inverses of square matrices; infinite or NaN where singular.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    x = square_operand("inv", a)
    return solve_stack(x, broadcast_to(eye(x.aval.shape[-1], dtype=x.aval.dtype), x.aval.shape))


# -- least squares and ranks -----------------------------------------------------------------------


def lstsq(a, b, rcond: float | None = None, *, numpy_resid: bool = False):
    """The x of least length for which `a @ x` is nearest to `b`.

    Args:
        a: a matrix.
        b: a vector or a matrix.
        rcond: singular values up to this part of the largest count as zero; by default the rounding
            of the dtype times the larger side.
        numpy_resid: give the residuals as NumPy, empty where the rank is not full or there are too
            few equations.

    Returns:
        x, the squared distances, the rank, and the singular values.

    Raises:
        TypeError: `a` is no matrix, or `b` neither vector nor matrix.
        ValueError: they differ in their number of rows.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))[0].round(5)
        Array([2.], dtype=float32)
    """
    a, b = promote_dtypes_inexact("lstsq", a, b)
    if a.aval.shape[:1] != b.aval.shape[:1]:
        raise ValueError(
            "Leading dimensions of input arrays must match, got shapes "
            f"{a.aval.shape} and {b.aval.shape}."
        )
    if a.aval.ndim != 2 or b.aval.ndim not in (1, 2):
        raise TypeError(
            f"lstsq needs a matrix, and a vector or matrix, got shapes {a.aval.shape} and {b.aval.shape}."
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
        s = lax.full(
            (0,),
            0,
            dtypes.real_dtype(a.aval.dtype) if a.aval.dtype in dtypes.COMPLEX else a.aval.dtype,
        )
        return lax.full((n, b.aval.shape[1]), 0, a.aval.dtype), reductions.sum(lax.ne(s, s)), s
    u, s, vh = svd(a, full_matrices=False)
    if rcond is None:
        rcond = float(ml_dtypes.finfo(s.aval.dtype).eps) * max(m, n)
    else:
        rcond = where(rcond < 0, float(ml_dtypes.finfo(s.aval.dtype).eps), rcond)
    kept = (s > 0) & (s >= convert(as_operand("lstsq", rcond), s.aval.dtype) * s[0])
    inverse = where(
        kept, 1 / where(kept, s, number(1, s.aval.dtype)), number(0, s.aval.dtype)
    ).astype(a.aval.dtype)
    x = lax.linalg._product(
        lax.linalg._adjoint(vh), inverse[:, None] * lax.linalg._product(lax.linalg._adjoint(u), b)
    )
    return x, reductions.sum(kept), s


@replayed
def pinv(a, rtol=None, hermitian: bool = False, *, rcond=None) -> Array:
    """The pseudoinverses of matrices.

    Args:
        a: matrices, in the last two axes.
        rtol: singular values up to this part of the largest count as zero; by default ten times the
            rounding of the dtype times the larger side.
        hermitian: the matrices are Hermitian, which is quicker.
        rcond: the older name of `rtol`.

    Raises:
        ValueError: both `rtol` and `rcond` are given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0]]))
        Array([[0.5],
               [0. ]], dtype=float32)
    """
    x = inexact_operand("pinv", a)
    lax.linalg._check_matrices("pinv", x.aval)
    if rtol is not None and rcond is not None:
        raise ValueError(
            f"pinv: only one of rtol and rcond may be specified, got rtol={rtol} and rcond={rcond}."
        )
    rtol = rcond if rtol is None else rtol
    if not x.aval.size:
        return lax.full((*x.aval.shape[:-2], x.aval.shape[-1], x.aval.shape[-2]), 0, x.aval.dtype)
    if rtol is None:
        rtol = 10.0 * max(x.aval.shape[-2:]) * float(ml_dtypes.finfo(x.aval.dtype).eps)
    return _pinv(x, rtol, bool(hermitian))


def _pinv_of(x, rtol, hermitian: bool):
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    limit = convert(as_operand("pinv", rtol), s.aval.dtype)[..., None] * s[..., :1]
    inverse = where(
        s > limit, 1 / where(s > limit, s, number(1, s.aval.dtype)), number(0, s.aval.dtype)
    )
    return lax.linalg._product(
        lax.linalg._adjoint(vh) * inverse[..., None, :].astype(u.aval.dtype), lax.linalg._adjoint(u)
    )


_pinv = custom_jvp(_pinv_of, nondiff_argnums=(1, 2))


@_pinv.defjvp
def _pinv_jvp(rtol, hermitian, primals, tangents):
    """G. Golub, V. Pereyra, "The differentiation of pseudo-inverses" (1973), eq. 4.12."""
    (a,), (t,) = primals, tangents
    mul, adjoint = lax.linalg._product, lax.linalg._adjoint
    p = _pinv(a, rtol, hermitian)
    back, p_h = adjoint(t), adjoint(p)
    left = mul(mul(p, p_h), back)  # P Pᴴ dAᴴ (I - A P)
    right = mul(back, mul(p_h, p))  # (I - P A) dAᴴ Pᴴ P
    return p, left - mul(mul(left, a), p) + right - mul(p, mul(a, right)) - mul(mul(p, t), p)


@replayed(host=matrix_host_implementations.matrix_rank)
def matrix_rank(M, rtol=None, *, hermitian: bool = False, tol=None) -> Array:
    """How many singular values of matrices are not negligible.

    Args:
        M: matrices, in the last two axes; of a vector, whether it is not zero.
        rtol: singular values up to this part of the largest count as zero; by default the rounding
            of the dtype times the larger side.
        hermitian: the matrices are Hermitian, which is quicker.
        tol: the limit itself instead of a part.

    Raises:
        ValueError: both `rtol` and `tol` are given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
        Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise ValueError(
            f"matrix_rank: only one of tol or rtol may be specified, got tol={tol} and rtol={rtol}."
        )
    x = inexact_operand("matrix_rank", M)
    if x.aval.ndim < 2:
        return reductions.any(lax.ne(x, number(0, x.aval.dtype))).astype(np.dtype("int32"))
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is None:
        part = (
            max(x.aval.shape[-2:]) * float(ml_dtypes.finfo(s.aval.dtype).eps)
            if rtol is None
            else rtol
        )
        tol = convert(as_operand("matrix_rank", part), s.aval.dtype) * extremes.max(
            s, axis=-1, initial=0
        )
    return reductions.sum(
        s > convert(as_operand("matrix_rank", tol), s.aval.dtype)[..., None], axis=-1
    )


# -- tensors as matrices ---------------------------------------------------------------------------


def tensorinv(a, ind: int = 2) -> Array:
    """The inverse of a tensor for `tensordot` over its first `ind` axes.

    Raises:
        ValueError: `ind` is not positive, or the array is not square when cut there.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4)).shape
        (4, 2, 2)
    """
    x, ind = inexact_operand("tensorinv", a), as_int(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    first, rest = x.aval.shape[:ind], x.aval.shape[ind:]
    if prod(first) != prod(rest):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` dimensions equals that of the "
            f"remaining dimensions. got arr.shape={x.aval.shape} with ind={ind}."
        )
    return lax.reshape(inv(lax.reshape(x, (prod(first), prod(rest)))), (*rest, *first))


def tensorsolve(a, b, axes=None) -> Array:
    """x with `tensordot(a, x, x.ndim) = b`.

    Args:
        a, b: arrays; the first axes of `a` have the shape of `b`.
        axes: axes of `a` to move to its end first.

    Raises:
        ValueError: the array is not square when its axes are grouped.

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
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got "
            f"a.shape={a.aval.shape}, b.ndim={b.aval.ndim}."
        )
    size = prod(rest)
    return lax.reshape(solve(lax.reshape(a, (size, size)), lax.reshape(b, (size,))), rest)
