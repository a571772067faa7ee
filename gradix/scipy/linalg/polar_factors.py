"""The polar decomposition into a factor with orthonormal columns and a Hermitian factor."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import as_operand
from gradix.scipy.linalg.operands import matmul

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition `a = U P` or `a = P U`, with a positive semidefinite Hermitian P.

    Args:
        a: matrices of shape (..., m, n), of a floating or complex dtype.
        side: "right" for `U P`, "left" for `P U`.
        method: "qdwh" for Halley iterations (Y. Nakatsukasa, Z. Bai, F. Gygi, 2010), "svd" for the
            singular value decomposition.
        eps: the precision of the iterations; by default that of the dtype.
        max_iterations: the largest number of iterations.

    Returns:
        U of the shape of `a`, with orthonormal columns, or rows if these are fewer; and P.

    Raises:
        ValueError: `side` or `method` has another value, or `a` has less than two axes.
        TypeError: the dtype is not floating or complex.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> u, p = linalg.polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
        >>> (u.round(4) + 0.0)
        Array([[ 0., -1.],
               [ 1.,  0.]], dtype=float32)
    """
    a = as_operand("polar", a)
    if a.aval.ndim < 2:
        raise ValueError(f"The input `a` must be at least a 2-D array, got shape {a.aval.shape}.")
    if side not in ("right", "left"):
        raise ValueError(f"The argument `side` must be either 'right' or 'left', got {side!r}.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}. Use 'qdwh' or 'svd'.")
    lax.linalg._check_matrices("polar", a.aval)
    adjoint = lax.linalg._adjoint
    wide = a.aval.shape[-2] < a.aval.shape[-1]
    u = _unitary(adjoint(a) if wide else a, method, eps, max_iterations)
    u = adjoint(u) if wide else u
    p = matmul(adjoint(u), a) if side == "right" else matmul(a, adjoint(u))
    return u, (p + adjoint(p)) / 2


@partial(custom_jvp, nondiff_argnums=(1, 2, 3))
def _unitary(a, method, eps, max_iterations):
    """U of `a = U H`, for matrices that have at least as many rows as columns."""
    if not a.aval.size:
        return a
    if method == "svd":
        u, _, vh = jnp.linalg.svd(a, full_matrices=False)
        return matmul(u, vh)
    one = lambda x: lax.linalg.qdwh(x, eps=eps, max_iterations=max_iterations)[0]  # noqa: E731
    return one(a) if a.aval.ndim == 2 else jnp.vectorize(one, signature="(m,n)->(m,n)")(a)


@_unitary.defjvp
def _unitary_jvp(method, eps, max_iterations, primals, tangents):
    """`dU = U Ω + (I - U Uᴴ) dA H⁻¹`, where `H Ω + Ω H = Uᴴ dA - dAᴴ U`.

    N. Higham, "Functions of Matrices" (2008), section 8.
    """
    (a,), (t,) = primals, tangents
    u = _unitary(a, method, eps, max_iterations)
    if not a.aval.size:
        return u, t
    adjoint = lax.linalg._adjoint
    h = matmul(adjoint(u), a)
    h = (h + adjoint(h)) / 2
    along = matmul(adjoint(u), t)
    tangent = matmul(u, _turn(h, along - adjoint(along)))
    if a.aval.shape[-2] > a.aval.shape[-1]:
        across = jnp.linalg.solve(h, adjoint(t - matmul(u, along)))
        tangent = tangent + adjoint(across)
    return u, tangent


def _turn(h, skew):
    """Ω with `H Ω + Ω H = skew`; the derivative is of the equation, not of vectors of H."""
    return lax.custom_linear_solve(
        lambda x: matmul(h, x) + matmul(x, h),
        skew,
        lambda _, b: _turn_by_vectors(h, b),
        lambda _, b: _turn_by_vectors(lax.conj(h) if h.aval.dtype in COMPLEX else h, b),
    )


def _turn_by_vectors(h, skew):
    adjoint = lax.linalg._adjoint
    w, v = jnp.linalg.eigh(h)
    w = w.astype(h.aval.dtype) if h.aval.dtype in COMPLEX else w
    inner = matmul(matmul(adjoint(v), skew), v) / (w[..., :, None] + w[..., None, :])
    return matmul(matmul(v, inner), adjoint(v))
