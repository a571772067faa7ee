"""Minimization of functions of a vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gradix import numpy as jnp
from gradix._api.derivatives.autodiff import value_and_grad
from gradix._base.tracebacks import boundary
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.scipy.optimize.quasi_newton import bfgs


class OptimizeResults(NamedTuple):
    """What `minimize` found.

    Attributes:
        x: the place.
        success: whether the gradient is as small as asked.
        status: 0 converged, 1 stopped after `maxiter` steps, 3 no place found between two that
            bracket a lower one, 5 no such two found.
        fun: the value there.
        jac: the gradient there.
        hess_inv: the estimate of the inverse of the Hessian.
        nfev: how often the function was evaluated.
        njev: how often its gradient was.
        nit: how many steps were taken.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


_OPTIONS = ("gtol", "line_search_maxiter", "maxiter", "norm")


@boundary
def minimize(
    fun: Callable,
    x0,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A place where a function of a vector is least, nearby; compiles and maps.

    J. Nocedal, S. Wright, "Numerical Optimization" (2006), algorithm 6.1, with a line search for
    the strong Wolfe conditions (3.5, 3.6), and for the approximate ones of W. Hager, H. Zhang
    (2005) where rounding hides the others.

    Args:
        fun: `fun(x, *args)` gives a number; it is differentiated.
        x0: where to begin, a vector of floats.
        args: further arguments, a tuple.
        method: must be "BFGS".
        tol: the same as the option `gtol`.
        options: `gtol`, the norm of the gradient that suffices (1e-5); `norm`, which norm
            (infinity, so the largest element); `maxiter`, after how many steps to stop (200 for
            each unknown); `line_search_maxiter`, how many places to try for one step (20).

    Raises:
        ValueError: an unknown method.
        TypeError: `args` is no tuple, `x0` no vector of floats, an unknown option, or `fun` gives
            no number.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.optimize import minimize
        >>> minimize(lambda x, a: jnp.sum((x - a) ** 2), jnp.zeros(2), (3.0,), method="BFGS").x.round(4)
        Array([3., 3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(
            f"args argument to minimize must be a tuple, got {args!r}. Write ({args!r},) for one argument."
        )
    if not isinstance(method, str) or method.lower() != "bfgs":
        raise ValueError(
            f"Method {method} not recognized; minimize has 'BFGS'. scipy.optimize.minimize has others, "
            "and takes value_and_grad(fun) with jac=True."
        )
    options = dict(options or {})
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise TypeError(
            f"minimize got unexpected options {unknown}; BFGS has {', '.join(_OPTIONS)}."
        )
    x = _vector(x0)
    if tol is not None:
        options.setdefault("gtol", tol)
    return OptimizeResults(*bfgs(lambda x: _evaluated(fun, x, args), x, **options))


def _vector(x0):
    x = x0 if hasattr(x0, "dtype") else None
    if x is None:
        raise TypeError(
            f"x0 must be an array, got {x0!r} of type {type(x0).__name__}. Write jnp.array(...) around it."
        )
    x = jnp.asarray(x)
    if x.aval.dtype not in INEXACT or x.aval.dtype in COMPLEX:
        raise TypeError(
            f"x0 must hold floats, since fun is differentiated; got dtype {x.aval.dtype}."
        )
    if x.aval.ndim != 1:
        raise TypeError(
            f"x0 must be a vector, got shape {x.aval.shape}. flatten_util.ravel_pytree makes a vector of "
            "any arrays, and tells the way back."
        )
    return x


def _evaluated(fun: Callable, x, args: tuple):
    """The value and the gradient."""
    return value_and_grad(fun)(x, *args)
