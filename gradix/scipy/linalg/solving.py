"""Linear systems by factors, triangular systems, Sylvester's equation, determinants, inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.jit.jit import jit
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.promotion import broadcast_to, convert, promote_dtypes_inexact, raise_rank
from gradix.scipy.linalg.factorizations import cho_factor
from gradix.scipy.linalg.operands import matmul, solved

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _both(name: str, a, b) -> list:
    return promote_dtypes_inexact(name, *[jnp.asarray(x) if isinstance(x, (list, tuple)) else x for x in (a, b)])


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices, of shape (...).

    Args:
        a: matrices of shape (..., n, n).
        overwrite_a, check_finite: have no effect.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices; infinite or NaN for singular ones.

    Args:
        a: matrices of shape (..., n, n).
        overwrite_a, check_finite: have no effect.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The solution x of `a @ x = b`, for triangular matrices.

    Args:
        a: matrices of shape (..., n, n), of which only one triangle is read.
        b: a vector, or matrices of shape (..., n, k); leading axes are broadcast.
        trans: 0 or "N" for `a`, 1 or "T" for its transpose, 2 or "C" for its adjoint.
        lower: whether the lower triangle is read.
        unit_diagonal: whether the diagonal is all ones and not read.
        overwrite_b, debug, check_finite: have no effect.

    Returns:
        An array of the broadcast shape of `b`.

    Raises:
        ValueError: the shapes do not fit, or `trans` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))
        Array([1., 2.], dtype=float32)
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"Invalid 'trans' value {trans}. Use 0, 1, 2, or 'N', 'T', 'C'.")
    a, b = _both("solve_triangular", a, b)
    transposed, conjugated = trans in (1, 2, "T", "C"), trans in (2, "C")

    def solution(a, b):
        return lax.linalg.triangular_solve(
            a,
            b,
            left_side=True,
            lower=lower,
            transpose_a=transposed,
            conjugate_a=conjugated,
            unit_diagonal=unit_diagonal,
        )

    return solved("solve_triangular", solution, a, b)


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution x of `a @ x = b`, by the Cholesky factor of `a`.

    Args:
        c_and_lower: the result of `cho_factor`.
        b: a vector, or matrices of shape (..., n, k); leading axes are broadcast.
        overwrite_b, check_finite: have no effect.

    Returns:
        An array of the broadcast shape of `b`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.cho_solve(linalg.cho_factor(jnp.array([[4.0, 0.0], [0.0, 2.0]])), jnp.array([4.0, 4.0])).round(4)
        Array([1., 2.], dtype=float32)
    """
    factor, lower = _factored("cho_solve", "c_and_lower", c_and_lower)
    return solved("cho_solve", lambda c, b: _cholesky_solution(c, b, bool(lower)), *_both("cho_solve", factor, b))


def _factored(name: str, argument: str, pair) -> tuple[Any, Any]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"{name}: {argument} must be the pair that {name[:-5]}factor returns, got {type(pair).__name__}"
            f"{f' of {len(pair)}' if isinstance(pair, (tuple, list)) else ''}."
        )
    return pair[0], pair[1]


def _cholesky_solution(c, b, lower: bool):
    complex_ = c.aval.dtype in COMPLEX
    y = lax.linalg.triangular_solve(
        c, b, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=complex_ and not lower
    )
    return lax.linalg.triangular_solve(
        c, y, left_side=True, lower=lower, transpose_a=lower, conjugate_a=complex_ and lower
    )


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution x of `a @ x = b`, by the LU factors of `a`.

    Args:
        lu_and_piv: the result of `lu_factor`.
        b: a vector, or matrices of shape (..., n, k); leading axes are broadcast.
        trans: 0 for `a`, 1 for its transpose, 2 for its adjoint.
        overwrite_b, check_finite: have no effect.

    Returns:
        An array of the broadcast shape of `b`.

    Raises:
        ValueError: the shapes do not fit, or `trans` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.lu_solve(linalg.lu_factor(jnp.array([[0.0, 2.0], [4.0, 0.0]])), jnp.array([2.0, 4.0]))
        Array([1., 1.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}.")
    factors, pivots = _factored("lu_solve", "lu_and_piv", lu_and_piv)
    factors, b = _both("lu_solve", factors, b)
    order = lax.linalg.lu_pivots_to_permutation(convert(jnp.asarray(pivots), np.dtype("int32")), factors.aval.shape[-1])

    def solution(factors, b):
        lead = factors.aval.shape[:-2]
        places = broadcast_to(order, (*lead, order.aval.shape[-1]))
        if not trans:
            return lax.linalg._solve_factored(factors, places, b)
        if trans == 1 or b.aval.dtype not in COMPLEX:
            return lax.linalg._solve_factored_transposed(factors, places, b)
        return lax.conj(lax.linalg._solve_factored_transposed(factors, places, lax.conj(b)))

    return solved("lu_solve", solution, factors, b)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The solution x of `a @ x = b`.

    Args:
        a: matrices of shape (..., n, n).
        b: a vector, or matrices of shape (..., n, k); leading axes are broadcast.
        lower: whether the lower triangle is read if `assume_a` is "pos".
        assume_a: "gen", "sym" or "her" to use LU factors, or "pos" to use Cholesky factors, which
            are faster and need positive definite matrices.
        overwrite_a, overwrite_b, debug, check_finite: have no effect.

    Returns:
        An array of the broadcast shape of `b`; infinite or NaN for singular matrices, and for "pos"
        for matrices that are not positive definite.

    Raises:
        ValueError: the shapes do not fit, or `assume_a` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}.")
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    a, b = _both("solve", a, b)
    factor = lax.stop_gradient(cho_factor(a, lower)[0])
    half = jnp.tril(a) if lower else jnp.triu(a)
    whole = half + lax.linalg._adjoint(jnp.tril(a, -1) if lower else jnp.triu(a, 1))
    lead = a.aval.ndim - 2

    def solution(a, b):
        c = broadcast_to(factor, (*b.aval.shape[:-2], *factor.aval.shape[-2:])) if b.aval.ndim - 2 > lead else factor

        def back(_, y):
            if y.aval.dtype in COMPLEX:
                return lax.conj(_cholesky_solution(c, lax.conj(y), lower))
            return _cholesky_solution(c, y, lower)

        return lax.custom_linear_solve(lambda x: matmul(a, x), b, lambda _, y: _cholesky_solution(c, y, lower), back)

    return solved("solve", solution, whole, b)


# -- Sylvester's equation --------------------------------------------------------------------------


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The solution X of `A X + X B = C`, which is differentiable in A, B and C.

    Args:
        A: matrices of shape (..., m, m).
        B: matrices of shape (..., n, n).
        C: matrices of shape (..., m, n). Leading axes are broadcast.
        method: "schur" to make A and B triangular (R. Bartels, G. Stewart, "Solution of the matrix
            equation AX + XB = C", 1972), or "eigen" to make them diagonal, which is faster but only
            accurate for well conditioned eigenvectors.
        tol: the least absolute value of a sum of an eigenvalue of A and one of B. If a sum is
            smaller, X is NaN.

    Returns:
        An array of the broadcast shape of C.

    Raises:
        ValueError: the shapes do not fit, or `method` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.solve_sylvester(jnp.array([[1.0]]), jnp.array([[2.0]]), jnp.array([[6.0]]))
        Array([[2.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f'Unrecognized method {method}. The two valid methods are either "schur" or "eigen".')
    a, b, c = promote_dtypes_inexact("solve_sylvester", A, B, C)
    shapes = [x.aval.shape for x in (a, b, c)]
    if any(len(s) < 2 for s in shapes) or [s[-2:] for s in shapes] != [
        (shapes[2][-2],) * 2,
        (shapes[2][-1],) * 2,
        shapes[2][-2:],
    ]:
        raise ValueError(
            f"Incompatible shapes for Sylvester equation: A: {shapes[0]} B: {shapes[1]} C: {shapes[2]}. "
            "They must be (..., m, m), (..., n, n) and (..., m, n)."
        )
    try:
        lead = lax.broadcast_shapes(*[s[:-2] for s in shapes])
    except ValueError:
        raise ValueError(
            f"solve_sylvester: the leading axes of A: {shapes[0]} B: {shapes[1]} C: {shapes[2]} do not "
            "broadcast. They must agree or have size 1."
        ) from None
    a, b, c = [broadcast_to(x, (*lead, *x.aval.shape[-2:])) for x in (a, b, c)]
    if not c.aval.size:
        return c
    way = _by_schur if method == "schur" else _by_eigenvalues
    fixed_a, fixed_b = lax.stop_gradient(a), lax.stop_gradient(b)

    def transposed(_, d):
        return way(fixed_b, fixed_a, d.mT, tol).mT

    return lax.custom_linear_solve(
        lambda x: matmul(a, x) + matmul(x, b), c, lambda _, d: way(fixed_a, fixed_b, d, tol), transposed
    )


def _of_kind(x, dtype):
    return convert(lax.real(x), dtype) if dtype not in COMPLEX else x


def _unsolvable(left, right, x, tol: float):
    """The solutions x, but NaN where a sum of eigenvalues is nearly zero."""
    sums = abs(left[..., :, None] + right[..., None, :])
    return jnp.where(jnp.min(sums, axis=(-2, -1), keepdims=True) < tol, np.nan, x)


@jit  # so that it rounds alike within compiled programs and outside of them
def _by_schur(a, b, c, tol: float):
    """With `A = U R Uᴴ` and `B = V S Vᴴ`, solve `R Y + Y S = Uᴴ C V` column by column."""
    dtype = c.aval.dtype
    a, b, c = [convert(x, dtypes.to_complex_dtype(dtype)) for x in (a, b, c)]
    (r, u), (s, v) = lax.linalg.schur(a), lax.linalg.schur(b)
    adjoint, n = lax.linalg._adjoint, c.aval.shape[-1]
    f = matmul(matmul(adjoint(u), c), v)
    left, right = lax.linalg._diagonal(r), lax.linalg._diagonal(s)
    eye = jnp.eye(c.aval.shape[-2], dtype=c.aval.dtype)
    axis = c.aval.ndim - 1

    def column(y, k):
        so_far = matmul(y, lax.dynamic_slice_in_dim(s, k, 1, axis=axis))
        shift = lax.dynamic_slice_in_dim(right, k, 1, axis=axis - 1)[..., None]
        rest = lax.dynamic_slice_in_dim(f, k, 1, axis=axis) - so_far
        new = lax.linalg.triangular_solve(
            r + shift * raise_rank(eye, shift.aval.ndim), rest, left_side=True, lower=False
        )
        return lax.dynamic_update_slice_in_dim(y, new, k, axis=axis), None

    y, _ = lax.scan(column, jnp.zeros_like(f), lax.iota(np.int32, n))
    x = matmul(matmul(u, y), adjoint(v))
    return _of_kind(_unsolvable(left, right, x, tol), dtype)


@jit
def _by_eigenvalues(a, b, c, tol: float):
    """With `A = U diag(λ) U⁻¹` and `B = V diag(μ) V⁻¹`, divide `U⁻¹ C V` by `λᵢ + μⱼ`."""
    dtype = c.aval.dtype
    (left, u), (right, v) = jnp.linalg.eig(a), jnp.linalg.eig(b)
    inner = matmul(jnp.linalg.solve(u, convert(c, u.aval.dtype)), v)
    y = inner / (left[..., :, None] + right[..., None, :])
    x = jnp.linalg.solve(v.mT, matmul(u, y).mT).mT
    return _of_kind(_unsolvable(left, right, x, tol), dtype)
