"""The line search of minimization, as one compiled loop with one evaluation in each turn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.tree import tree_map

_DECREASE, _CURVATURE = 1e-4, 0.9
_BRACKETING, _ZOOMING, _DONE = 0, 1, 2
ZOOM_FAILED, SEARCH_FAILED = 3, 5


class Point(NamedTuple):
    """A point on the line: its coordinate, the value, the slope on the line, and the gradient."""

    at: Any
    value: Any
    slope: Any
    gradient: Any


class _State(NamedTuple):
    phase: Any
    # The lowest point that decreases enough, or the last point while bracketing.
    low: Point
    # The other end of the bracket.
    high: Point
    found: Point
    trial: Any
    count: Any


def search(value_and_gradient, x, direction, start: Point, guess, tries):
    """A point `x + a·direction` that satisfies the strong Wolfe conditions.

    J. Nocedal, S. Wright, "Numerical Optimization" (2006), algorithms 3.5 and 3.6.

    Args:
        value_and_gradient: a function of a vector that returns its value and gradient.
        x, direction: vectors.
        start: the point with a = 0, whose slope is negative.
        guess: the first a to try.
        tries: the largest number of points to try.

    Returns:
        The point, or the lowest one tried if none satisfied the conditions; the number of points
        tried; and 0, or the status of the failure if no point is lower.
    """
    dtype = x.aval.dtype
    slack = 4 * float(np.finfo(dtype).eps) * abs(start.value)

    def evaluate(a):
        value, gradient = value_and_gradient(x + a * direction)
        return Point(a, value, jnp.dot(gradient, direction, precision="highest"), gradient)

    def satisfies(p: Point):
        strong = (p.value <= start.value + _DECREASE * p.at * start.slope) & (abs(p.slope) <= -_CURVATURE * start.slope)
        # Where values differ by rounding only, slopes decide (W. Hager, H. Zhang, 2005, eq. 4.1).
        nearly = (
            (p.value <= start.value + slack)
            & (p.slope <= (2 * _DECREASE - 1) * start.slope)
            & (p.slope >= _CURVATURE * start.slope)
        )
        return strong | nearly

    def turn(state: _State) -> _State:
        p = evaluate(state.trial)
        finite = jnp.isfinite(p.value) & jnp.isfinite(p.slope)
        too_high = (
            ~finite
            | (p.value > start.value + _DECREASE * p.at * start.slope + slack)
            | ((p.value >= state.low.value) & (state.low.at > 0))
        )
        done = finite & satisfies(p)
        bracketing = state.phase == _BRACKETING
        rising = jnp.where(bracketing, p.slope >= 0, p.slope * (state.high.at - state.low.at) >= 0)
        high = _choose(too_high, p, _choose(rising, state.low, state.high))
        low = _choose(too_high, state.low, p)
        phase = jnp.where(done, _DONE, jnp.where(too_high | rising, _ZOOMING, state.phase)).astype(np.int32)
        trial = jnp.where(phase == _BRACKETING, 2 * p.at, _between(low, high))
        return _State(phase, low, high, _choose(done, p, state.found), trial.astype(dtype), state.count + 1)

    first = _State(jnp.asarray(np.int32(_BRACKETING)), start, start, start, guess, jnp.asarray(0))
    end = lax.while_loop(lambda s: (s.phase != _DONE) & (s.count < tries), turn, first)
    done, lower = end.phase == _DONE, end.low.value < start.value
    status = jnp.where(done | lower, 0, jnp.where(end.phase == _ZOOMING, ZOOM_FAILED, SEARCH_FAILED))
    return (_choose(done, end.found, _choose(lower, end.low, start)), end.count, status)


def _choose(condition, yes: Point, no: Point) -> Point:
    return tree_map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _between(low: Point, high: Point):
    """The minimum of the cubic through both ends (eq. 3.59), or the middle if it is near an end."""
    width = high.at - low.at
    safe = jnp.where(width == 0, 1, width)
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / safe
    square = d1 * d1 - low.slope * high.slope
    d2 = jnp.sign(safe) * jnp.sqrt(jnp.where(square > 0, square, 0))
    below = high.slope - low.slope + 2 * d2
    least = high.at - width * (high.slope + d2 - d1) / jnp.where(below == 0, 1, below)
    middle = low.at + width / 2
    near, far = (jnp.minimum(low.at, high.at) + 0.1 * abs(width), jnp.maximum(low.at, high.at) - 0.1 * abs(width))
    good = (square > 0) & (below != 0) & (least >= near) & (least <= far)
    return jnp.where(good, least, middle)
