"""Parts of `shard_map` in modules with symbolic shapes, which are refined as functions of their own.

XLA's refinement finds no sizes within `sdy.manual_computation`, and ends the process where it folds
constants there. So each region becomes a function, which is refined for the shapes of one device's
parts, and a custom call of known types is in its place until the module around it is refined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._core.dimensions import parsing
from gradix._core.dimensions.scope import SymbolicScope
from gradix._runtime.xla_mlir import func, ir
from gradix._stablehlo.dimensions import SIZES

MANUAL = "sdy.manual_computation"
_KEPT = ("in_shardings", "out_shardings", "manual_axes")


class Part(NamedTuple):
    """A region that became the function `name` of the module.

    Attributes:
        given: the values of the function's first arguments.
        ins, outs: the types of the other arguments and of the results, as text.
        attributes: those of the operation that the region is from, as text.
    """

    name: str
    given: list[int]
    ins: list[str]
    outs: list[str]
    attributes: dict[str, str]


def outlined(module, values: dict[str, int], prefix: str) -> list[Part]:
    """Make functions of the outermost regions in a module that tell their sizes, and calls in their places.

    Args:
        module: a module, which is changed.
        values: the values of the dimension variables, by name.
        prefix: how the names of the functions begin.

    Raises:
        ValueError: an operation tells its sizes wrongly.
    """
    parts: list[Part] = []
    for op in outermost(module.operation, lambda op: op.name == MANUAL and SIZES in op.attributes):
        try:
            with ir.Location.unknown():
                parts.append(_outlined(module, op, values, f"{prefix}{len(parts)}"))
        except (LookupError, TypeError, ValueError, ArithmeticError) as e:
            raise ValueError(f"the sizes of a shard_map in the module are wrong ({e}).") from None
    return parts


def _outlined(module, op, values: dict[str, int], name: str) -> Part:
    told = [ir.StringAttr(a).value for a in op.attributes[SIZES]]
    dims = _shape(told[0], values)
    block = op.regions[0].blocks[0]
    end = list(block.operations)[-1]
    inner_ins, inner_outs, outer_outs = [_shapes(t, values) for t in told[1:]]
    given = list(block.arguments)[len(dims) :]
    ins = [_fixed(x, s) for x, s in _pairs(given, inner_ins)]
    outs = [_fixed(x, s) for x, s in _pairs(end.operands, inner_outs)]
    with ir.InsertionPoint(op):
        call = ir.Operation.create(
            "stablehlo.custom_call",
            results=[_fixed(x, s) for x, s in _pairs(op.results, outer_outs)],
            operands=list(op.operands),
            attributes={
                "call_target_name": ir.StringAttr.get(name),
                "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2),
            },
        )
        for old, new in zip(op.results, call.results):
            same = old.type == new.type
            as_asked = new if same else ir.Operation.create("stablehlo.convert", [old.type], [new]).results[0]
            old.replace_all_uses_with(as_asked)
    kinds = [x.type for x in block.arguments], [x.type for x in end.operands]
    with ir.InsertionPoint(module.body):
        function = func.FuncOp(name, kinds, visibility="private")
    block.append_to(function.operation.regions[0])
    with ir.InsertionPoint(end):
        func.ReturnOp(list(end.operands))
    end.erase()
    attributes = {n: str(op.attributes[n]) for n in _KEPT}
    op.erase()
    return Part(name, [int(d) for d in dims], list(map(str, ins)), list(map(str, outs)), attributes)


def put_back(module, parts: dict[str, Part]) -> None:
    """Put regions in the places of the calls that `outlined` made; they call functions, by whose names `parts` are."""
    known = {part.name: (part, symbol) for symbol, part in parts.items()}
    for op in outermost(module.operation, lambda op: _target(op) in known):
        with ir.Location.unknown():
            _put_back(op, *known[str(_target(op))])


def _put_back(op, part: Part, symbol: str) -> None:
    count = len(part.given)
    kinds = [*[x.type for x in list(op.operands)[:count]], *map(ir.Type.parse, part.ins)]
    with ir.InsertionPoint(op):
        attributes = {n: ir.Attribute.parse(t) for n, t in part.attributes.items()}
        new = ir.Operation.create(
            MANUAL, [x.type for x in op.results], list(op.operands), attributes=attributes, regions=1
        )
        block = new.regions[0].blocks.append(*kinds)
    with ir.InsertionPoint(block):
        outs = list(map(ir.Type.parse, part.outs))
        callee = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
        call = ir.Operation.create("func.call", outs, list(block.arguments)[count:], attributes=callee)
        ir.Operation.create("sdy.return", [], list(call.results))
    for old, found in zip(op.results, new.results):
        old.replace_all_uses_with(found)
    op.erase()


def _target(op) -> str | None:
    return ir.StringAttr(op.attributes["call_target_name"]).value if op.name == "stablehlo.custom_call" else None


def within(op) -> list:
    """The operations in the regions of one, at every depth."""
    found: list = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += [inner.operation, *within(inner.operation)]
    return found


def outermost(op, is_wanted: Callable[[Any], bool]) -> list:
    """The operations within one that are wanted, without those within them."""
    found: list = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                whole = inner.operation
                found += [whole] if is_wanted(whole) else outermost(whole, is_wanted)
    return found


def restate(module, values: dict[str, Any]) -> None:
    """Tell the sizes of regions in a module by other variables: `values`, of which each is a dimension."""
    for op in within(module.operation):
        if SIZES in op.attributes:
            told = [_shapes(ir.StringAttr(a).value, values) for a in op.attributes[SIZES]]
            texts = [";".join(["|".join(map(str, shape)) for shape in shapes]) for shapes in told]
            op.attributes[SIZES] = ir.ArrayAttr.get([ir.StringAttr.get(t) for t in texts])


def _shapes(text: str, values: dict[str, Any]) -> list[tuple]:
    return [_shape(t, values) for t in text.split(";")]


def _shape(text: str, values: dict[str, Any]) -> tuple:
    scope = SymbolicScope()
    dims = [parsing.dimension(t, scope) for t in text.split("|")] if text else []
    return tuple([d if type(d) is int else d.evaluate(values) for d in dims])


def _pairs(values, shapes: list[tuple]) -> list[tuple]:
    values = list(values)
    return list(zip(values, shapes if values else [], strict=True))


def _fixed(value, shape: tuple):
    """The type of a value with all sizes known; other types than those of arrays stay as they are."""
    kind = value.type
    if not isinstance(kind, ir.RankedTensorType):
        return kind
    return ir.RankedTensorType.get(list(map(int, shape)), kind.element_type)
