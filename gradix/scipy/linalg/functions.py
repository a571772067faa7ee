"""Functions of matrices: the exponential, the square root, and any function of the eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.autodiff import jvp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.jit.jit import jit
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import convert, inexact_operand, promote_dtypes_inexact, raise_rank
from gradix.scipy.linalg.factorizations import rsf2csf, schur
from gradix.scipy.linalg.operands import matmul, matrices, square
from gradix.scipy.linalg.solving import solve_sylvester, solve_triangular

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

# For each dtype, the norm up to which a Padé approximant is as accurate as the dtype, and its
# coefficients: N. Higham, "The scaling and squaring method ... revisited" (2005), table 2.3.
_PADE = {
    np.dtype("float32"): (3.925724783138660, (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)),
    np.dtype("float64"): (
        5.371920351148152,
        (
            64764752532480000.0,
            32382376266240000.0,
            7771770303897600.0,
            1187353796428800.0,
            129060195264000.0,
            10559470521600.0,
            670442572800.0,
            33522128640.0,
            1323241920.0,
            40840800.0,
            960960.0,
            16380.0,
            182.0,
            1.0,
        ),
    ),
}


# -- the exponential -------------------------------------------------------------------------------


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices.

    It squares Padé approximants of a scaled matrix: N. Higham, "The scaling and squaring method for
    the matrix exponential revisited" (2005).

    Args:
        A: matrices of shape (..., n, n), of a floating or complex dtype of 32 or 64 bits.
        upper_triangular: whether the matrices are upper triangular, which is faster.
        max_squarings: the largest number of squarings, which is about log₂ of the norm. Matrices
            that need more give NaN.

    Returns:
        Matrices of the shape and dtype of `A`.

    Raises:
        ValueError: the matrices are not square.
        TypeError: the dtype has 16 bits or less.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]])).round(5)
        Array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    a = inexact_operand("expm", A)
    shape, dtype = a.aval.shape, a.aval.dtype
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={shape}.")
    real = dtypes.real_dtype(dtype) if dtype in COMPLEX else dtype
    if real not in _PADE:
        raise TypeError(
            f"A.dtype={dtypes.dtype_name(dtype)} is not supported by expm. Convert it with .astype('float32')."
        )
    if not a.aval.size:
        return a
    limit, coefficients = _PADE[real]
    norm = jnp.max(jnp.sum(abs(lax.stop_gradient(a)), axis=-2), axis=-1)
    # A matrix of zeros needs none, and the maximum avoids log2(0).
    needed = jnp.ceil(jnp.log2(jnp.maximum(norm / limit, 1)))
    count = convert(jnp.minimum(needed, max_squarings), np.dtype("int32"))
    p, q = _pade(a * convert(jnp.exp2(-convert(count, real)), dtype)[..., None, None], coefficients)
    out = solve_triangular(q, p) if upper_triangular else jnp.linalg.solve(q, p)
    out = _squared(out, count)
    return jnp.where((needed > max_squarings)[..., None, None], np.nan, out)


def _pade(a, b):
    """Numerator `V + U` and denominator `V - U`, where V has the even powers and U the odd ones."""
    eye = raise_rank(jnp.eye(a.aval.shape[-1], dtype=a.aval.dtype), a.aval.ndim)
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    powers = [eye, a2, a4, a6]

    def total(coefficients):
        return sum(c * m for c, m in zip(coefficients, powers))

    odd, even = total(b[1:8:2]), total(b[0:8:2])
    if len(b) > 8:
        odd = odd + matmul(a6, b[9] * a2 + b[11] * a4 + b[13] * a6)
        even = even + matmul(a6, b[8] * a2 + b[10] * a4 + b[12] * a6)
    u = matmul(a, odd)
    return even + u, even - u


def _squared(x, count):
    """Each matrix squared as often as `count` says; the loop runs for the largest of a stack."""
    if not count.aval.ndim:
        return lax.fori_loop(np.int32(0), count, lambda i, x: matmul(x, x), x)

    def turn(i, x):
        return jnp.where((i < count)[..., None, None], matmul(x, x), x)

    return lax.fori_loop(np.int32(0), jnp.max(count), turn, x)


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The derivative of the matrix exponential at `A` in the direction `E`.

    Args:
        A: matrices of shape (..., n, n).
        E: the direction, of the same shape.
        method: has no effect.
        compute_expm: whether to give the exponential before the derivative.

    Returns:
        The exponential and the derivative, or the derivative only, of the shape of `A`.

    Raises:
        ValueError: the matrices are not square, or their shapes differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)))
        (Array([[1.]], dtype=float32), Array([[1.]], dtype=float32))
    """
    a, e = promote_dtypes_inexact("expm_frechet", A, E)
    if a.aval.ndim < 2 or a.aval.shape[-1] != a.aval.shape[-2]:
        raise ValueError(f"expected A to be a (batched) square matrix, got A.shape={a.aval.shape}.")
    if a.aval.shape != e.aval.shape:
        raise ValueError(f"expected A and E to be the same shape, got A.shape={a.aval.shape} E.shape={e.aval.shape}.")
    value, change = jvp(expm, (a,), (e,))
    return (value, change) if compute_expm else change


# -- by the Schur form -----------------------------------------------------------------------------


def _columns(t, diagonal, right_side, sign: float):
    """An upper triangular F with a given diagonal, computed column by column.

    Column j solves `(T̃ + sign·T̃ⱼⱼ) f = b`, where `right_side(F, j)` returns the triangular T̃ and b.
    Equations with a zero on the diagonal are not divided, and are the last result.
    """
    n = t.aval.shape[-1]
    eye = jnp.eye(n, dtype=bool)
    start = jnp.where(eye, diagonal[:, None], 0)
    rows = lax.iota(np.int32, n)

    def column(f, j):
        matrix, rhs = right_side(f, j)
        shifted = matrix + sign * jnp.where(eye, matrix[j, j], 0)
        pivots = jnp.diagonal(shifted)
        vanishing = pivots == 0
        shifted = jnp.where(eye & vanishing[:, None], 1, shifted)
        rhs = jnp.where(rows < j, rhs, 0)
        shifted = jnp.where((rows < j)[None, :] | eye, shifted, 0)
        new = lax.linalg.triangular_solve(shifted, rhs[:, None], left_side=True, lower=False)[:, 0]
        new = jnp.where(rows < j, new, 0)
        return f + jnp.where(rows == j, new[:, None], 0), (new, vanishing)

    return lax.scan(column, start, rows)


def _root_of_triangle(t):
    """R with `R R = T`, whose columns solve `(R₁₁ + rⱼⱼ) r = t`."""
    f, (new, vanishing) = _columns(t, jnp.sqrt(jnp.diagonal(t)), lambda f, j: (f, t[:, j]), 1.0)
    undivided = jnp.any(vanishing & (new != 0) & jnp.tri(t.aval.shape[-1], k=-1, dtype=bool))
    return jnp.where(undivided, np.nan, f)  # The root does not exist, or is not unique.


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of square matrices.

    Å. Björck, S. Hammarling, "A Schur method for the square root of a matrix" (1983).

    Args:
        A: matrices of shape (..., n, n).
        blocksize: must be 1.

    Returns:
        Complex matrices of the shape of `A`; NaN for matrices without a root.

    Raises:
        NotImplementedError: `blocksize` is larger than 1.
        ValueError: the matrices are not square.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real.round(4)
        Array([[2., 0.],
               [0., 3.]], dtype=float32)
    """
    if blocksize > 1:
        raise NotImplementedError(f"sqrtm: only blocksize=1 is implemented, got {blocksize}. Leave it out.")
    a = square("sqrtm", A)
    a = convert(a, dtypes.to_complex_dtype(a.aval.dtype))
    if not a.aval.size:
        return a
    return _sqrtm(a) if a.aval.ndim == 2 else jnp.vectorize(_sqrtm, signature="(n,n)->(n,n)")(a)


@custom_jvp
@jit  # so that it rounds alike within compiled programs and outside of them
def _sqrtm(a):
    t, z = schur(a, "complex")
    return matmul(matmul(z, _root_of_triangle(t)), lax.linalg._adjoint(z))


@_sqrtm.defjvp
def _sqrtm_jvp(primals, tangents):
    """The solution dX of `X dX + dX X = dA`."""
    (a,), (t,) = primals, tangents
    x = _sqrtm(a)
    return x, solve_sylvester(x, x, t)


def funm(A: ArrayLike, func: Callable, disp: bool = True) -> Any:
    """A function of a square matrix, computed from its values at the eigenvalues.

    B. Parlett, "A recurrence among the elements of functions of triangular matrices" (1976). The
    result is less accurate for eigenvalues that are close to each other.

    Args:
        A: a square matrix of a floating or complex dtype.
        func: an elementwise function of a vector of complex numbers.
        disp: whether to give the matrix only.

    Returns:
        A complex matrix; and unless `disp`, an estimate of the relative error in the norm.

    Raises:
        ValueError: `A` is not a square matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.funm(jnp.array([[0.0, 0.0], [0.0, 1.0]]), jnp.exp).real.round(4)
        Array([[1.    , 0.    ],
               [0.    , 2.7183]], dtype=float32)
    """
    a = matrices("funm", A) if isinstance(A, (list, tuple)) else jnp.asarray(A)
    if a.aval.ndim != 2 or a.aval.shape[0] != a.aval.shape[1]:
        raise ValueError(
            f"expected square array_like input: A must be one square matrix, got shape {a.aval.shape}. "
            "Use vmap for several matrices."
        )
    # The complex form of the real one has the real eigenvalues exactly, which tells where functions branch.
    t, z = schur(a)
    if t.aval.dtype not in dtypes.COMPLEX:
        t, z = rsf2csf(t, z)
    if not a.aval.size:
        return t if disp else (t, jnp.zeros((), dtypes.real_dtype(t.aval.dtype)))
    values = convert(jnp.asarray(func(jnp.diagonal(t))), t.aval.dtype)

    def right_side(f, j):
        # `T F = F T` gives `(T₁₁ - tⱼⱼ) f = F₁₁ t - t fⱼⱼ`.
        return t, matmul(f, t[:, j][:, None])[:, 0] - t[:, j] * f[j, j]

    f, _ = _columns(t, values, right_side, -1.0)
    out = matmul(matmul(z, f), lax.linalg._adjoint(z))
    return out if disp else (out, _error_of_funm(t, out))


def _error_of_funm(t, out):
    """The machine epsilon, times the norm of strict T over the least eigenvalue gap; at most 1."""
    n, eps = t.aval.shape[0], float(np.finfo(dtypes.real_dtype(t.aval.dtype)).eps)
    d = jnp.diagonal(t)
    gaps = jnp.where(np.eye(n, dtype=bool), np.inf, abs(d[:, None] - d[None, :]))
    least = jnp.minimum(jnp.min(gaps), abs(d[0]))
    least = jnp.where(least == 0, eps, least)
    error = jnp.clip(eps / least * jnp.max(jnp.sum(abs(jnp.triu(t, 1)), axis=0)), eps, 1)
    return jnp.where(jnp.all(jnp.isfinite(out)), error, np.inf)
