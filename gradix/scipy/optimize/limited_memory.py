"""The quasi-Newton method L-BFGS, which keeps the last steps in place of a matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix.scipy.optimize.line_search import SEARCH_FAILED, Point, search
from gradix.scipy.optimize.quasi_newton import CONVERGED, STEPS

_EVALUATIONS = 2


class _State(NamedTuple):
    x: Any
    f: Any
    g: Any
    moves: Any  # the last steps, the newest at the end
    changes: Any  # the changes of the gradient in these steps
    curvatures: Any  # 1 / (move · change), or 0 where there is no step
    progress: Any  # the relative decrease of the value in the last step
    steps: Any
    evaluations: Any
    failed: Any


def lbfgs(
    value_and_gradient,
    x0,
    *,
    maxcor=10,
    gtol=1e-5,
    ftol=2.220446049250313e-9,
    norm=np.inf,
    maxiter=None,
    maxfun=None,
    maxgrad=None,
    maxls=20,
):
    """The fields of `OptimizeResults`, in order.

    J. Nocedal, S. Wright, "Numerical Optimization" (2006), algorithm 7.5.

    Args:
        value_and_gradient: a function of a vector that returns its value and gradient.
        x0: the start, a vector.
        maxcor: the number of steps that are kept.
        gtol: the tolerated norm of the gradient.
        ftol: the relative decrease of the value in one step at which it counts as converged.
        norm: the order of the norm.
        maxiter: the largest number of steps; by default 1000 for each unknown.
        maxfun, maxgrad: the largest number of values and of gradients; by default there is none.
        maxls: the largest number of points to try for a step.
    """
    n, dtype = x0.aval.shape[0], x0.aval.dtype
    limit = 1000 * n if maxiter is None else maxiter
    most = min([c for c in (maxfun, maxgrad) if c is not None], default=np.iinfo(np.int32).max)

    def has_converged(state):
        size = jnp.linalg.norm(state.g, ord=norm) if n else jnp.zeros((), dtype)
        return (size < gtol) | (state.progress <= ftol)

    def going(state):
        in_bounds = (state.steps < limit) & (state.evaluations < most)
        return ~has_converged(state) & in_bounds & (state.failed == 0)

    f, g = value_and_gradient(x0)
    none = jnp.zeros((maxcor, n), dtype)
    state = _State(
        x0,
        f,
        g,
        none,
        none,
        jnp.zeros(maxcor, dtype),
        jnp.full_like(f, np.inf),
        jnp.asarray(0),
        jnp.asarray(1),
        jnp.asarray(0),
    )
    end = lax.while_loop(going, lambda s: _step(value_and_gradient, s, maxls), state)
    success = has_converged(end)
    stopped = jnp.where(end.steps >= limit, STEPS, _EVALUATIONS)
    stopped = jnp.where(end.failed > 0, end.failed, stopped)
    stopped = jnp.where(jnp.isfinite(end.f), stopped, SEARCH_FAILED)
    status = jnp.where(success, CONVERGED, stopped)
    counts = end.evaluations, end.evaluations, end.steps
    return end.x, success, status, end.f, end.g, None, *counts


def _step(value_and_gradient, state: _State, tries) -> _State:
    direction = -_quasi_newton(state)
    slope = jnp.dot(direction, state.g, precision="highest")
    uphill = ~(slope < 0)
    direction = jnp.where(uphill, -state.g, direction)
    slope = jnp.where(uphill, -jnp.dot(state.g, state.g, precision="highest"), slope)
    # The first step has the length 1, as there is nothing yet to tell of the curvature.
    size = jnp.sqrt(jnp.sum(direction * direction))
    guess = jnp.where(state.steps > 0, 1, 1 / jnp.maximum(size, 1)).astype(direction.aval.dtype)
    found, count, failed = search(
        value_and_gradient, state.x, direction, Point(guess * 0, state.f, slope, state.g), guess, tries
    )
    move, change = found.at * direction, found.gradient - state.g
    along = jnp.dot(move, change, precision="highest")
    is_good = along > 0
    scale = jnp.maximum(jnp.maximum(abs(state.f), abs(found.value)), 1)

    def kept(rows, new):
        return jnp.where(is_good, jnp.concatenate([rows[1:], new[None]]), rows)

    return _State(
        state.x + move,
        found.value,
        found.gradient,
        kept(state.moves, move),
        kept(state.changes, change),
        kept(state.curvatures, 1 / jnp.where(is_good, along, 1)),
        (state.f - found.value) / scale,
        state.steps + 1,
        state.evaluations + count,
        failed,
    )


def _quasi_newton(state: _State):
    """The gradient times the estimate of the inverse Hessian, by two loops over the last steps."""

    def backwards(q, row):
        move, change, curvature = row
        part = curvature * jnp.dot(move, q, precision="highest")
        return q - part * change, part

    rows = state.moves, state.changes, state.curvatures
    q, parts = lax.scan(backwards, state.g, rows, reverse=True)
    newest = state.changes[-1]
    square = jnp.dot(newest, newest, precision="highest")
    along = state.curvatures[-1] * square
    q = jnp.where(along > 0, q / jnp.where(along > 0, along, 1), q)

    def forwards(q, row):
        move, change, curvature, part = row
        other = curvature * jnp.dot(change, q, precision="highest")
        return q + (part - other) * move, None

    return lax.scan(forwards, q, (*rows, parts))[0]
