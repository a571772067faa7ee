"""`linear_call`: a linear function for which the user defines the transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._api.arguments import name_of
from gradix._api.boundary import Flat, arrays, positional
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten, tree_structure
from gradix._control.linear_call import linear_call_p
from gradix._core.jaxpr import DebugInfo
from gradix._core.trace import bind
from gradix._ops.basis import tangent_aval
from gradix._transforms.staging import stage_closed


@boundary
def linear_call(fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any) -> Any:
    """`fun(residual_args, linear_args)`, whose transpose is `fun_transpose`.

    Neither function may use traced values other than its arguments.

    Args:
        fun: a function of residuals and of linear arguments.
        fun_transpose: a function of residuals and of cotangents of the result; it returns
            cotangents of the linear arguments, in their structure.
        residual_args: a pytree of arrays; they have no derivative.
        linear_args: a pytree of arrays.

    Returns:
        The result of `fun`.

    Raises:
        TypeError: the results of `fun_transpose` differ from `linear_args` in structure or types.
        NotImplementedError: a residual is differentiated.

    Example:
        >>> import gradix
        >>> from gradix.custom_derivatives import linear_call
        >>> def scaled(x):
        ...     return linear_call(lambda r, x: x * r, lambda r, ct: ct * r, 3.0, x)
        >>> gradix.linear_transpose(scaled, 1.0)(2.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    res, res_tree = flatten(residual_args)
    xs, tree = flatten(linear_args)
    res = arrays("linear_call", res, res_tree, "residual_args")
    xs = arrays("linear_call", xs, tree, "linear_args")
    both_tree = tree_structure((residual_args, linear_args))
    call = Flat(fun, "linear_call", positional(both_tree).unflatten)
    avals = [x.aval for x in xs]
    res_avals = [r.aval for r in res]
    callee = stage_closed(call, [*res_avals, *avals], DebugInfo.of(name_of(fun)))
    pulled_tree = tree_structure((residual_args, call.out_tree.unflatten(callee.out_avals)))
    pull = Flat(fun_transpose, "linear_call", positional(pulled_tree).unflatten)
    cts = [tangent_aval(a) for a in callee.out_avals]
    transpose = stage_closed(pull, [*res_avals, *cts], DebugInfo.of(name_of(fun_transpose)))
    if pull.out_tree != tree:
        raise TypeError(
            "linear_call: transpose output pytree structure must match that of linear inputs, got "
            f"output structure {pull.out_tree} and input structure {tree}."
        )
    for i, (have, want) in enumerate(zip(transpose.out_avals, avals)):
        if have.shape != want.shape or have.dtype != want.dtype:
            raise TypeError(
                f"linear_call: fun_transpose returned {have.str_short()} as the cotangent of leaf "
                f"{i} of linear_args, which is {want.str_short()}. The types must be equal."
            )
    params = {"callee": callee, "transpose": transpose, "n_res": len(res)}
    return call.out_tree.unflatten(bind(linear_call_p, [*res, *xs], params))
