"""Determinants of square matrices and their logarithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradix import lax
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.jit.replay import replayed
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy import matrix_host_implementations, reductions
from gradix.numpy.decompositions import svd
from gradix.numpy.matrices import eye
from gradix.numpy.promotion import broadcast_to, convert, number
from gradix.numpy.selection import where
from gradix.numpy.solving import solve_stack, square_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class SlogdetResult(NamedTuple):
    """The result of `slogdet`.

    Example:
        >>> import gradix.numpy as jnp
        >>> found = jnp.linalg.slogdet(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
        >>> found.sign, found.logabsdet
        (Array(-1., dtype=float32), Array(0., dtype=float32))
    """

    sign: Array
    logabsdet: Array


@replayed(host=matrix_host_implementations.slogdet)
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their absolute values.

    These stay finite where the determinant itself overflows or underflows.

    Args:
        a: square matrices of shape (..., n, n), real or complex.
        method: the factorization that is used, "lu" (the default) or "qr".

    Returns:
        A named tuple of `sign`, -1, 0 or 1, or of absolute value 1 for complex matrices, and the
        real `logabsdet`; both of shape (...).

    Raises:
        ValueError: `method` is unknown, or the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
        SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    x = square_operand("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be 'lu' (also None) or 'qr', got {method!r}.")
    if x.aval.dtype.itemsize < 4:  # LAPACK has no half precision.
        return SlogdetResult(
            *[convert(part, x.aval.dtype) for part in slogdet(convert(x, np.dtype("float32")), method=method)]
        )
    if method == "qr":
        return _slogdet_qr(x)
    return SlogdetResult(*_slogdet_lu(x))


@custom_jvp
def _slogdet_lu(x):
    factors, pivots, _ = lax.linalg.lu(x)
    return tuple(_sign_and_log(lax.linalg._diagonal(factors), _parity(pivots, x.aval.dtype)))


@_slogdet_lu.defjvp
def _slogdet_lu_jvp(primals, tangents):
    """`d log det = tr(a⁻¹ da)`; its imaginary part rotates a complex sign."""
    (x,), (t,) = primals, tangents
    sign, size = _slogdet_lu(x)
    slope = reductions.sum(lax.linalg._diagonal(solve_stack(x, t)), axis=-1)
    if x.aval.dtype not in dtypes.COMPLEX:
        return (sign, size), (lax.full_like(sign, 0), slope)
    rotated = lax.complex(lax.full_like(size, 0), lax.imag(slope))
    return (sign, size), (sign * rotated, lax.real(slope))


def _slogdet_qr(x):
    """The result from a QR factorization; each reflection changes the sign, or the phase."""
    r, taus = lax.linalg._geqrf(lax.stop_gradient(x))
    v = lax.linalg._triangle(r, True, -1)
    squares = reductions.sum(lax.real(v * lax.conj(v)) if x.aval.dtype in dtypes.COMPLEX else v * v, axis=-2) + 1
    phases = 1 - taus * squares.astype(taus.aval.dtype)
    _, upper = lax.linalg.qr(x)
    return _sign_and_log(lax.linalg._diagonal(upper), reductions.prod(phases, axis=-1))


def _parity(pivots, dtype):
    """The sign of permutations: 1 for an even number of exchanges, -1 for an odd one."""
    places = lax.broadcasted_iota(pivots.aval.dtype, pivots.aval.shape, pivots.aval.ndim - 1)
    odd = reductions.sum(lax.ne(pivots, places), axis=-1) % 2
    return convert(1 - 2 * odd, dtype)


def _sign_and_log(diagonal, sign):
    size = lax.abs(diagonal)
    return SlogdetResult(sign * reductions.prod(lax.sign(diagonal), axis=-1), reductions.sum(lax.log(size), axis=-1))


@replayed(host=matrix_host_implementations.det)
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices: an array of shape (...) for matrices (..., n, n).

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array(-2., dtype=float32)
    """
    x = square_operand("det", a)
    n = x.aval.shape[-1]
    if n == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    if n == 3:
        p, q, r = x[..., 0, :], x[..., 1, :], x[..., 2, :]
        return (
            p[..., 0] * (q[..., 1] * r[..., 2] - q[..., 2] * r[..., 1])
            - p[..., 1] * (q[..., 0] * r[..., 2] - q[..., 2] * r[..., 0])
            + p[..., 2] * (q[..., 0] * r[..., 1] - q[..., 1] * r[..., 0])
        )
    return _det(x)


@custom_jvp
def _det(x):
    factors, pivots, _ = lax.linalg.lu(x)
    return _parity(pivots, x.aval.dtype) * reductions.prod(lax.linalg._diagonal(factors), axis=-1)


@_det.defjvp
def _det_jvp(primals, tangents):
    """Jacobi's formula, `d det = tr(adj(a) da)`; singular matrices take `_adjugate`."""
    (x,), (t,) = primals, tangents
    y = _det(x)
    singular = lax.eq(lax.stop_gradient(y), number(0, y.aval.dtype))
    one = broadcast_to(eye(x.aval.shape[-1], dtype=x.aval.dtype), x.aval.shape)
    regular = where(singular[..., None, None], one, x)
    direct = y * reductions.sum(lax.linalg._diagonal(solve_stack(regular, t)), axis=-1)
    if not x.aval.size:
        return y, lax.full_like(y, 0)
    apart = (
        lax.broadcasted_iota(
            x.aval.dtype if x.aval.dtype not in dtypes.COMPLEX else np.dtype("float32"), x.aval.shape, x.aval.ndim - 1
        ).astype(x.aval.dtype)
        * one
        + one
    )
    cofactors = lax.cond(
        reductions.any(singular), _adjugate, lambda v: v * 0, where(singular[..., None, None], x, apart)
    )
    traced = reductions.sum(lax.linalg._diagonal(lax.linalg._product(cofactors, t)), axis=-1)
    return y, where(singular, traced, direct)


def _adjugate(x):
    """The adjugate `det(U) det(Vᴴ) V adj(S) Uᴴ` of matrices, by their singular values.

    Element i of the diagonal of `adj(S)` is the product of all singular values but number i.
    """
    u, s, vh = svd(x, full_matrices=False)
    n = s.aval.shape[-1]
    others = where(eye(n, dtype=bool), number(1, s.aval.dtype), broadcast_to(s[..., None, :], x.aval.shape))
    weights = reductions.prod(others, axis=-1).astype(x.aval.dtype)
    sign = _det(u) * _det(vh)
    return sign[..., None, None] * lax.linalg._product(
        lax.linalg._adjoint(vh) * weights[..., None, :], lax.linalg._adjoint(u)
    )
