"""The method of Broyden, Fletcher, Goldfarb and Shanno (BFGS)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix.scipy.optimize.line_search import SEARCH_FAILED, Point, search

CONVERGED, STEPS = 0, 1


class _State(NamedTuple):
    x: Any
    f: Any
    g: Any
    inverse: Any
    f_before: Any
    steps: Any
    evaluations: Any
    failed: Any


def bfgs(value_and_gradient, x0, *, gtol=1e-5, norm=np.inf, maxiter=None, line_search_maxiter=20):
    """The fields of `OptimizeResults`, in order.

    Args:
        value_and_gradient: a function of a vector that returns its value and gradient.
        x0: the start, a vector.
        gtol: the tolerated norm of the gradient.
        norm: the order of the norm.
        maxiter: the largest number of steps; by default 200 for each unknown.
        line_search_maxiter: the largest number of points to try for a step.
    """
    n, dtype = x0.aval.shape[0], x0.aval.dtype
    limit = 200 * n if maxiter is None else maxiter

    def size(g):
        return jnp.linalg.norm(g, ord=norm) if n else jnp.zeros((), dtype)

    def going(state):
        return (size(state.g) >= gtol) & (state.steps < limit) & (state.failed == 0)

    f, g = value_and_gradient(x0)
    state = _State(
        x0,
        f,
        g,
        jnp.eye(n, dtype=dtype),
        f + jnp.sqrt(jnp.sum(g * g)) / 2,
        jnp.asarray(0),
        jnp.asarray(1),
        jnp.asarray(0),
    )
    end = lax.while_loop(going, lambda s: _step(value_and_gradient, s, line_search_maxiter), state)
    success = size(end.g) < gtol
    status = jnp.where(
        success, CONVERGED, jnp.where(end.failed > 0, end.failed, jnp.where(jnp.isfinite(end.f), STEPS, SEARCH_FAILED))
    )
    return (end.x, success, status, end.f, end.g, end.inverse, end.evaluations, end.evaluations, end.steps)


def _step(value_and_gradient, state: _State, tries) -> _State:
    direction = -jnp.matmul(state.inverse, state.g, precision="highest")
    slope = jnp.dot(direction, state.g, precision="highest")
    # If rounding has spoilt the estimate of the Hessian, the negative gradient is used.
    uphill = ~(slope < 0)
    direction = jnp.where(uphill, -state.g, direction)
    inverse = jnp.where(uphill, jnp.eye(direction.aval.shape[0], dtype=direction.aval.dtype), state.inverse)
    slope = jnp.where(uphill, -jnp.dot(state.g, state.g, precision="highest"), slope)
    guess = jnp.minimum(1, 2.02 * (state.f - state.f_before) / slope)
    guess = jnp.where(guess > 0, guess, 1).astype(direction.aval.dtype)
    found, count, failed = search(
        value_and_gradient, state.x, direction, Point(guess * 0, state.f, slope, state.g), guess, tries
    )
    move, change = found.at * direction, found.gradient - state.g
    return _State(
        state.x + move,
        found.value,
        found.gradient,
        _updated(inverse, move, change),
        state.f,
        state.steps + 1,
        state.evaluations + count,
        failed,
    )


def _updated(inverse, s, y):
    """`(I - ρsyᵀ) H (I - ρysᵀ) + ρssᵀ`, ρ = 1 / yᵀs; H if the curvature is not positive."""
    along = jnp.dot(y, s, precision="highest")
    rho = 1 / jnp.where(along > 0, along, 1)
    hy = jnp.matmul(inverse, y, precision="highest")
    stretch = rho * (1 + rho * jnp.dot(y, hy, precision="highest"))
    new = inverse - rho * (s[:, None] * hy[None, :] + hy[:, None] * s[None, :]) + stretch * s[:, None] * s[None, :]
    return jnp.where((along > 0) & jnp.all(jnp.isfinite(new)), new, inverse)
