"""Factorizations of matrices: cholesky, qr, svd, and eigenvalues."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._core.operators import Array
from gradix.numpy import matrix_host_implementations
from gradix.numpy.promotion import inexact_operand
from gradix.numpy.sorting import argsort
from gradix.numpy.taking import take_along_axis

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
    """What `eig` gives."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Array
    S: Array
    Vh: Array


@replayed(host=matrix_host_implementations.cholesky)
def cholesky(a, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with `L Lᴴ = a`, for Hermitian positive definite matrices.

    Args:
        a: matrices, in the last two axes.
        upper: give `Lᴴ`.
        symmetrize_input: use `(a + aᴴ) / 2`; otherwise only the lower triangle is read.

    Returns:
        The factors; NaN for matrices that are not positive definite.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    x = inexact_operand("cholesky", a)
    factor = lax.linalg.cholesky(
        lax.linalg._adjoint(x) if upper and not symmetrize_input else x,
        symmetrize_input=symmetrize_input,
    )
    return lax.linalg._adjoint(factor) if upper else factor


@replayed(host=matrix_host_implementations.eigh)
def eigh(a, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Ascending eigenvalues, and eigenvectors in columns, of Hermitian matrices.

    Args:
        a: matrices, in the last two axes.
        UPLO: "L" or "U", the triangle that is read where the input is not symmetrized.
        symmetrize_input: use `(a + aᴴ) / 2`.

    Raises:
        ValueError: `UPLO` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        Array([1., 2.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    x = inexact_operand("eigh", a)
    v, w = lax.linalg.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@replayed(host=matrix_host_implementations.eigvalsh)
def eigvalsh(a, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Ascending eigenvalues of Hermitian matrices.

    Args:
        a: matrices, in the last two axes.
        UPLO: "L" or "U", the triangle that is read where the input is not symmetrized.
        symmetrize_input: use `(a + aᴴ) / 2`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
        Array([1., 2.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a) -> EigResult:
    """Eigenvalues, and right eigenvectors in columns, of square matrices; always complex.

    Only the eigenvalues have derivatives.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*lax.linalg.eig(inexact_operand("eig", a), compute_left_eigenvectors=False))


def eigvals(a) -> Array:
    """Eigenvalues of square matrices, in no particular order; always complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return lax.linalg.eig(
        inexact_operand("eigvals", a),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
    )[0]


@replayed
def svd(
    a,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index=None,
) -> Any:
    """The singular value decomposition `a = U diag(S) Vh`, S descending.

    Args:
        a: matrices, in the last two axes.
        full_matrices: make U and Vh square; otherwise as many columns as singular values.
        compute_uv: False gives S alone.
        hermitian: the matrices are Hermitian, which is quicker.
        subset_by_index: None or the whole range.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]])).S
        Array([4., 3.], dtype=float32)
    """
    x = inexact_operand("svd", a)
    if hermitian:
        return _hermitian_svd(x, compute_uv)
    out = lax.linalg.svd(
        x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*out) if compute_uv else out


def _hermitian_svd(x, compute_uv: bool):
    """Singular values are the sizes of eigenvalues, and the signs go to Vh."""
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
def svdvals(x, /) -> Array:
    """The descending singular values of matrices.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, -4.0]]))
        Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


@replayed
def qr(a, mode: str = "reduced") -> Any:
    """The QR factorization of matrices.

    Args:
        a: matrices, in the last two axes.
        mode: "reduced" for Q with at most as many columns as `a`, "complete" for a square Q, "r"
            for R alone, "raw" for LAPACK's form: transposed vectors of reflections with R, and
            their factors.

    Raises:
        ValueError: `mode` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.qr(jnp.array([[3.0], [4.0]]), mode="r")
        Array([[-5.]], dtype=float32)
    """
    if mode not in ("reduced", "r", "full", "complete", "raw"):
        raise ValueError(
            f"Unsupported QR decomposition mode '{mode}'. It takes 'reduced', 'complete', 'r' and 'raw'."
        )
    x = inexact_operand("qr", a)
    if mode == "raw":
        r, factors = lax.linalg._geqrf(x)
        return QRResult(r.mT, factors)
    q, r = lax.linalg.qr(x, full_matrices=mode in ("full", "complete"))
    return r if mode == "r" else QRResult(q, r)
