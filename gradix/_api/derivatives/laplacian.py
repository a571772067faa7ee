"""The Laplacian of a function, in forward mode."""

from __future__ import annotations

from collections.abc import Callable

from gradix._api.arguments import as_numbers, check_callable, named_as
from gradix._api.derivatives.autodiff import differentiated
from gradix._api.derivatives.jacobians import _mapped_over_basis
from gradix._api.derivatives.jet import taylor
from gradix._api.mapping.chunks import check_chunk_size
from gradix._base.tracebacks import boundary
from gradix._core.dtypes import FLOAT
from gradix._ops.arithmetic import mul
from gradix._ops.basis import reduce_sum, zeros
from gradix._ops.operands import scalar_like


def laplacian(fun: Callable, argnums: int | tuple = 0, chunk_size: int | None = None) -> Callable:
    """The sum of the unmixed second derivatives of `fun`, the trace of its Hessian.

    Taylor series of degree two are propagated along all unit vectors at once. No Hessian is formed,
    and nothing is kept for a backward pass.

    Args:
        fun: a function of real arrays to real arrays of any shape, or pytrees of these.
        argnums: the number(s) of the arguments to differentiate in; the sum is over the elements of
            all of them.
        chunk_size: the number of unit vectors that are propagated at a time, to save memory.

    Returns:
        A function with the arguments of `fun` and results of the same structure and shapes.

    Raises:
        TypeError: an argument or a result is not real.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.laplacian(lambda x: x[0] ** 2 * x[1])(jnp.array([1.0, 3.0]))
        Array(6., dtype=float32)
    """
    check_callable("laplacian", fun)
    numbers, chunk = as_numbers("argnums", argnums), check_chunk_size("laplacian", chunk_size)

    @named_as(fun)
    @boundary
    def laplacian_f(*args, **kwargs):
        flat, leaves, _ = differentiated("laplacian", fun, args, kwargs, numbers)
        for x in leaves:
            _check_real("argument", x.aval)
        avals: list = []

        def second(*directions):
            ys, series = taylor(flat, leaves, [[t, None] for t in directions])
            avals[:] = [y.aval for y in ys]
            return [ts[1] for ts in series]

        halves = _mapped_over_basis(second, [x.aval for x in leaves], True, chunk)
        for a in avals:
            _check_real("result", a)
        sums = [zeros(a) if h is None else reduce_sum(h, (0,)) for h, a in zip(halves, avals)]
        # the second derivative is 2! times the coefficient of the series
        return flat.out_tree.unflatten([mul(s, scalar_like(s, 2)) for s in sums])

    return laplacian_f


def _check_real(what: str, aval) -> None:
    if aval.dtype not in FLOAT:
        raise TypeError(
            f"laplacian needs real floats, got {what} of type {aval}. Convert it with .astype(float), or "
            "leave the argument out of argnums."
        )
