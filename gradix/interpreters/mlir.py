"""Lowerings of primitives, as libraries register them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

LoweringRule = Callable[..., Any]


class _LoweredFunction:
    """What `lower_fun` returns: a lowering that is a function of arrays."""

    __slots__ = ("fun", "multiple_results")

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun, self.multiple_results = fun, multiple_results

    def __call__(self, ctx, *args, **params):
        raise NotImplementedError("a lowering made by lower_fun cannot be called inside another lowering: register it "
                                  "with register_lowering, or bind the primitive in a function and lower that.")


def lower_fun(fun: Callable, multiple_results: bool = True) -> _LoweredFunction:
    """A lowering that is a function of arrays, made of other primitives."""
    return _LoweredFunction(fun, multiple_results)


def register_lowering(prim, rule: LoweringRule, platform: str | None = None, inline: bool = True,
                      cacheable: bool = True) -> None:
    """Set how a primitive is compiled.

    Args:
        rule: what `lower_fun` returned. Functions that build MLIR operations by jaxlib's Python bindings are not
            supported, since programs are spelled as text: compiling such a primitive raises NotImplementedError.
        platform: only the lowering for the CPU, or for any platform, is used.

    Example:
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> import gradix
        >>> triple_p = Primitive("triple")
        >>> _ = triple_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(triple_p, mlir.lower_fun(lambda x: 3 * x, multiple_results=False))
        >>> gradix.jit(triple_p.bind)(2.0)
        Array(6., dtype=float32, weak_type=True)
    """
    if platform not in (None, "cpu"):
        return
    if isinstance(rule, _LoweredFunction):
        prim.lower, prim.expand = None, rule.fun
        return

    def lower(em, out, *values, **params):
        raise NotImplementedError(
            f"primitive '{prim.name}' has a lowering written with MLIR's Python bindings ({rule!r}), which gradix does "
            "not run. Register a function of arrays instead: "
            f"mlir.register_lowering({prim.name}_p, mlir.lower_fun(f, multiple_results={prim.multiple_results})).")

    prim.expand, prim.lower = None, lower
