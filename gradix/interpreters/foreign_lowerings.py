"""Lowering rules that call functions registered with XLA, for libraries' primitives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradix._base.listing import own_names as _own_names
from gradix._runtime import xla_mlir
from gradix.interpreters.mlir import LoweringRuleContext, ir_attribute

_ir = xla_mlir.ir


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A function `(ctx, *operands, **attributes)` that builds a call of a registered function.

    Args:
        call_target_name: the name that was given to `register_ffi_target`.
        operand_layouts, result_layouts: for each operand or result, the order of its axes from the
            innermost on; by default C order.
        backend_config: a dictionary of attributes, to which those of the call are added, or a
            string.
        skip_ffi_layout_processing: whether to leave layouts out that are not given.
        **lowering_args: `has_side_effect`, `api_version`, `result_types`, and
            `operand_output_aliases`, a dictionary from numbers of operands to those of results.

    Returns:
        A function of a lowering context and MLIR values that returns the operation.

    Raises:
        TypeError: `lowering_args` has other names, when the function is called.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import foreign_lowerings, mlir
        >>> build = foreign_lowerings.build_ffi_lowering_function("my_scale", has_side_effect=True)
        >>> scale_p = Primitive("scale")
        >>> _ = scale_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(scale_p, lambda ctx, x: build(ctx, x, factor=2).results)
        >>> "custom_call @my_scale" in gradix.jit(scale_p.bind).lower(1.0).as_text()
        True
    """

    def build(ctx: LoweringRuleContext, *operands: Any, **attributes: Any):
        options = dict(lowering_args)
        results = options.pop("result_types", None)
        if results is None:
            results = [xla_mlir.type_of(a) for a in ctx.avals_out]
        version = options.pop("api_version", 4)
        aliases = options.pop("operand_output_aliases", None) or {}
        made: dict[str, Any] = {
            "call_target_name": _ir.StringAttr.get(call_target_name),
            "has_side_effect": _ir.BoolAttr.get(bool(options.pop("has_side_effect", False))),
            "api_version": _ir.IntegerAttr.get(_ir.IntegerType.get_signless(32), version),
            "called_computations": _ir.ArrayAttr.get([]),
            "backend_config": _config(backend_config, attributes),
        }
        if options:
            raise TypeError(
                f"the FFI lowering of {call_target_name!r} got the unknown options {sorted(options)}. "
                "Pass has_side_effect, api_version, operand_output_aliases and result_types only."
            )
        for name, given, avals in (
            ("operand_layouts", operand_layouts, ctx.avals_in),
            ("result_layouts", result_layouts, ctx.avals_out),
        ):
            if given is None and skip_ffi_layout_processing:
                continue
            orders = [None] * len(avals) if given is None else given
            made[name] = _ir.ArrayAttr.get([_layout(o, a) for o, a in zip(orders, avals)])
        if aliases:
            made["output_operand_aliases"] = _ir.ArrayAttr.get(
                [_ir.Attribute.parse(_alias(i, o, len(results))) for i, o in aliases.items()]
            )
        return _ir.Operation.create("stablehlo.custom_call", results=results, operands=list(operands), attributes=made)

    return build


def ffi_lowering(call_target_name: str, **options: Any) -> Callable[..., Any]:
    """A lowering rule for `mlir.register_lowering` that calls a registered function.

    The primitive's parameters become attributes of the call.

    Args:
        call_target_name: the name that was given to `register_ffi_target`.
        **options: further arguments of `build_ffi_lowering_function`.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import mlir
        >>> norm_p = Primitive("norm")
        >>> _ = norm_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(norm_p, gradix.ffi.ffi_lowering("my_norm"))
        >>> "my_norm" in gradix.jit(norm_p.bind).lower(1.0).as_text()
        True
    """
    build = build_ffi_lowering_function(call_target_name, **options)

    def rule(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> list:
        return list(build(ctx, *operands, **params).results)

    return rule


def _config(given: Mapping[str, Any] | str | None, attributes: Mapping[str, Any]):
    if isinstance(given, str):
        return _ir.StringAttr.get(given)
    every = {**(given or {}), **attributes}
    return _ir.DictAttr.get({k: v if isinstance(v, _ir.Attribute) else ir_attribute(v) for k, v in every.items()})


def _layout(order: Any, aval: Any):
    """The order of an operand's axes from the innermost on, as an attribute."""
    major = getattr(order, "major_to_minor", None)
    if order is None:
        axes = list(range(aval.ndim))[::-1]
    else:
        axes = list(order) if major is None else list(major)[::-1]
    return _ir.Attribute.parse(f"dense<{axes or ''}> : tensor<{len(axes)}xindex>")


def _alias(operand: int, result: int, count: int) -> str:
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{result if count > 1 else ''}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    )


__dir__ = _own_names(__name__)
