"""`bicgstab`, the method of stabilized biconjugate gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_map
from gradix.numpy.promotion import convert
from gradix.scipy.sparse.linalg.systems import dot, minus, plus, real_dot, solution_for, solve, squared_goal, zeros_like

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


@boundary
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The solution x of `A x = b` by stabilized biconjugate gradients, for any linear map A.

    H. van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG" (1992).

    Args:
        A: a matrix, or a linear function of pytrees like `b`.
        b: the right side, an array of any shape or a pytree of arrays.
        x0: the start; zeros by default.
        tol: the tolerated norm of the residual, relative to that of `b`.
        atol: the tolerated norm of the residual; the larger of the two tolerances is used.
        maxiter: the largest number of steps; by default 10 for each unknown.
        M: an approximate inverse of `A`; a matrix or a function.

    Returns:
        x, which is like `b`, and None. Derivatives are those of the exact solution, which are found
        by solving another system.

    Raises:
        ValueError: shapes or structures do not fit each other.
        TypeError: `A` or `M` is neither a function nor a matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.sparse.linalg import bicgstab
        >>> bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))[0].round(3)
        Array([1., 2.], dtype=float32)
    """
    return solve(_biconjugate_gradients, A, b, x0, tol, atol, maxiter, M, False), None


def _biconjugate_gradients(apply, b, system):
    goal, wanted = squared_goal(b, system)

    def going(state):
        r, count, broken = state[1], state[-2], state[-1]
        return (wanted > 0) & (real_dot(r, r) > goal) & (count < system.maxiter) & ~broken

    def step(state):
        x, r, shadow, p, q, rho, alpha, omega, count, _ = state
        new = dot(shadow, r)
        beta = new / rho * alpha / omega
        p = plus(r, beta, plus(p, -omega, q))
        p_hat = system.precondition(p)
        q = apply(p_hat)
        alpha = new / dot(shadow, q)
        s = plus(r, -alpha, q)
        s_hat = system.precondition(s)
        t = apply(s_hat)
        size = real_dot(t, t)
        early = real_dot(s, s) < goal
        along = dot(t, s)
        divisor = convert(jnp.where(size == 0, 1, size), along.aval.dtype)
        omega = jnp.where(size == 0, 0, along / divisor)
        half = plus(x, alpha, p_hat)
        x = tree_map(lambda a, c: jnp.where(early, a, c), half, plus(half, omega, s_hat))
        r = tree_map(lambda a, c: jnp.where(early, a, c), s, plus(s, -omega, t))
        broken = (new == 0) | (alpha == 0) | ((omega == 0) & ~early)
        return x, r, shadow, p, q, new, alpha, jnp.where(early, 1, omega), count + 1, broken

    r = minus(b, apply(system.start))
    one = jnp.ones_like(dot(r, r))
    nothing = zeros_like(r)
    state = (system.start, r, r, nothing, nothing, one, one, one, jnp.asarray(np.int32(0)), jnp.asarray(False))
    return solution_for(wanted, lax.while_loop(going, step, state)[0])
