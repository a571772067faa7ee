"""Factorizations of matrices: Cholesky, LU, QR, SVD, eigenvalues, Schur and Hessenberg form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import as_operand, broadcast_to, convert, raise_rank
from gradix.scipy.linalg.operands import matmul, matrices, square

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The triangular factor of Hermitian positive definite matrices: `a = Uᴴ U`, or `a = L Lᴴ`.

    Args:
        a: matrices of shape (..., n, n), of which only the triangle of the factor is read.
        lower: whether to give L instead of U.
        overwrite_a, check_finite: have no effect.

    Returns:
        The factors, of the shape of `a`; NaN for matrices that are not positive definite.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 1.],
               [0., 2.]], dtype=float32)
    """
    return jnp.linalg.cholesky(matrices("cholesky", a), upper=not lower, symmetrize_input=False)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor of matrices, and `lower`, for `cho_solve`.

    Args:
        a: matrices of shape (..., n, n).
        lower: whether to give the lower factor.
        overwrite_a, check_finite: have no effect.

    Returns:
        The factor, with zeros in its other triangle, and `lower`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.cho_factor(jnp.array([[4.0]]))
        (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition `a = U diag(s) Vᴴ`, with decreasing s.

    Args:
        a: matrices of shape (..., m, n); k is the smaller of m and n.
        full_matrices: whether U and Vᴴ are square; otherwise they have k columns and rows.
        compute_uv: whether to compute U and Vᴴ.
        overwrite_a, check_finite, lapack_driver: have no effect.

    Returns:
        U of shape (..., m, m or k), s of shape (..., k) and Vᴴ of shape (..., n or k, n); or s only.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    out = jnp.linalg.svd(matrices("svd", a), full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """The eigenvalues of Hermitian matrices in increasing order, and their eigenvectors.

    Args:
        a: matrices of shape (..., n, n), of which the mean with their adjoint is used.
        b: must be None.
        eigvals_only: whether to give the eigenvalues only.
        eigvals: must be None.
        type: must be 1.
        lower, overwrite_a, overwrite_b, turbo, check_finite: have no effect.

    Returns:
        Eigenvalues of shape (..., n), and eigenvectors as columns of matrices; or eigenvalues only.

    Raises:
        NotImplementedError: `b`, `eigvals` or `type` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[0]
        Array([1., 2.], dtype=float32)
    """
    if b is not None:
        raise NotImplementedError(
            "eigh: only b=None is implemented. For a positive definite b with the Cholesky factor L, "
            "take the eigenvalues of inv(L) @ a @ inv(L).conj().T."
        )
    if eigvals is not None:
        raise NotImplementedError(
            f"eigh: only eigvals=None is implemented, got {eigvals!r}. Slice the results instead."
        )
    if type != 1:
        raise NotImplementedError(f"eigh: only type=1 is implemented, got {type!r}.")
    x = matrices("eigh", a)
    if eigvals_only:
        return jnp.linalg.eigvalsh(x)
    return tuple(jnp.linalg.eigh(x, "L" if lower else "U"))


# -- LU --------------------------------------------------------------------------------------------


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The LU factorization with partial pivoting, for `lu_solve`.

    Args:
        a: matrices of shape (..., m, n).
        overwrite_a, check_finite: have no effect.

    Returns:
        An array of the shape of `a`, with L below the diagonal and U on and above it; and the number
        of the row with which each row was exchanged, of shape (..., min(m, n)).

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.lu_factor(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
        (Array([[2. , 2. ],
               [0.5, 1. ]], dtype=float32), Array([1, 1], dtype=int32))
    """
    factors, pivots, _ = lax.linalg.lu(matrices("lu_factor", a))
    return factors, pivots


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """The LU factorization with partial pivoting, `a = P L U`.

    Args:
        a: matrices of shape (..., m, n); k is the smaller of m and n.
        permute_l: whether to give `P L` instead of P and L.
        overwrite_a, check_finite: have no effect.

    Returns:
        P of shape (..., m, m), L of shape (..., m, k) and U of shape (..., k, n); or `P L` and U.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> p, lower, upper = linalg.lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
        >>> p @ lower @ upper
        Array([[1., 2.],
               [2., 2.]], dtype=float32)
    """
    x = matrices("lu", a)
    factors, _, order = lax.linalg.lu(x)
    m, n = x.aval.shape[-2:]
    k = min(m, n)
    ones = raise_rank(jnp.eye(m, k, dtype=factors.aval.dtype), factors.aval.ndim)
    lower = jnp.tril(factors[..., :k], -1) + ones
    upper = jnp.triu(factors[..., :k, :])
    if permute_l:
        return jnp.take_along_axis(lower, jnp.argsort(order, axis=-1)[..., None], axis=-2), upper
    rows = lax.broadcasted_iota(order.aval.dtype, (*order.aval.shape, m), order.aval.ndim - 1)
    real = dtypes.real_dtype(x.aval.dtype) if x.aval.dtype in COMPLEX else x.aval.dtype
    return (convert(lax.eq(rows, broadcast_to(order[..., None, :], rows.aval.shape)), real), lower, upper)


# -- QR --------------------------------------------------------------------------------------------


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """The QR factorization of matrices, `a = Q R`.

    Args:
        a: matrices of shape (..., m, n).
        mode: "full" for a square Q, "economic" for a Q with min(m, n) columns, or "r" for R only.
        pivoting: whether to permute the columns so that the diagonal of R decreases.
        overwrite_a, lwork, check_finite: have no effect.

    Returns:
        A tuple of Q (except for "r"), R, and with `pivoting` the order of the columns, so that
        `a[:, order] = Q R`.

    Raises:
        ValueError: `mode` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.qr(jnp.array([[3.0], [4.0]]), mode="r")
        (Array([[-5.],
               [ 0.]], dtype=float32),)
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(
            f"Unsupported QR decomposition mode '{mode}'. Use 'full', 'economic' or 'r', or "
            "jnp.linalg.qr for mode='raw'."
        )
    q, *rest = lax.linalg.qr(matrices("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The product of the Q of a QR factorization with other matrices, and R.

    Args:
        a: the matrices to factor, of shape (..., M, N); Q has K = min(M, N) columns.
        c: matrices of shape (..., P, M) for "right" and (..., K, P) for "left", or a vector.
        mode: "right" for `c @ Q`, "left" for `Q @ c`.
        pivoting: whether to permute the columns, as in `qr`.
        conjugate: whether to use `conj(Q)`.
        overwrite_a, overwrite_c: have no effect.

    Returns:
        The product, R, and with `pivoting` the order of the columns.

    Raises:
        ValueError: the shapes do not fit, or `mode` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.qr_multiply(jnp.array([[3.0], [4.0]]), jnp.array([5.0, 0.0]))
        (Array([-3.], dtype=float32), Array([[-5.]], dtype=float32))
    """
    if mode not in ("right", "left"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}.")
    a, c = matrices("qr_multiply", a), matrices("qr_multiply", c)
    if a.aval.ndim < 2 or not c.aval.ndim:
        raise ValueError(
            f"qr_multiply: a must be matrices and c a vector or matrices, got shapes {a.aval.shape} and {c.aval.shape}."
        )
    m, n = a.aval.shape[-2:]
    vector = c.aval.ndim == 1
    c = c if not vector else c[:, None] if mode == "left" else c[None, :]
    want, have = (min(m, n), c.aval.shape[-2]) if mode == "left" else (m, c.aval.shape[-1])
    if want != have:
        product, sides = ("Q @ c", ("columns", "rows")) if mode == "left" else ("c @ Q", ("rows", "columns"))
        raise ValueError(
            f"Array shapes are not compatible for {product} operation: a has shape {a.aval.shape} so Q "
            f"has {want} {sides[0]}, but c has {have} {sides[1]} (expected {want})."
        )
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = lax.conj(q) if conjugate and q.aval.dtype in COMPLEX else q
    out = jnp.matmul(q, c, precision="highest") if mode == "left" else jnp.matmul(c, q, precision="highest")
    return (jnp.ravel(out) if vector and out.aval.ndim == 2 else out, *rest)


# -- similarity ------------------------------------------------------------------------------------


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """The Schur decomposition `a = Z T Zᴴ`, with a unitary Z and an upper triangular T.

    Args:
        a: matrices of shape (..., n, n), of a floating or complex dtype.
        output: "real" for a real T of real matrices, with 2×2 blocks for pairs of complex
            eigenvalues; "complex" for a triangular T.

    Returns:
        T and Z, of the shape of `a`. They have no derivative, because the order of the eigenvalues
        is not determined.

    Raises:
        ValueError: `output` has another value, or the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
        Array([[ 0.,  1.],
               [-1.,  0.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got output={output!r}.")
    x = as_operand("schur", a)
    if output == "complex" and x.aval.dtype in dtypes.INEXACT:
        x = convert(x, dtypes.to_complex_dtype(x.aval.dtype))
    t, z = lax.linalg.schur(x)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur decomposition of the same matrices as a real Schur decomposition.

    Each 2×2 block is made triangular by a rotation. G. Golub, C. Van Loan, "Matrix Computations",
    section 7.4.

    Args:
        T: quasi-triangular matrices, of shape (..., n, n).
        Z: the unitary matrices of the decomposition, of the same shape up to leading axes that broadcast.
        check_finite: has no effect.

    Returns:
        The complex T and Z of `a = Z T Zᴴ`, of the same shape.

    Raises:
        ValueError: the matrices are not square, or their shapes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> t, z = linalg.rsf2csf(*linalg.schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]])))
        >>> bool(jnp.allclose(jnp.abs(t), jnp.eye(2), atol=1e-6))
        True
    """
    t, z = square("rsf2csf", T), matrices("rsf2csf", Z)
    if t.aval.shape[-2:] != z.aval.shape[-2:]:
        raise ValueError(f"Input array shapes must match: Z: {z.aval.shape} vs. T: {t.aval.shape}.")
    lead = jnp.broadcast_shapes(t.aval.shape[:-2], z.aval.shape[:-2])
    t, z = (jnp.broadcast_to(x, (*lead, *x.aval.shape[-2:])) for x in (t, z))
    dtype = dtypes.to_complex_dtype(dtypes.joined_dtype(t.aval.dtype, z.aval.dtype))
    n, t, z = t.aval.shape[-1], convert(t, dtype), convert(z, dtype)
    if n < 2:
        return t, z
    eps = float(np.finfo(dtypes.real_dtype(dtype)).eps)
    return lax.fori_loop(1, n, lambda i, state: _rotated(n - i, state[0], state[1], eps), (t, z))


def _rotated(m, t, z, eps: float):
    """T and Z with rows and columns m - 1 and m rotated, so that `T[m, m - 1]` becomes zero.

    What a quasi-triangular matrix has left of column m - 1 and below row m is zero; it is left as
    it is, which tells for matrices that are none.
    """
    rank, places = t.aval.ndim, np.arange(t.aval.shape[-1], dtype=np.int32)
    block = lax.dynamic_slice(t, [0] * (rank - 2) + [m - 1, m - 1], (*t.aval.shape[:-2], 2, 2))
    a, b, c, d = (block[..., i, j] for i in (0, 1) for j in (0, 1))
    half = (a - d) / 2
    root = jnp.sqrt(half * half + b * c)
    # mu is an eigenvalue of the block minus d.
    mu = jnp.where(abs(half + root) >= abs(half - root), half + root, half - root)
    r = jnp.sqrt(abs(mu) ** 2 + abs(c) ** 2)
    small = (abs(c) <= eps * (abs(a) + abs(d))) | (r == 0)
    r = jnp.where(small, 1, r).astype(t.aval.dtype)
    cos, sin = jnp.where(small, 1, mu / r), jnp.where(small, 0, c / r)
    turn = jnp.stack([jnp.stack([lax.conj(cos), sin], -1), jnp.stack([-sin, cos], -1)], -2).astype(t.aval.dtype)
    back = jnp.conj(turn.mT)
    rows = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=rank - 2)
    rows = jnp.where(lax.broadcast_in_dim(places >= m - 1, rows.aval.shape, (rank - 1,)), matmul(turn, rows), rows)
    t = lax.dynamic_update_slice_in_dim(t, rows, m - 1, axis=rank - 2)
    columns = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=rank - 1)
    columns = jnp.where(
        lax.broadcast_in_dim(places <= m, columns.aval.shape, (rank - 2,)), matmul(columns, back), columns
    )
    t = lax.dynamic_update_slice_in_dim(t, columns, m - 1, axis=rank - 1)
    zeros = jnp.zeros((*t.aval.shape[:-2], 1, 1), t.aval.dtype)
    t = lax.dynamic_update_slice(t, zeros, [0] * (rank - 2) + [m, m - 1])
    turned = matmul(lax.dynamic_slice_in_dim(z, m - 1, 2, axis=rank - 1), back)
    return t, lax.dynamic_update_slice_in_dim(z, turned, m - 1, axis=rank - 1)


def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Hessenberg form H of `a = Q H Qᴴ`, which is zero below the first subdiagonal.

    Args:
        a: matrices of shape (..., n, n), of a floating or complex dtype.
        calc_q: whether to give Q too.
        overwrite_a, check_finite: have no effect.

    Returns:
        H, or H and Q, of the shape of `a`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    x = as_operand("hessenberg", a)
    reduced, taus = lax.linalg.hessenberg(x)
    h = jnp.triu(reduced, -1)
    if not calc_q:
        return h
    n = x.aval.shape[-1]
    if n < 2:
        return h, broadcast_to(jnp.eye(n, dtype=x.aval.dtype), x.aval.shape)
    inner = lax.linalg.householder_product(reduced[..., 1:, : n - 1], taus)
    q = lax.pad(inner, np.zeros((), x.aval.dtype), [*[(0, 0, 0)] * (x.aval.ndim - 2), (1, 0, 0), (1, 0, 0)])
    return h, q.at[..., 0, 0].set(1)
