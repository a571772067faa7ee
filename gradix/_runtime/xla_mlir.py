"""Lowering rules that use MLIR's Python bindings.

Each rule builds its own module, whose functions are then added to the program as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._base.lazy import lazy_module
from gradix._runtime import mlir_bindings
from gradix._stablehlo.types import tensor_type

ir = lazy_module("jaxlib.mlir.ir")
passmanager = lazy_module("jaxlib.mlir.passmanager")
func = lazy_module("jaxlib.mlir.dialects.func")
bindings = lazy_module("jaxlib._jax.mlir")  # conversions between forms of modules


def dialect(name: str):
    """The bindings of a dialect, such as "stablehlo"."""
    return lazy_module(f"jaxlib.mlir.dialects.{name}")


def context():
    """The MLIR context in which XLA's dialects are registered."""
    return mlir_bindings.bindings()[1]


def type_of(aval):
    """The MLIR type of an aval."""
    with context():
        return ir.Type.parse(tensor_type(aval))


def functions(symbol: str, in_avals, out_avals, build: Callable[[Any, list], list]) -> list[str]:
    """The texts of a private function whose body `build` makes, and of the functions it calls.

    Args:
        symbol: the name of the function.
        in_avals, out_avals: the types of its arguments and results.
        build: a function of the module and the list of arguments that returns the list of results.

    Raises:
        TypeError: the results are not of the types of `out_avals`.
    """
    with context(), ir.Location.unknown():
        module = ir.Module.create()
        outs = [type_of(a) for a in out_avals]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp(symbol, ([type_of(a) for a in in_avals], outs), visibility="private")
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            results = build(module, list(block.arguments))
            got = [r.type for r in results]
            if got != outs:
                raise TypeError(
                    f"the lowering rule of {symbol} returned values of types {[str(t) for t in got]}, but "
                    f"its abstract evaluation rule gives the types {[str(t) for t in outs]}. Make the two "
                    "rules agree."
                )
            func.ReturnOp(results)
        module.operation.verify()
        return [str(op) for op in module.body.operations]


def call(module, texts, symbol: str, out_avals, args) -> list:
    """Add functions given as texts to a module, and call one of them at the insertion point."""
    parsed = ir.Module.parse("module {\n" + "\n".join(texts) + "\n}")
    for op in list(parsed.body.operations):
        op.detach_from_parent()
        module.body.append(op)
    return list(func.CallOp([type_of(a) for a in out_avals], ir.FlatSymbolRefAttr.get(symbol), list(args)).results)
