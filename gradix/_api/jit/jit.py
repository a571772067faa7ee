"""`jit`: traces a function once per signature, compiles it, and then calls the compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradix._api.arguments import check_callable
from gradix._api.jit.jitted_function import JitFunction
from gradix._api.jit.options import Options, check_names, takes
from gradix._core import seams


@takes(Options)
def jit(fun: Callable | None = None, /, **options: Any):
    """`fun` compiled by XLA.

    It is traced and compiled once per signature, which is the tree, the shapes and dtypes, and the
    static values of its arguments; further calls only run the compiled program.

    Args:
        fun: a pure function of arrays in pytrees. Without it, a decorator is returned.
        {options}

    Returns:
        The compiled function; it has `lower`, `trace`, `eval_shape`, `stats` and `clear_cache`.

    Raises:
        TypeError: `fun` is not callable, there is no such option, `abstracted_axes` does not name
            axes, or a leaf of an argument is not an array.
        ValueError: a static argument is an array, or has neither a hash nor content that can be
            compared; axes of one name differ in size; with donate_strict, a donated argument cannot
            be used.
        RetraceError: more than `max_traces` traces.
        FloatingPointError, ZeroDivisionError, IndexError: with `check`, the error that a call
            found, with its source line.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @gradix.jit
        ... def norm(x):
        ...     return jnp.sqrt((x ** 2).sum())
        >>> norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
        >>> @gradix.jit(static_argnames="n")
        ... def power(x, n):
        ...     return x ** n
        >>> power(jnp.arange(3.0), n=2), power.stats().traces
        (Array([0., 1., 4.], dtype=float32), 1)

    See also:
        `gradix.make_jaxpr`, which shows the program; `gradix.vmap`, `gradix.grad`,
        `gradix.export.export`.
    """
    if options:
        check_names(options)
    if fun is None:
        return functools.partial(jit, **options)
    check_callable("jit", fun)
    return JitFunction(fun, Options(**options))


seams.jit = jit
