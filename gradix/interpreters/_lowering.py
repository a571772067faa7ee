"""Lowering rules in JAX's convention `rule(ctx, *ir_values, **params)`, over our emitter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._core.primitive import Primitive
from gradix._runtime import xla_mlir
from gradix._stablehlo.emitter import Emitter


class ModuleContext:
    """What a lowering rule can read of the module that is being built.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> def lowering(ctx, x):
        ...     print(type(ctx.module_context).__name__, ctx.module_context.platforms)
        ...     return [x]
        >>> same_p = Primitive("same")
        >>> _ = same_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(same_p, lowering)
        >>> _ = gradix.jit(same_p.bind).lower(1.0)
        ModuleContext ('cpu',)
    """

    def __init__(self, module, emitter: Emitter):
        self.module, self.emitter = module, emitter
        self.context, self.platforms = xla_mlir.context(), (emitter.platform,)
        self.keepalives: list = []
        self.host_callbacks = emitter.host_callbacks

    def add_keepalive(self, value) -> None:
        """Keep a Python object alive as long as this context."""
        self.keepalives.append(value)

    @property
    def ip(self):
        """The insertion point for operations outside of functions."""
        return xla_mlir.ir.InsertionPoint(self.module.body)

    @property
    def symbol_table(self):
        """The symbol table of the module."""
        return xla_mlir.ir.SymbolTable(self.module.operation)


class LoweringRuleContext:
    """What a lowering rule can read of its operation: types of operands and results, and module.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> def lowering(ctx: mlir.LoweringRuleContext, x):
        ...     print(ctx.primitive, ctx.avals_in, ctx.avals_out)
        ...     return [x]
        >>> same_p = Primitive("same")
        >>> _ = same_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(same_p, lowering)
        >>> _ = gradix.jit(same_p.bind).lower(1.0)
        same [ShapedArray(float32[], weak_type=True)] [ShapedArray(float32[], weak_type=True)]
    """

    def __init__(self, module_context: ModuleContext, primitive: Primitive | None, avals_in, avals_out, **others):
        self.module_context, self.primitive = module_context, primitive
        self.avals_in, self.avals_out = avals_in, avals_out
        self.name_stack = others.get("name_stack", "")
        self.tokens_in = self.tokens_out = None
        self.dim_var_values, self.platforms = (), module_context.platforms

    def replace(self, **changes) -> LoweringRuleContext:
        """The context with some attributes replaced."""
        new = object.__new__(LoweringRuleContext)
        new.__dict__.update({**self.__dict__, **changes})
        return new

    def is_forward_compat(self) -> bool:
        """Whether older versions must be able to read the program: False."""
        return False


class LoweredFunction:
    """A lowering rule that is a function of arrays, the result of `lower_fun`."""

    __slots__ = ("fun", "multiple_results")

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun, self.multiple_results = fun, multiple_results

    def __call__(self, ctx: LoweringRuleContext, *args, **params) -> list:
        """The function's results as MLIR values, inside another lowering rule."""
        outer = ctx.module_context.emitter
        em = Emitter(outer.trace_expand, outer.platform)
        # Both emitters share these, so that names are unique and callbacks are in order.
        em._names, em.host_callbacks = outer._names, outer.host_callbacks
        assert em.trace_expand is not None
        closed = em.trace_expand(self.fun, tuple(ctx.avals_in), params)
        symbol = (
            em.function("lowered_function", closed.jaxpr)
            if not closed.consts
            else em.define("lowered_function", closed.in_avals, lambda *xs: em.inline(closed.jaxpr, closed.consts, xs))
        )
        return xla_mlir.call(ctx.module_context.module, em.functions, symbol, closed.out_avals, args)


def flat_values(values) -> list:
    """The MLIR values in nested sequences, with operations replaced by their results."""
    if hasattr(values, "results") and not isinstance(values, (list, tuple)):
        return list(values.results)
    if isinstance(values, (list, tuple)) or type(values).__name__ == "OpResultList":
        return [v for part in values for v in flat_values(part)]
    return [values]


def lower_of(prim, rule: Callable[..., Any]) -> Callable:
    """The lowering rule of a primitive, made of a rule in JAX's convention."""

    def lower(em, out, *values, **params):
        outs = list(out) if prim.multiple_results else [out]
        avals = [v.aval for v in values]
        symbol = em.unused_symbol(prim.name.replace("-", "_"))

        def build(module, args):
            ctx = LoweringRuleContext(ModuleContext(module, em), prim, avals, outs)
            return flat_values(rule(ctx, *args, **params))

        em.functions.extend(xla_mlir.functions(symbol, avals, outs, build))
        results = em.call(symbol, outs, *values)
        return results if prim.multiple_results else results[0]

    return lower
