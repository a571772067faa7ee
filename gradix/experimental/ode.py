"""Ordinary differential equations: `odeint`, Dormand and Prince's adaptive method, and its adjoint.

Sources: J. Dormand and P. Prince, "A family of embedded Runge-Kutta formulae", 1980; L. Shampine,
"Some practical Runge-Kutta formulas", 1986, for the values within a step; E. Hairer, S. Nørsett and
G. Wanner, "Solving Ordinary Differential Equations I", II.4, for the step sizes; R. Chen et al.,
"Neural ordinary differential equations", 2018, for the adjoint.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import api_util as api_util, lax, numpy as jnp
from gradix._api.derivatives.autodiff import vjp as _vjp
from gradix._api.derivatives.custom_vjp import custom_vjp as _custom_vjp
from gradix._api.inspect import closure_convert as _closure_convert, eval_shape as _eval_shape
from gradix._api.mapping.vmap import vmap as _vmap
from gradix._base.listing import own_names as _own_names
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_leaves as _leaves, tree_map as _tree_map
from gradix._core.dtypes import float0
from gradix.flatten_util import ravel_pytree as _ravel

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.operators import Array

# Row i of _STAGES has the weights of the earlier slopes in stage i, at time _NODES[i] of a step.
_NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0, 0.0])
_STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
_SOLUTION = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_ERROR = _SOLUTION - np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
_MIDDLE = (
    np.array(
        [
            6025192743 / 30085553152,
            0,
            51252292925 / 65400821598,
            -2691868925 / 45128329728,
            187940372067 / 1594534317056,
            -1776094331 / 19743644256,
            11237099 / 235043384,
        ]
    )
    / 2
)


@boundary
def odeint(
    func: Callable,
    y0: Any,
    t: ArrayLike,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = jnp.inf,
    hmax: float = jnp.inf,
) -> Any:
    """The solution of `dy/dt = func(y, t, *args)` with `y(t[0]) = y0`, at the times `t`.

    It is the adaptive Dormand–Prince method of order 5. Reverse mode solves the adjoint equation
    backwards in time, in memory that does not grow with the number of steps. Forward mode is not
    defined.

    Args:
        func: the slope, a pytree of the structure, shapes and dtypes of `y0`.
        y0: a pytree of arrays, the initial value.
        t: times, of shape (n,), strictly increasing or strictly decreasing.
        *args: further arguments of `func`: pytrees of arrays, which have derivatives too.
        rtol, atol: the relative and absolute error tolerated in one step.
        mxstep: the largest number of steps between two times. If it is reached, the remaining
            values are those at the time reached.
        hmax: the largest step.

    Returns:
        A pytree like `y0`, whose arrays have a new first axis of size n.

    Raises:
        TypeError: an element of `args` is not an array or a number.

    Example:
        >>> from gradix import numpy as jnp
        >>> y = odeint(lambda y, t, rate: -rate * y, 1.0, jnp.array([0.0, 1.0, 2.0]), 0.5, rtol=1e-5, atol=1e-5)
        >>> jnp.allclose(y, jnp.exp(jnp.array([0.0, -0.5, -1.0])), atol=1e-4)
        Array(True, dtype=bool)
    """
    for leaf in _leaves(args):
        if not hasattr(leaf, "dtype") and not isinstance(leaf, (bool, int, float, complex)):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {leaf!r}. Let func "
                "close over other values."
            )
    y0, t = _tree_map(jnp.asarray, y0), jnp.asarray(t)
    if t.shape[0]:
        # A Python number as state takes the dtype of the slope.
        y0 = _tree_map(lambda y, dy: y.astype(jnp.result_type(y, dy.dtype)), y0, _eval_shape(func, y0, t[0], *args))
    converted, consts = _closure_convert(lambda y, t, args: func(y, t, *args), y0, t[0], args)
    flat0, unravel = _ravel(y0)
    settings = float(rtol), float(atol), float(mxstep), float(hmax)

    def slope(y, s, given):
        args, consts = given
        return _ravel(converted(unravel(y), s, args, *consts))[0].astype(y.dtype)

    ys = _solve(slope, settings, flat0, t, (args, tuple(consts)))
    return _each_row(unravel, ys)


def _each_row(unravel: Callable, ys):
    return lax.map(unravel, ys) if ys.shape[0] == 0 else _vmap(unravel)(ys)


# -- one step --------------------------------------------------------------------------------------


def runge_kutta_step(func: Callable, y0: Array, f0: Array, t0: Array, dt: Array) -> Any:
    """One step: the value and slope after it, the error estimate, and the slopes of all stages.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import ode
        >>> one = jnp.ones(1)
        >>> y, slope, error, _ = ode.runge_kutta_step(lambda y, t: y, one, one, jnp.float32(0), jnp.float32(0.1))
        >>> y.round(4)
        Array([1.1052], dtype=float32)
    """
    k = [f0]
    for node, row in zip(_NODES, _STAGES):
        y = y0 + dt * _weighted(row, k)
        k.append(func(y, t0 + dt * node.astype(t0.dtype)))
    slopes = jnp.stack(k)
    y1 = dt * _weighted(_SOLUTION, k) + y0
    return y1, slopes[-1], dt * _weighted(_ERROR, k), slopes


def _weighted(row, slopes):
    terms = [np.asarray(c, slopes[0].dtype) * k for c, k in zip(row, slopes) if c]
    return functools.reduce(jnp.add, terms)


def fit_4th_order_polynomial(
    y0: float | Array,
    y1: float | Array,
    y_mid: float | Array,
    dy0: float | Array,
    dy1: float | Array,
    dt: float | Array,
) -> Any:
    """The coefficients of the quartic in `(t - t0) / dt` with these values and slopes.

    The highest power comes first.

    Example:
        >>> from gradix.experimental import ode
        >>> [float(c) for c in ode.fit_4th_order_polynomial(0.0, 1.0, 0.25, 0.0, 2.0, 1.0)]
        [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    a = -2.0 * dt * dy0 + 2.0 * dt * dy1 - 8.0 * y0 - 8.0 * y1 + 16.0 * y_mid
    b = 5.0 * dt * dy0 - 3.0 * dt * dy1 + 18.0 * y0 + 14.0 * y1 - 32.0 * y_mid
    c = -4.0 * dt * dy0 + dt * dy1 - 11.0 * y0 - 5.0 * y1 + 16.0 * y_mid
    return a, b, c, dt * dy0, y0


def interp_fit_dopri(y0: Array, y1: Array, k: Array, dt: float | Array) -> Any:
    """The coefficients of the quartic that interpolates within a step of the method.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import ode
        >>> f, y0, dt = (lambda y, t: y), jnp.ones(1), jnp.float32(0.1)
        >>> y1, _, _, slopes = ode.runge_kutta_step(f, y0, y0, jnp.float32(0), dt)
        >>> coefficients = ode.interp_fit_dopri(y0, y1, slopes, dt)
        >>> jnp.polyval(coefficients, 0.5).round(4), jnp.exp(0.05).round(4)
        (Array([1.0513], dtype=float32), Array(1.0513, dtype=float32, weak_type=True))
    """
    y_mid = y0 + dt * _weighted(_MIDDLE, list(k))
    return jnp.asarray(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def abs2(x: Array) -> Any:
    """The square of the absolute value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import ode
        >>> ode.abs2(jnp.array([3 + 4j]))
        Array([25.], dtype=float32)
    """
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def mean_error_ratio(error_estimate: Array, rtol: float | Array, atol: float | Array, y0: Array, y1: Array) -> Any:
    """The root mean square of errors relative to the tolerance; a step is accepted if it is ≤ 1.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import ode
        >>> one = jnp.ones(2)
        >>> ode.mean_error_ratio(0.001 * one, rtol=0.001, atol=0.0, y0=one, y1=one).round(3)
        Array(1., dtype=float32)
    """
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / allowed.astype(error_estimate.dtype))))


def initial_step_size(
    fun: Callable, t0: float | Array, y0: Array, order: int, rtol: float | Array, atol: float | Array, f0: Array
) -> Any:
    """The size of the first step, after Hairer, Nørsett and Wanner, II.4.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import ode
        >>> one = jnp.ones(1)
        >>> ode.initial_step_size(lambda y, t: y, 0.0, one, 4, 1e-3, 1e-3, one) > 0
        Array(True, dtype=bool)
    """
    dtype = y0.dtype
    scale = atol + jnp.abs(y0) * rtol
    d0 = jnp.linalg.norm(y0 / scale.astype(dtype))
    d1 = jnp.linalg.norm(f0 / scale.astype(dtype))
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 > 0, d1, 1))
    f1 = fun(y0 + h0.astype(dtype) * f0, t0 + h0)
    d2 = jnp.linalg.norm((f1 - f0) / scale.astype(dtype)) / h0
    most = jnp.maximum(d1, d2)
    h1 = jnp.where(
        most <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(most > 0, most, 1)) ** (1.0 / (order + 1.0))
    )
    return jnp.minimum(100.0 * h0, h1)


def optimal_step_size(
    last_step: float | Array,
    mean_error_ratio: float | Array,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Any:
    """The size of the next step, between `dfactor` and `ifactor` times that of the last step.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import ode
        >>> ode.optimal_step_size(jnp.float32(0.1), jnp.float32(32.0)).round(3)
        Array(0.045, dtype=float32)
    """
    dfactor = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(mean_error_ratio ** (-1.0 / order) * safety, dfactor))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


def ravel_first_arg(f: Callable, unravel: Callable, debug_info: Any = None) -> Callable:
    """`f` as a function from a vector to a vector, whose further arguments are given as they are.

    Args:
        f: a function of a tree of arrays and of anything else; its result is a tree of arrays, too.
        unravel: makes the tree of a vector of shape (n,), as `ravel_pytree` returns it.
        debug_info: what names the function in messages; it is not used.

    Returns:
        A function of a vector of shape (n,) and of the further arguments, whose result is a vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import ode
        >>> from gradix.flatten_util import ravel_pytree
        >>> flat, unravel = ravel_pytree({"x": 1.0, "v": 2.0})
        >>> slope = ode.ravel_first_arg(lambda y, t: {"x": y["v"], "v": -y["x"] * t}, unravel)
        >>> slope(flat, 3.0)
        Array([-3.,  2.], dtype=float32)
    """

    def raveled(flat, *args):
        return _ravel(f(unravel(flat), *args))[0]

    return raveled


# -- the solver ------------------------------------------------------------------------------------


@functools.partial(_custom_vjp, nondiff_argnums=(0, 1))
def _solve(slope, settings, y0, ts, given):
    return _integrate(slope, settings, y0, ts, given)


def _integrate(slope, settings, y0, ts, given):
    """The solution at each time, of shape (n, size)."""
    rtol, atol, mxstep, hmax = settings
    if ts.shape[0] == 0:
        return jnp.zeros((0, *y0.shape), y0.dtype)
    # Decreasing times are integrated as increasing times of the equation with negated slope.
    sign = jnp.where(ts[-1] < ts[0], -1, 1).astype(ts.dtype)
    times = ts * sign

    def f(y, t):
        return slope(y, (t * sign).astype(ts.dtype), given) * sign.astype(y.dtype)

    def to_next(state, target):
        def going(state):
            i, _, _, t, dt, _, _ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def step(state):
            i, y, dy, t, dt, last, coefficients = state
            new, slope1, error, k = runge_kutta_step(f, y, dy, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, new)
            accepted = ratio <= 1.0
            after = jnp.clip(optimal_step_size(dt, ratio), 0.0, hmax).astype(dt.dtype)
            fit = interp_fit_dopri(y, new, k, dt)
            kept = [
                jnp.where(accepted, a, b)
                for a, b in ((new, y), (slope1, dy), (t + dt, t), (t, last), (fit, coefficients))
            ]
            return i + 1, kept[0], kept[1], kept[2], after, kept[3], kept[4]

        _, *rest = lax.while_loop(going, step, (0, *state))
        _, _, t, _, last, coefficients = rest
        length = jnp.where(t > last, t - last, 1)
        at = jnp.polyval(coefficients, ((target - last) / length).astype(coefficients.dtype))
        return tuple(rest), at

    f0 = f(y0, times[0])
    dt = jnp.clip(initial_step_size(f, times[0], y0, 4, rtol, atol, f0), 0.0, hmax).astype(times.dtype)
    state = y0, f0, times[0], dt, times[0], jnp.stack([*[jnp.zeros_like(y0)] * 4, y0])
    _, ys = lax.scan(to_next, state, times[1:])
    return jnp.concatenate([y0[None], ys])


def _forward(slope, settings, y0, ts, given):
    ys = _integrate(slope, settings, y0, ts, given)
    return ys, (ys, ts, given)


def _backward(slope, settings, res, g):
    """The cotangents of the state, the times and the arguments, by the adjoint equation.

    The adjoint a of the state obeys da/dt = -a·∂f/∂y, and the arguments' cotangent is ∫ a·∂f/∂args.
    """
    ys, ts, given = res
    flat, unravel = _ravel(_floats(given))
    size = ys.shape[1]

    def augmented(state, s, whole):
        y, ct = state[:size], state[size : 2 * size]
        given, flat = whole
        out, pull = _vjp(lambda y, t, p: slope(y, t, _merged(given, unravel(p))), y, s, flat)
        y_bar, t_bar, p_bar = pull(-ct)
        return jnp.concatenate([out, y_bar, jnp.reshape(t_bar, (1,)).astype(y.dtype), p_bar.astype(y.dtype)])

    def back(carry, row):
        ct, t_bar, p_bar = carry
        y, cotangent, t_after, t_before = row
        ct = ct + cotangent
        t_bar_here = jnp.dot(slope(y, t_after, given), cotangent)
        start = jnp.concatenate([y, ct, jnp.reshape(t_bar, (1,)) - t_bar_here.real.astype(y.dtype), p_bar])
        end = _integrate(augmented, settings, start, jnp.stack([t_after, t_before]), (given, flat))[1]
        return (end[size : 2 * size], end[2 * size], end[2 * size + 1 :]), t_bar_here

    first = jnp.zeros_like(ys[0]), jnp.zeros((), ys.dtype), jnp.zeros(flat.shape, ys.dtype)
    rows = ys[1:], g[1:], ts[1:], ts[:-1]
    (y_bar, t0_bar, p_bar), ts_bar = lax.scan(back, first, rows, reverse=True)
    times = (
        jnp.concatenate([jnp.reshape(t0_bar, (1,)), ts_bar]).real.astype(ts.dtype)
        if ts.shape[0]
        else jnp.zeros_like(ts)
    )
    y0_bar = y_bar + g[0]
    return y0_bar, times, _cotangents(given, unravel(p_bar.astype(flat.dtype)))


_solve.defvjp(_forward, _backward)


def _floats(given) -> list:
    return [x for x in map(jnp.asarray, _leaves(given)) if jnp.issubdtype(x.dtype, jnp.inexact)]


def _merged(given, floats):
    """The arguments with the leaves of inexact dtype replaced by `floats`."""
    new = iter(floats)
    return _tree_map(lambda x: next(new) if jnp.issubdtype(jnp.asarray(x).dtype, jnp.inexact) else x, given)


def _cotangents(given, floats):
    """A cotangent for each argument: `floats` for inexact dtypes, float0 zeros for others."""
    new = iter(floats)
    return _tree_map(
        lambda x: next(new) if jnp.issubdtype(jnp.asarray(x).dtype, jnp.inexact) else np.zeros(np.shape(x), float0),
        given,
    )


__dir__ = _own_names(__name__)
