"""MLIR's own bindings: programs as modules, parsed from texts and printed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence

from gradix._base.lazy import lazy_module


@functools.lru_cache(None)
def bindings():
    """MLIR's bindings and a context with XLA's dialects, which are loaded only when needed."""
    ir = lazy_module("jaxlib.mlir.ir")
    registry = ir.DialectRegistry()
    lazy_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in ("stablehlo", "chlo", "sdy"):
        # The classes of a dialect's operations are not needed here and load slowly.
        lazy_module(f"jaxlib.mlir._mlir_libs._{dialect}").register_dialect(context)
        _complete(dialect)
    return ir, context


def _complete(dialect: str) -> None:
    """Give a dialect's module the names of its extension, which may have imported it half-made."""
    extension, module = [sys.modules.get(f"jaxlib.mlir.{name}{dialect}") for name in ("_mlir_libs._", "dialects.")]
    if extension is not None and module is not None:
        for key, value in vars(extension).items():
            if not key.startswith("_"):
                vars(module).setdefault(key, value)


def load_bindings() -> None:
    """Load what `parse_module` needs."""
    bindings()


def parse_module(text: str):
    """The MLIR module of a text, the form of a program that can refer to Python functions."""
    ir, context = bindings()
    with context:
        return ir.Module.parse(text)


def printed(text: str, name: str, results: Sequence[str], *, with_places: bool) -> str:
    """A program as MLIR prints it, named as JAX names it.

    Args:
        text: the program as it was written.
        name: the name of the module.
        results: what each of the first results of `main` is called, as in "result[0]".
        with_places: print the places of the operations.
    """
    ir, context = bindings()
    with context:
        module = ir.Module.parse(text)
        own = module.operation.attributes
        own["sym_name"] = ir.StringAttr.get(name)
        for number in ("mhlo.num_partitions", "mhlo.num_replicas"):
            if number not in own:
                own[number] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
        (main,) = [f for f in module.body.operations if f.attributes["sym_name"].value == "main"]
        _call_results(ir, main, results)
        return module.operation.get_asm(enable_debug_info=with_places)


def _call_results(ir, main, results: Sequence[str]) -> None:
    """Write what the results are called beside them."""
    count = len(main.attributes["function_type"].value.results)
    before = main.attributes["res_attrs"] if "res_attrs" in main.attributes else [ir.DictAttr.get({})] * count
    after = []
    for i, given in enumerate(before):
        kept = {a.name: a.attr for a in given}
        if i < len(results):
            kept["jax.result_info"] = ir.StringAttr.get(results[i])
        after.append(ir.DictAttr.get(kept))
    if after:
        main.attributes["res_attrs"] = ir.ArrayAttr.get(after)
