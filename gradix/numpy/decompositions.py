"""Factorizations of matrices: Cholesky, QR, singular values, and eigenvalues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core.operators import Array
from gradix.numpy.promotion import inexact_operand
from gradix.numpy.sorting import argsort
from gradix.numpy.taking import take_along_axis

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
]


class EigResult(NamedTuple):
    """The result of `eig`.

    Example:
        >>> import gradix.numpy as jnp
        >>> found = jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
        >>> found.eigenvalues.real, found.eigenvectors.shape
        (Array([2., 3.], dtype=float32), (2, 2))
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The result of `eigh`.

    Example:
        >>> import gradix.numpy as jnp
        >>> found = jnp.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]]))
        >>> found.eigenvalues, abs(found.eigenvectors)
        (Array([2., 3.], dtype=float32), Array([[0., 1.],
               [1., 0.]], dtype=float32))
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The result of `qr`.

    Example:
        >>> import gradix.numpy as jnp
        >>> a = jnp.array([[3.0, 1.0], [4.0, 2.0]])
        >>> found = jnp.linalg.qr(a)
        >>> bool(jnp.allclose(found.Q @ found.R, a, atol=1e-5)), bool(jnp.allclose(found.R, jnp.triu(found.R)))
        (True, True)
    """

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """The result of `svd`.

    Example:
        >>> import gradix.numpy as jnp
        >>> found = jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), full_matrices=False)
        >>> found.S, found.U.shape, found.Vh.shape
        (Array([4., 3.], dtype=float32), (3, 2), (2, 2))
    """

    U: Array
    S: Array
    Vh: Array


@replayed
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with `L Lᴴ = a`, for Hermitian positive definite matrices.

    Args:
        a: matrices of shape (..., n, n), real or complex.
        upper: whether to return `Lᴴ` instead.
        symmetrize_input: whether to take `(a + aᴴ) / 2`. If not, only the lower triangle is read,
            or with `upper` the upper one.

    Returns:
        The factors, of shape (..., n, n) and the dtype of `a`, which is floating for integers.
        They are NaN for matrices that are not positive definite.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    x = inexact_operand("cholesky", a)
    factor = lax.linalg.cholesky(
        lax.linalg._adjoint(x) if upper and not symmetrize_input else x, symmetrize_input=symmetrize_input
    )
    return lax.linalg._adjoint(factor) if upper else factor


@replayed
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues, ascending, and the eigenvectors of Hermitian matrices.

    Args:
        a: matrices of shape (..., n, n), real or complex.
        UPLO: the triangle that is read if `symmetrize_input` is False: "L" (also None) or "U".
        symmetrize_input: whether to take `(a + aᴴ) / 2`.

    Returns:
        A named tuple of the real `eigenvalues`, of shape (..., n), and the `eigenvectors`, the
        columns of matrices of shape (..., n, n).

    Raises:
        ValueError: `UPLO` is unknown, or the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        Array([1., 2.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"eigh: UPLO must be 'L', 'U' or None, got {UPLO!r}.")
    x = inexact_operand("eigh", a)
    v, w = lax.linalg.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@replayed
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending.

    Args:
        a: matrices of shape (..., n, n), real or complex.
        UPLO: the triangle that is read if `symmetrize_input` is False: "L" (also None) or "U".
        symmetrize_input: whether to take `(a + aᴴ) / 2`.

    Returns:
        A real array of shape (..., n).

    Raises:
        ValueError: `UPLO` is unknown, or the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
        Array([1., 2.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and the right eigenvectors of square matrices, of shape (..., n, n).

    Only the eigenvalues have derivatives.

    Returns:
        A named tuple of the `eigenvalues`, of shape (..., n) and in no particular order, and the
        `eigenvectors`, the columns of matrices of shape (..., n, n); both are complex.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*lax.linalg.eig(inexact_operand("eig", a), compute_left_eigenvectors=False))


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices of shape (..., n, n), in no particular order.

    Returns:
        A complex array of shape (..., n).

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return lax.linalg.eig(
        inexact_operand("eigvals", a), compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]


@overload
def svd(
    a, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False, subset_by_index=None
) -> tuple[Array, Array, Array]: ...


@overload
def svd(
    a, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False, subset_by_index=None
) -> Array: ...


@overload
def svd(
    a, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False, subset_by_index=None
) -> Any: ...


@replayed
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """The singular value decomposition `a = U diag(S) Vh`, with S descending.

    Args:
        a: matrices of shape (..., m, n), real or complex.
        full_matrices: whether U and Vh are square. If not, they have only the k = min(m, n) columns
            and rows that belong to singular values.
        compute_uv: whether to return U and Vh too.
        hermitian: whether the matrices are Hermitian, for which a faster method is used.
        subset_by_index: None, or the whole range of singular values.

    Returns:
        A named tuple of `U`, of shape (..., m, m) or (..., m, k), the real `S`, of shape (..., k),
        and `Vh`, of shape (..., n, n) or (..., k, n); or `S` alone.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]])).S
        Array([4., 3.], dtype=float32)
    """
    x = inexact_operand("svd", a)
    if hermitian:
        return _hermitian_svd(x, compute_uv)
    out = lax.linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*out) if compute_uv else out


def _hermitian_svd(x, compute_uv: bool):
    """The decomposition by eigenvalues: S are their absolute values, and Vh takes their signs."""
    w, v = eigh(x)
    s = lax.abs(w)
    order = argsort(lax.neg(s), axis=-1)
    s = take_along_axis(s, order, -1)
    if not compute_uv:
        return s
    u = take_along_axis(v, order[..., None, :], -1)
    sign = lax.sign(take_along_axis(w, order, -1))
    signed = u * sign[..., None, :].astype(u.aval.dtype)
    return SVDResult(u, s, lax.linalg._adjoint(signed))


@replayed
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices (..., m, n), descending: a real array (..., min(m, n)).

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, -4.0]]))
        Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


@replayed
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """The factorization `a = Q R` with orthonormal columns in Q and an upper triangular R.

    Args:
        a: matrices of shape (..., m, n), real or complex.
        mode: "reduced" (also "full", its old name in NumPy) for factors with k = min(m, n) columns
            and rows, "complete" for a square Q, "r" for R alone, "raw" for the form that LAPACK
            returns.

    Returns:
        A named tuple of `Q`, of shape (..., m, k) or (..., m, m), and `R`, of shape (..., k, n) or
        (..., m, n); or R alone. With "raw", `Q` are the transposed matrices that hold R and the
        vectors of reflections, of shape (..., n, m), and `R` the factors of these, (..., k).

    Raises:
        ValueError: `mode` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.qr(jnp.array([[3.0], [4.0]]), mode="r")
        Array([[-5.]], dtype=float32)
    """
    if mode not in ("reduced", "r", "full", "complete", "raw"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}.")
    x = inexact_operand("qr", a)
    if mode == "raw":
        r, factors = lax.linalg._geqrf(x)
        return QRResult(r.mT, factors)
    q, r = lax.linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)
