"""Lists the residuals that the forward pass keeps for the backward pass, and their origins."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._api.arguments import Names, check_callable, leaf_names, name_of, signature
from gradix._api.boundary import Flat, arrays
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten
from gradix._control.call import jit_p
from gradix._core.jaxpr import Literal
from gradix._ops.basis import is_differentiable
from gradix._ops.markers import name_p
from gradix._transforms.linearize import linearize_jaxpr


@boundary
def saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> list[tuple]:
    """The types and origins of the residuals that reverse mode of `f` keeps at these arguments.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.ad_checkpoint import saved_residuals
        >>> [(str(aval), text.split(" from ")[0]) for aval, text in saved_residuals(lambda x: jnp.sin(jnp.sin(x)), 1.0)]
        [('~float32[]', 'output of cos'), ('~float32[]', 'output of cos')]
    """
    check_callable("saved_residuals", f)
    leaves, tree = flatten((args, kwargs))
    leaves = arrays("saved_residuals", leaves, tree, "arguments")
    flat = Flat(f, name_of(f), tree.unflatten, names=Names(f, tree))
    closed, consts = flat.stage_open([x.aval for x in leaves])
    nonzero = (*[False] * len(consts), *[is_differentiable(x.aval) for x in leaves])
    cut = linearize_jaxpr(closed, nonzero)
    jaxpr = cut.known.jaxpr
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    names = dict(zip(jaxpr.invars[len(consts) :], _argument_names(f, args, kwargs)))
    found = dict.fromkeys([v for v in cut.residuals(jaxpr.invars, jaxpr.outvars) if type(v) is not Literal])
    return [(v.aval, _origin(v, makers, names)) for v in found]


def _argument_names(f, args, kwargs) -> list[str]:
    sig = signature(f)
    names = [p.name for p in sig.parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD] if sig is not None else []
    names += [f"args[{i}]" for i in range(len(names), len(args))]
    return [leaf for name, x in [*zip(names, args), *sorted(kwargs.items())] for leaf in leaf_names(name, x)]


def _origin(v, makers, names) -> str:
    eqn = makers.get(v)
    if eqn is None:
        return f"from the argument {names[v]}" if v in names else "from a constant"
    if eqn.primitive is name_p:
        what = f"named '{eqn.params['name']}'"
    elif eqn.primitive is jit_p:
        what = f"output of jitted function '{eqn.params['name']}'"
    else:
        what = f"output of {eqn.primitive.name}"
    return f"{what} from {eqn.source}" if eqn.source is not None else what


@boundary
def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Print the residuals that reverse mode of `f` keeps at these arguments, one per line.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.ad_checkpoint import print_saved_residuals
        >>> print_saved_residuals(gradix.checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones(3))
        f32[3] from the argument x
    """
    for aval, text in saved_residuals(f, *args, **kwargs):
        builtins.print(f"{aval.str_short(True)} {text}")


# -- the answers of a policy besides True and False ------------------------------------------------


class Offloadable(NamedTuple):
    """A policy's answer: keep the value in memory `dst`, or in `src` if the device has no `dst`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.ad_checkpoint import Offloadable
        >>> def policy(prim, *types, **params):
        ...     return Offloadable(src="device", dst="pinned_host") if prim.name == "sin" else False
        >>> gradix.grad(gradix.checkpoint(lambda x: jnp.sin(x) ** 2, policy=policy))(0.0)
        Array(0., dtype=float32, weak_type=True)
    """

    src: str
    dst: str


class _Answer:
    """A policy's answer with a name."""

    __slots__ = ("name", "keep")

    def __init__(self, name: str, keep: bool):
        self.name, self.keep = name, keep

    def __bool__(self) -> bool:
        return self.keep

    def __repr__(self) -> str:
        return self.name


Saveable = _Answer("Saveable", True)
Recompute = _Answer("Recompute", False)
