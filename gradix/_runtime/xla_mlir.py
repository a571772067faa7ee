"""Lowerings by MLIR's Python bindings: run in a module of their own, whose functions join the program as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._base.lazy import lazy_module
from gradix._runtime.xla_callbacks import _context
from gradix._stablehlo.types import tensor_type

ir = lazy_module("jaxlib.mlir.ir")
passmanager = lazy_module("jaxlib.mlir.passmanager")
func = lazy_module("jaxlib.mlir.dialects.func")


def dialect(name: str):
    """The bindings of a dialect, such as "stablehlo"."""
    return lazy_module(f"jaxlib.mlir.dialects.{name}")


def context():
    """The context that knows XLA's dialects."""
    return _context()[1]


def type_of(aval):
    """The MLIR type of an aval."""
    with context():
        return ir.Type.parse(tensor_type(aval))


def functions(symbol: str, in_avals, out_avals, build: Callable[[Any, list], list]) -> list[str]:
    """The text of a private function made by `build(module, arguments) -> results`, and of those it needs.

    Raises:
        TypeError: the results are not of the types of `out_avals`.
    """
    with context(), ir.Location.unknown():
        module = ir.Module.create()
        outs = [type_of(a) for a in out_avals]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp(
                symbol, ([type_of(a) for a in in_avals], outs), visibility="private"
            )
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            results = build(module, list(block.arguments))
            got = [r.type for r in results]
            if got != outs:
                raise TypeError(
                    f"the lowering of {symbol} returned values of types {[str(t) for t in got]}, but its "
                    f"abstract evaluation says {[str(t) for t in outs]}."
                )
            func.ReturnOp(results)
        module.operation.verify()
        return [str(op) for op in module.body.operations]


def call(module, texts, symbol: str, out_avals, args) -> list:
    """Add functions, given as text, to a module being built, and call one at the current insertion point."""
    parsed = ir.Module.parse("module {\n" + "\n".join(texts) + "\n}")
    for op in list(parsed.body.operations):
        op.detach_from_parent()
        module.body.append(op)
    return list(
        func.CallOp(
            [type_of(a) for a in out_avals], ir.FlatSymbolRefAttr.get(symbol), list(args)
        ).results
    )
