"""`fwd_and_bwd`: splits a function into a forward and a backward function."""

from __future__ import annotations

from collections.abc import Callable

from gradix._api.arguments import as_numbers, check_callable, is_one_number
from gradix._api.derivatives.autodiff import vjp
from gradix._api.jit.jit import jit


def fwd_and_bwd(fun: Callable, argnums: int | tuple, has_aux: bool = False, jitted: bool = True) -> tuple:
    """A forward function that also returns residuals, and the backward function that takes them.

    Args:
        fun: the function.
        argnums: the number(s) of the arguments to differentiate in.
        has_aux: `fun` returns `(output, auxiliary data)`.
        jitted: compile both.

    Returns:
        `(fwd, bwd)`: `fwd(*args)` returns `(output, residuals)`, with `has_aux` `(output,
        residuals, aux)`; `bwd(residuals, cotangent)` returns the cotangent of the argument, or a
        tuple of them.

    Example:
        >>> import gradix
        >>> fwd, bwd = gradix.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
        >>> y, residuals = fwd(2.0, 3.0)
        >>> [float(g) for g in bwd(residuals, 1.0)]
        [3.0, 2.0]
    """
    check_callable("fwd_and_bwd", fun)
    numbers, single = as_numbers("argnums", argnums), is_one_number(argnums)

    def fwd(*args, **kwargs):
        places = [n % len(args) for n in numbers]

        def of_numbered(*values):
            given = list(args)
            for place, value in zip(places, values):
                given[place] = value
            return fun(*given, **kwargs)

        return vjp(of_numbered, *[args[p] for p in places], has_aux=has_aux)

    def bwd(residuals, outgrad):
        grads = residuals(outgrad)
        return grads[0] if single else grads

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
