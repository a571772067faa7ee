"""Linear algebra of sparse matrices: systems of equations, and the largest eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.callbacks import pure_callback as _pure_callback
from gradix._api.structs import ShapeDtypeStruct as _ShapeDtypeStruct
from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names
from gradix._ops.linalg.sparse_product import sparse_product as _sparse_product
from gradix.experimental.sparse._array import JAXSparse as _JAXSparse
from gradix.experimental.sparse.bcsr import BCSR as _BCSR, _rows

if TYPE_CHECKING:
    from gradix._core.operators import Array

_scipy = _lazy_module("scipy.sparse.linalg")
_matrices = _lazy_module("scipy.sparse")


# -- systems of equations --------------------------------------------------------------------------


def spsolve(data: Array, indices: Array, indptr: Array, b: Array, tol: float = 1e-06, reorder: int = 1) -> Array:
    """The solution x of `A x = b`, for a matrix by compressed rows; SuperLU factors it on the host.

    Args:
        data: the elements of A, of shape (nse,), float32, float64, complex64 or complex128.
        indices: their columns, of shape (nse,).
        indptr: where each row starts, of shape (n + 1,).
        b: a vector of shape (n,) and the dtype of `data`.
        tol, reorder: not used; they are parameters of solvers on other platforms.

    Returns:
        An array of shape (n,), all NaN if the matrix is singular. Forward and reverse mode are
        defined with respect to `data` and `b`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ, or are not one of the four.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> m = sparse.BCSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> spsolve(m.data, m.indices, m.indptr, jnp.array([2.0, 9.0]))
        Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    if data.ndim != 1 or indices.shape != data.shape or b.ndim != 1 or indptr.shape != (b.shape[0] + 1,):
        raise ValueError(
            "spsolve: data and indices must be vectors of the same length, b of shape (n,) and indptr of "
            f"shape (n + 1,); got shapes {data.shape}, {indices.shape}, {b.shape} and {indptr.shape}."
        )
    if data.dtype != b.dtype or data.dtype.kind not in "fc" or data.dtype.itemsize < 4:
        raise TypeError(
            "spsolve: data and b must have the same dtype, one of float32, float64, complex64 and "
            f"complex128; got {data.dtype} and {b.dtype}."
        )
    n = b.shape[0]
    made = _BCSR((data, indices, indptr), shape=(n, n))
    rows = _rows(made)
    inside = (rows < n) & (indices >= 0) & (indices < n)
    kept = jnp.where(inside, data, 0)
    rows, columns = [jnp.where(inside, x, n - 1) for x in (rows, indices)]

    def product(x):
        return _sparse_product(kept, rows, columns, x[:, None], n)[:, 0]

    def solve(_, b):
        return _solved(lax.stop_gradient(data), indices, indptr, b, False)

    def solve_transposed(_, b):
        return _solved(lax.stop_gradient(data), indices, indptr, b, True)

    return lax.custom_linear_solve(product, b, solve, solve_transposed)


def _solved(data, indices, indptr, b, transposed: bool):
    out = _ShapeDtypeStruct(b.shape, b.dtype)
    host = _on_host_transposed if transposed else _on_host
    return _pure_callback(host, out, data, indices, indptr, b, vmap_method="sequential")


def _on_host(data, indices, indptr, b) -> np.ndarray:
    return _by_factors(_scipy_matrix(data, indices, indptr), np.asarray(b), "N")


def _on_host_transposed(data, indices, indptr, b) -> np.ndarray:
    return _by_factors(_scipy_matrix(data, indices, indptr), np.asarray(b), "T")


def _scipy_matrix(data, indices, indptr):
    data, indices, indptr = map(np.asarray, (data, indices, indptr))
    n, count = len(indptr) - 1, int(indptr[-1])
    return _matrices.csr_matrix((data[:count], indices[:count], indptr), shape=(n, n))


def _by_factors(matrix, b, trans: str) -> np.ndarray:
    matrix = matrix.tocsc()
    matrix.sum_duplicates()
    try:
        return _scipy.splu(matrix).solve(b, trans).astype(b.dtype)
    except RuntimeError:  # "Factor is exactly singular"
        return np.full_like(b, np.nan)


# -- eigenvalues -----------------------------------------------------------------------------------


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> Any:
    """The largest eigenvalues of a symmetric matrix and their eigenvectors, by products with it.

    It is the locally optimal block preconditioned conjugate gradient method of A. Knyazev, SIAM J.
    Sci. Comput. 23 (2001), with the orthogonal bases of U. Hetmaniuk and R. Lehoucq, J. Comput.
    Phys. 218 (2006).

    Args:
        A: a symmetric matrix of shape (n, n), ordinary or sparse, or a function that takes matrices
            of shape (n, k) and returns their product with it.
        X: the start, of shape (n, k) with 5 k < n; float32 or float64.
        m: the largest number of steps; after none the values are those that the start's span has.
        tol: the steps end where each residual `A x - x λ` is shorter than
            `10 n tol (norm(A x) + λ)`, but not before the first; by default the machine epsilon.

    Returns:
        The k largest eigenvalues in decreasing order, of shape (k,); their orthonormal eigenvectors
        as columns, of shape (n, k); and the number of steps.

    Raises:
        ValueError: a shape or dtype does not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import random
        >>> A, start = jnp.diag(jnp.arange(1.0, 31.0)), random.normal(random.key(0), (30, 2))
        >>> values, vectors, steps = lobpcg_standard(A, start)
        >>> jnp.round(values, 3)
        Array([30., 29.], dtype=float32)
    """
    X = jnp.asarray(X)
    if X.ndim != 2 or X.dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(
            f"lobpcg_standard: X must be a matrix of float32 or float64, got {X.dtype} of shape {X.shape}."
        )
    n, k = X.shape
    if k == 0 or 5 * k >= n:
        raise ValueError(
            "lobpcg_standard: expected search dim * 5 < matrix dim, with at least one column; got X of "
            f"shape {X.shape}. Use gradix.numpy.linalg.eigh for small matrices."
        )
    is_function = callable(A) and not isinstance(A, _JAXSparse)
    multiply = A if is_function else _times(A, n)
    if jnp.shape(multiply(X)) != X.shape:
        raise ValueError(f"lobpcg_standard: A(X) must be of the shape of X, {X.shape}; got {jnp.shape(multiply(X))}.")
    eps = float(jnp.finfo(X.dtype).eps)
    return _search(multiply, X, m, eps if tol is None else tol)


def _times(A, n: int) -> Callable:
    A = A if isinstance(A, _JAXSparse) else jnp.asarray(A)
    if A.shape != (n, n):
        raise ValueError(f"lobpcg_standard: A must be of shape {(n, n)}, since X has {n} rows; got {A.shape}.")
    return lambda x: A @ x


def _search(multiply: Callable, X, m: int, tol):
    n, k = X.shape
    X, AX, values = _rotated(multiply, _orthonormal(X))

    def is_unfinished(X, AX, values):
        residuals, sizes = [jnp.linalg.norm(v, axis=0) for v in (AX - X * values[None], AX)]
        return jnp.any(~(residuals < 10 * n * tol * (sizes + values)))

    def going(state):
        i, X, AX, values, _ = state
        return (i < m) & ((i == 0) | is_unfinished(X, AX, values))

    def step(state):
        i, X, AX, values, P = state
        # The search space is spanned by the vectors, their residuals and the last directions.
        basis = _beside(X, jnp.concatenate([_unit(AX - X * values[None]), P], 1))
        whole = jnp.concatenate([X, basis], 1)
        _, C = _largest(whole.T @ multiply(whole), k)
        X, AX, values = _rotated(multiply, _orthonormal(whole @ C))
        return i + 1, X, AX, values, _unit(basis @ C[k:])

    steps, X, _, values, _ = lax.while_loop(going, step, (0, X, AX, values, jnp.zeros_like(X)))
    return values, X, steps


def _rotated(multiply: Callable, X):
    """The Ritz vectors in the span of orthonormal columns, their products with A, and values."""
    AX = multiply(X)
    values, C = _largest(X.T @ AX, X.shape[1])
    return X @ C, AX @ C, values


def _largest(gram, k: int):
    """The k largest eigenvalues of a small symmetric matrix, decreasing, and their eigenvectors."""
    values, vectors = jnp.linalg.eigh((gram + gram.T) / 2)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def _orthonormal(X):
    return jnp.linalg.qr(X)[0]


def _unit(X):
    """The columns scaled to length 1; columns of zeros are kept."""
    norms = jnp.linalg.norm(X, axis=0, keepdims=True)
    return jnp.where(norms > 0, X / jnp.where(norms > 0, norms, 1), 0)


def _beside(X, D):
    """Orthonormal columns orthogonal to X that span, together with X, the columns of D."""
    for _ in range(2):  # One pass loses digits where D is almost in the span of X.
        D = _orthonormal(D - X @ (X.T @ D))
    return D


__dir__ = _own_names(__name__)
