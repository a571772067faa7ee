"""Calls from a program: other libraries, loops of NumPy on the host, functions of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradix._base import config
from gradix._core.aval import AbstractToken, make_aval
from gradix._core.dimensions.expression import SymbolicDim
from gradix._stablehlo.attributes import dictionary, i64_tensor, layout, string
from gradix._stablehlo.sharding_rules import batch_rule
from gradix._stablehlo.types import TOKEN, element_type
from gradix._stablehlo.writer import Value

_options = config.state
# The prefix of the custom call targets that run loops of NumPy.
HOST_KERNEL = "gradix_host_"
_CARRIERS = {"i2": "int8", "i4": "int8", "ui2": "uint8", "ui4": "uint8", "f4E2M1FN": "float32"}


class HostCallback(NamedTuple):
    """A Python function that the program calls, from NumPy arrays to a sequence of them."""

    function: Callable
    in_avals: tuple
    out_avals: tuple
    ordered: bool = False
    # whether it gets and returns arrays, in place of buffers of which it fills the last
    by_value: bool = False


def custom_call(
    em,
    target: str,
    out_avals,
    *values: Value,
    backend_config: dict | str | None = None,
    api_version: int = 4,
    operand_layouts=None,
    result_layouts=None,
    aliases=None,
    has_side_effect: bool = False,
    attrs: str = "",
    is_refined: bool = False,
    batch: int = 0,
) -> list[Value]:
    """Call a function registered with XLA under `target`.

    Args:
        backend_config: attributes by name (`np.uint8(76)` gives `76 : ui8`), or a string for
            old targets.
        operand_layouts: dimensions from minor to major, one sequence per operand; likewise
            `result_layouts`.
        aliases: `{result index: operand index}` of buffers the call may reuse.
        is_refined: whether XLA infers the shapes of symbolic results. Otherwise the call takes
            these shapes as operands.
        batch: over how many leading axes of all operands and results the compiler may divide the
            call. The function must be registered as one that it can divide so.
    """
    em.facts.custom_calls.add(target)
    parts = [
        f"call_target_name = {string(target)}, api_version = {api_version} : i32, "
        f"has_side_effect = {str(has_side_effect).lower()}"
    ]
    if backend_config is not None:
        text = dictionary(backend_config) if isinstance(backend_config, dict) else string(backend_config)
        parts.append(f"backend_config = {text}")
    if not is_refined and any(type(a) is not AbstractToken and SymbolicDim in map(type, a.shape) for a in out_avals):
        n = len(values)
        values = (*values, *[em.sizes(a.shape) for a in out_avals])
        parts.append(f"indices_of_shape_operands = {i64_tensor(range(n, n + len(out_avals)), (len(out_avals),))}")
        if operand_layouts is not None:
            operand_layouts = [*operand_layouts, *[(0,)] * len(out_avals)]
    if operand_layouts is not None:
        parts.append(f"operand_layouts = [{', '.join(map(layout, operand_layouts))}]")
    if result_layouts is not None:
        parts.append(f"result_layouts = [{', '.join(map(layout, result_layouts))}]")
    if aliases:
        parts.append(f"output_operand_aliases = [{', '.join(_aliases(aliases, len(out_avals)))}]")
    if attrs:
        parts.append(attrs)
    if batch and em.is_divided:
        rule = batch_rule([v.shape for v in values], [a.shape for a in out_avals], batch)
        parts.append(f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}')
        parts.append(f"sdy.sharding_rule = {rule.text()}")
    return em.ops("custom_call", out_avals, *values, attrs=", ".join(parts))


def has_host_kernels(em, *avals) -> bool:
    """Whether a program may call NumPy on these types: on the CPU, unless switched off."""
    return em.tunes and _options.gradix_host_kernels and all(type(n) is int for a in avals for n in a.shape)


def host_kernel(em, name: str, outs: list, *values: Value, aliases: dict | None = None, batch: int = 1) -> list[Value]:
    """Call a loop of NumPy (`_runtime/host_kernels.py`).

    `aliases` lets results reuse operand buffers. The compiler may divide the call over `batch`
    leading axes.
    """
    return em.custom_call(
        HOST_KERNEL + name,
        outs,
        *values,
        backend_config={},
        operand_layouts=[_row_major(v.aval) for v in values],
        result_layouts=list(map(_row_major, outs)),
        aliases=aliases,
        batch=batch,
    )


def callback(
    em, function: Callable, out_avals, *values: Value, has_side_effect: bool = False, ordered: bool = False
) -> list[Value]:
    """Call a Python function on the host with the operands as NumPy arrays.

    Without a side effect the call may be dropped, repeated or merged; `ordered` calls run in
    program order.
    """
    has_side_effect = has_side_effect or ordered
    # on several devices it happens on the first, and XLA keeps that for this target only
    is_once = has_side_effect and em.is_divided
    # buffers on a GPU are not in the host's memory
    by_value = is_once or em.platform != "cpu"
    register_callback(em, function, tuple([v.aval for v in values]), out_avals, ordered=ordered, by_value=by_value)
    platform = "cpu" if em.platform == "cpu" else "gpu"
    target = f"xla_{'ffi' if by_value else 'buffer'}_python_{platform}_callback"
    config: dict[str, Any] = {"index": np.uint64(len(em.host_callbacks) - 1)}
    carried = [_carrier(a) for a in out_avals]
    operands = [_converted(em, v, _carrier(v.aval)) for v in values]
    if ordered:
        operands, carried = [em.ordering_token(), *operands], [TOKEN, *carried]
    attrs = ""
    if is_once:
        places = ", ".join([em.meshes.on_first_device()] * max(len(carried), 1))
        attrs = f"sdy.sharding = #sdy.sharding_per_value<[{places}]>"
    results = em.custom_call(
        target,
        carried,
        *operands,
        backend_config=config,
        operand_layouts=[_row_major(v.aval) for v in operands],
        result_layouts=list(map(_row_major, carried)),
        has_side_effect=has_side_effect,
        attrs=attrs,
    )
    if ordered:
        em.token = results.pop(0)
    return [_converted(em, r, a) for r, a in zip(results, out_avals)]


def register_callback(
    em, function: Callable, avals: tuple, out_avals=(), *, ordered: bool = False, by_value: bool | None = None
) -> None:
    """Give the program a function to call, by the next number."""
    if by_value is None:
        by_value = em.platform != "cpu"
    em.host_callbacks.append(HostCallback(function, avals, tuple(out_avals), ordered, by_value))


def _converted(em, x: Value, aval) -> Value:
    return x if x.aval is aval else em.op("convert", aval, x)


def _carrier(aval):
    """The type in which a callback gets an array: NumPy has no packed narrow types, as XLA does."""
    element = element_type(aval.dtype)
    wide = _CARRIERS.get(element)
    return aval if wide is None else make_aval(aval.shape, np.dtype(wide), False)


def _row_major(aval) -> tuple:
    """The layout of NumPy's arrays; tokens have no axes."""
    return () if type(aval) is AbstractToken else tuple(range(aval.ndim - 1, -1, -1))


def _aliases(aliases: dict, results: int) -> list[str]:
    return [
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{out if results > 1 else ''}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for out, operand in aliases.items()
    ]
