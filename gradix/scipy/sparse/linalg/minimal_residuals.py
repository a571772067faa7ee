"""`gmres`, the method of generalized minimal residuals."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.flatten_util import ravel_pytree
from gradix.numpy.promotion import convert
from gradix.scipy.sparse.linalg.systems import solution_for, solve, squared_goal

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


@boundary
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """The solution x of `A x = b` by minimal residuals in Krylov spaces, for any linear map A.

    Y. Saad, M. Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric
    linear systems" (1986).

    Args:
        A: a matrix, or a linear function of pytrees like `b`.
        b: the right side, an array of any shape or a pytree of arrays.
        x0: the start; zeros by default.
        tol: the tolerated norm of the residual, relative to that of `b`.
        atol: the tolerated norm of the residual; the larger of the two tolerances is used.
        restart: the dimension of a Krylov space, which is also the number of vectors kept.
        maxiter: the largest number of Krylov spaces; by default 10 for each unknown.
        M: an approximate inverse of `A`; a matrix or a function.
        solve_method: "batched" to build each space fully, or "incremental" to stop within a space
            as soon as the residual is tolerated.

    Returns:
        x, which is like `b`; and 0, or -1 if x has a NaN. Derivatives are those of the exact
        solution, which are found by solving another system.

    Raises:
        ValueError: shapes or structures do not fit each other, or `solve_method` has another value.
        TypeError: `A` or `M` is neither a function nor a matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.sparse.linalg import gmres
        >>> gmres(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))[0].round(3)
        Array([1., 2.], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'.")
    size = sum(jnp.size(leaf) for leaf in flatten(b)[0])
    method = partial(_minimal_residuals, restart=min(int(restart), max(size, 1)), early=solve_method == "incremental")
    x = solve(method, A, b, x0, tol, atol, maxiter, M, False)
    failed = sum(jnp.sum(jnp.isnan(leaf)) for leaf in flatten(x)[0]) if size else jnp.asarray(0)
    return x, jnp.where(failed > 0, -1, 0)


def _minimal_residuals(apply, b, system, *, restart: int, early: bool):
    """The solution as a pytree, found by restarted steps on one vector of all unknowns."""
    goal, wanted = squared_goal(b, system)
    rhs, unravel = ravel_pytree(b)
    if not rhs.aval.size:
        return b
    map_vector = lambda f: lambda v: ravel_pytree(f(unravel(v)))[0].astype(rhs.aval.dtype)  # noqa: E731
    multiply, precondition = map_vector(apply), map_vector(system.precondition)

    def going(state):
        _, r, size, count = state
        return (wanted > 0) & (size > goal) & (count < system.maxiter)

    def turn(state):
        x, r, size, count = state
        z = precondition(r)
        norm = jnp.sqrt(_square(z))
        # A step watches the preconditioned residual, which must shrink by the same factor.
        part = jnp.sqrt(goal / size)
        x = x + _step(lambda v: precondition(multiply(v)), z, norm, norm * part if early else None, restart)
        r = rhs - multiply(x)
        return x, r, _square(r), count + 1

    x = ravel_pytree(system.start)[0].astype(rhs.aval.dtype)
    r = rhs - multiply(x)
    x = lax.while_loop(going, turn, (x, r, _square(r), jnp.asarray(np.int32(0))))[0]
    return solution_for(wanted, unravel(x))


def _square(x):
    return jnp.sum(lax.real(x * lax.conj(x)) if x.aval.dtype in COMPLEX else x * x)


def _divided(x, norm):
    """A vector divided by its norm; itself if that is zero."""
    return x / convert(jnp.where(norm == 0, 1, norm), x.aval.dtype)


def _step(multiply, z, norm, goal, restart: int):
    """The correction in one Krylov space that minimizes the residual.

    It ends early when the residual is below `goal`, if that is given.
    """
    dtype, n = z.aval.dtype, z.aval.shape[0]
    basis = jnp.zeros((restart + 1, n), dtype).at[0].set(_divided(z, norm))
    # Rotations make the growing Hessenberg matrix triangular; other rows are those of the identity.
    triangle = jnp.eye(restart, restart + 1, dtype=dtype)
    turned = jnp.zeros(restart + 1, dtype).at[0].set(norm.astype(dtype))
    rotations = jnp.zeros((restart, 2), dtype)

    def going(state):
        k, _, _, turned, _, rest = state
        more = (k < restart) & (rest > 0)
        return more if goal is None else more & (rest > goal)

    def grow(state):
        k, basis, triangle, turned, rotations, _ = state
        basis, column = _orthogonal(basis, multiply(basis[k]), k)
        column, rotations = _rotated(column, rotations, k)
        c, s = rotations[k, 0], rotations[k, 1]
        top = turned[k]
        turned = turned.at[k].set(c * top).at[k + 1].set(-lax.conj(s) * top if dtype in COMPLEX else -s * top)
        return k + 1, basis, triangle.at[k].set(column), turned, rotations, abs(turned[k + 1])

    state = jnp.asarray(np.int32(0)), basis, triangle, turned, rotations, norm
    k, basis, triangle, turned, _, _ = lax.while_loop(going, grow, state)
    right = jnp.where(np.arange(restart, dtype=np.int32) < k, turned[:restart], 0)
    upper = triangle[:, :restart].T
    upper = jnp.where(np.eye(restart, dtype=bool) & (upper == 0), 1, upper)
    weights = lax.linalg.triangular_solve(upper, right[:, None], left_side=True, lower=False)[:, 0]
    return jnp.matmul(weights, basis[:restart], precision="highest")


def _orthogonal(basis, w, k):
    """The basis with a new vector, and the new column of the Hessenberg matrix.

    The vector is made orthogonal by Gram and Schmidt's method, which is accurate if applied twice.
    """
    size = jnp.sqrt(_square(w))
    column = jnp.zeros(basis.aval.shape[0], w.aval.dtype)
    for _ in range(2):
        part = jnp.matmul(lax.conj(basis) if basis.aval.dtype in COMPLEX else basis, w, precision="highest")
        w = w - jnp.matmul(part, basis, precision="highest")
        column = column + part
    norm = jnp.sqrt(_square(w))
    real = dtypes.real_dtype(w.aval.dtype) if w.aval.dtype in COMPLEX else w.aval.dtype
    # If nothing but rounding is left of the vector, the space contains the solution.
    norm = jnp.where(norm > float(np.finfo(real).eps) * size, norm, 0)
    w = jnp.where(norm > 0, _divided(w, norm), 0)
    return basis.at[k + 1].set(w), column.at[k + 1].set(norm.astype(column.aval.dtype))


def _rotated(column, rotations, k):
    """The column after the previous rotations, and the rotation that zeroes its last element."""

    def turn(i, column):
        (c, s), top, low = rotations[i], column[i], column[i + 1]
        return (
            column.at[i]
            .set(c * top + s * low)
            .at[i + 1]
            .set(-lax.conj(s) * top + c * low if _complex(column) else -s * top + c * low)
        )

    column = lax.fori_loop(np.int32(0), k, turn, column)
    top, low = column[k], column[k + 1]
    r = jnp.sqrt(abs(top) ** 2 + abs(low) ** 2)
    safe = jnp.where(r == 0, 1, r)
    # `[c, s; -s̄, c]` with c real takes (top, low) to (r·phase, 0).
    phase = jnp.where(top == 0, 1, _divided(top, abs(top)))
    c = jnp.where(r == 0, 1, abs(top) / safe)
    s = _divided(phase * (lax.conj(low) if _complex(column) else low), r)
    column = column.at[k].set(phase * convert(r, column.aval.dtype)).at[k + 1].set(0)
    pair = jnp.stack([c.astype(column.aval.dtype), s.astype(column.aval.dtype)])
    return column, rotations.at[k].set(pair)


def _complex(x) -> bool:
    return x.aval.dtype in COMPLEX
