"""`cg`, the method of conjugate gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.tracebacks import boundary
from gradix.scipy.sparse.linalg.systems import minus, plus, real_dot, solution_for, solve, squared_goal

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


@boundary
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The solution x of `A x = b` by conjugate gradients, for a Hermitian positive definite map A.

    M. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems" (1952).

    Args:
        A: a matrix, or a linear function of pytrees like `b`.
        b: the right side, an array of any shape or a pytree of arrays.
        x0: the start; zeros by default.
        tol: the tolerated norm of the residual, relative to that of `b`.
        atol: the tolerated norm of the residual; the larger of the two tolerances is used.
        maxiter: the largest number of steps; by default 10 for each unknown.
        M: an approximate inverse of `A`, Hermitian and positive definite; a matrix or a function.

    Returns:
        x, which is like `b`, and None. Derivatives are those of the exact solution, which are found
        by solving another system.

    Raises:
        ValueError: shapes or structures do not fit each other.
        TypeError: `A` or `M` is neither a function nor a matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.sparse.linalg import cg
        >>> cg(lambda x: 4 * x, jnp.array([4.0, 8.0]))[0]
        Array([1., 2.], dtype=float32)
    """
    return solve(_conjugate_gradients, A, b, x0, tol, atol, maxiter, M, True), None


def _conjugate_gradients(apply, b, system):
    goal, wanted = squared_goal(b, system)

    def sizes(r, z):
        """The inner products of the residual with the preconditioned residual, and with itself."""
        gamma = real_dot(r, z)
        return gamma, gamma if z is r else real_dot(r, r)

    def going(state):
        gamma, size, count = state[-3:]
        return (wanted > 0) & (size > goal) & (gamma != 0) & (count < system.maxiter)

    def step(state):
        x, r, p, gamma, _, count = state
        q = apply(p)
        alpha = gamma / real_dot(p, q)
        x, r = plus(x, alpha, p), plus(r, -alpha, q)
        z = system.precondition(r)
        new, size = sizes(r, z)
        return x, r, plus(z, new / gamma, p), new, size, count + 1

    r = minus(b, apply(system.start))
    z = system.precondition(r)
    state = system.start, r, z, *sizes(r, z), jnp.asarray(np.int32(0))
    return solution_for(wanted, lax.while_loop(going, step, state)[0])
