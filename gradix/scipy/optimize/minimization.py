"""`minimize`, which minimizes functions of a vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gradix import lax, numpy as jnp
from gradix._api.derivatives.autodiff import value_and_grad
from gradix._base.tracebacks import boundary
from gradix._core.dtypes import COMPLEX, INEXACT
from gradix._core.operators import Array
from gradix.scipy.optimize.limited_memory import lbfgs
from gradix.scipy.optimize.quasi_newton import bfgs


class OptimizeResults(NamedTuple):
    """The result of `minimize`.

    Attributes:
        x: the point found.
        success: whether the norm of the gradient is tolerated.
        status: 0 for success, 1 after `maxiter` steps, 2 after `maxfun` evaluations, 3 if the line
            search found no lower point in a bracket, and 5 if it found no bracket.
        fun: the value at `x`.
        jac: the gradient at `x`.
        hess_inv: the estimate of the inverse of the Hessian; None for L-BFGS.
        nfev: the number of evaluations of the function.
        njev: the number of evaluations of its gradient.
        nit: the number of steps.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.optimize import minimize
        >>> found = minimize(lambda x: ((x - 3.0) ** 2).sum(), jnp.zeros(1), method="BFGS")
        >>> found.x.round(3), bool(found.success), int(found.status)
        (Array([3.], dtype=float32), True, 0)
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


_LIMITED_MEMORY = "l-bfgs-experimental-do-not-rely-on-this"
# method -> its function, and the options that it takes
_METHODS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "bfgs": (bfgs, ("gtol", "line_search_maxiter", "maxiter", "norm")),
    _LIMITED_MEMORY: (lbfgs, ("ftol", "gtol", "maxcor", "maxfun", "maxgrad", "maxiter", "maxls", "norm")),
}


@boundary
def minimize(
    fun: Callable,
    x0: Array,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of a function of a vector.

    J. Nocedal, S. Wright, "Numerical Optimization" (2006), algorithms 6.1 and 7.5. The line search is for the
    strong Wolfe conditions (3.5, 3.6), and for the approximate ones of W. Hager, H. Zhang (2005)
    where rounding hides the others. The function can be jitted and mapped by `vmap`.

    Args:
        fun: a function `fun(x, *args)` that returns a scalar; it is differentiated.
        x0: the start, a vector of floats; for L-BFGS also of complex numbers.
        args: a tuple of further arguments.
        method: "BFGS"; or "l-bfgs-experimental-do-not-rely-on-this", which keeps the last steps in
            place of a matrix.
        tol: the default of the options `gtol` and `ftol`.
        options: of both, `gtol`, the tolerated norm of the gradient (1e-5); `norm`, the order of
            the norm (infinity, which is the largest element); `maxiter`, the largest number of
            steps (200 for each unknown, for L-BFGS 1000). Of BFGS, `line_search_maxiter`, the
            largest number of points to try for a step (20). Of L-BFGS this is `maxls`; it has
            `maxcor`, how many steps it keeps (10), `ftol`, the relative decrease in one step at
            which it ends (2.2e-9), and the bounds `maxfun` and `maxgrad` of evaluations.

    Raises:
        ValueError: `method` has another value.
        TypeError: `args` is not a tuple, `x0` is not a vector of floats, an option is unknown, or
            `fun` does not return a scalar.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy.optimize import minimize
        >>> minimize(lambda x, a: jnp.sum((x - a) ** 2), jnp.zeros(2), (3.0,), method="BFGS").x.round(4)
        Array([3., 3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to minimize must be a tuple, got {args!r}. Write ({args!r},) for one argument.")
    if not isinstance(method, str) or method.lower() not in _METHODS:
        raise ValueError(
            f"Method {method} not recognized; method must be 'BFGS' or {_LIMITED_MEMORY!r}. For other "
            "methods call scipy.optimize.minimize with value_and_grad(fun) and jac=True."
        )
    found, known = _METHODS[method.lower()]
    options = dict(options or {})
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"minimize got unexpected options {unknown}. Use {', '.join(known)} only.")
    x = _vector(x0, found is lbfgs)
    for name in {"gtol", "ftol"} & set(known) if tol is not None else ():
        options.setdefault(name, tol)
    if x.aval.dtype not in COMPLEX:
        return OptimizeResults(*found(lambda x: _evaluated(fun, x, args), x, **options))
    # A function of complex numbers is one of their real and imaginary parts.
    whole = lambda parts: lax.complex(*jnp.split(parts, 2))  # noqa: E731
    parts = jnp.concatenate([lax.real(x), lax.imag(x)])
    end = OptimizeResults(*found(lambda parts: _evaluated(lambda p: fun(whole(p), *args), parts, ()), parts, **options))
    return end._replace(x=whole(end.x), jac=whole(end.jac))


def _vector(x0, may_be_complex: bool):
    x = x0 if hasattr(x0, "dtype") else None
    if x is None:
        raise TypeError(f"x0 must be an array, got {x0!r} of type {type(x0).__name__}. Convert it by jnp.array(...).")
    x = jnp.asarray(x)
    if x.aval.dtype not in INEXACT or (x.aval.dtype in COMPLEX and not may_be_complex):
        raise TypeError(
            f"x0 must have a floating dtype, because fun is differentiated; got {x.aval.dtype}. Convert "
            "it by .astype(float)."
        )
    if x.aval.ndim != 1:
        raise TypeError(
            f"x0 must be a vector, got shape {x.aval.shape}. Make a vector by flatten_util.ravel_pytree, "
            "which also returns the inverse function."
        )
    return x


def _evaluated(fun: Callable, x, args: tuple):
    """The value and the gradient of a function."""
    return value_and_grad(fun)(x, *args)
