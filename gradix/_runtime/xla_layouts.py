"""The order in which the axes of an array lie in a device's memory, where it is not row-major order."""

from __future__ import annotations

from typing import Any

from gradix._base.bounded import BoundedCache, on_clear
from gradix._core.array_layouts import ATTRIBUTE as LAYOUT, AutoLayout
from gradix._core.aval import make_aval
from gradix._core.named_sharding import assignment_of
from gradix._core.sharding import Sharding
from gradix._runtime.pending import real
from gradix._runtime.xla_client import on_renewal
from gradix._runtime.xla_program import Executable, On, compile
from gradix._runtime.xla_sharded import part_of
from gradix._stablehlo.types import tensor_type

Order = tuple[int, ...] | None

# Programs that copy arrays from one order to another.
_copiers: BoundedCache[tuple, Executable] = BoundedCache(256, drop=1)
on_clear(_copiers.clear)
on_renewal(_copiers.clear)


def layout_modes(orders) -> dict[int, dict[str, str]]:
    """The attributes of those arguments or results, by number, that are not in row-major order."""
    return {i: {LAYOUT: m} for i, o in enumerate(orders) if (m := _mode(o)) is not None}


def _mode(order: Order | AutoLayout) -> str | None:
    """XLA's name of an order for an argument or a result; None for row-major order."""
    if order is None:
        return None
    if isinstance(order, AutoLayout):
        return "auto"
    return "{" + ",".join(map(str, reversed(order))) + "}"


def _order(native) -> Order:
    """The order of axes, slowest first, in jaxlib's description of a layout."""
    order = tuple(reversed(native._xla_layout().minor_to_major()))
    return None if order == tuple(range(len(order))) else order


def orders_of(executable: Executable) -> tuple[list[Order], list[Order]]:
    """The orders in which a program takes its arguments and gives its results."""
    loaded = executable.loaded
    return [_order(x) for x in loaded.get_parameter_layouts()], [_order(x) for x in loaded.get_output_layouts()]


def laid_out(buffer, aval, sharding: Sharding, have: Order, want: Order) -> Any:
    """A copy of a buffer on the same devices, whose axes lie in another order.

    Each device copies its own part.

    Args:
        buffer: the buffer, over one device or several.
        aval: the type of the array.
        sharding: how it is divided.
        have, want: the order of its axes, and that of the copy's.
    """
    if have == want:
        return buffer
    key = aval.plain, sharding, have, want
    copier = _copiers.get(key)
    if copier is None:
        copier = _copiers.keep(key, _copier(aval.plain, sharding, have, want))
    return copier.run([real(buffer)])[0]


def _copier(aval, sharding: Sharding, have: Order, want: Order) -> Executable:
    """A program that each device runs on its part, so that nothing of it is divided."""
    devices = tuple(assignment_of(sharding))
    kind = tensor_type(make_aval(part_of(aval, sharding).shape, aval.dtype))
    given, made = [f' {{{LAYOUT} = "{m}"}}' if (m := _mode(o)) else "" for o in (have, want)]
    head = f"module @laid_out attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {len(devices)} : i32}} {{"
    text = f'{head}\nfunc.func public @main(%x: {kind}{given}) -> ({kind}{made}) {{\n"func.return"(%x) : ({kind}) -> ()'
    return compile(text + "\n}\n}\n", [aval], [aval], on=On(devices, None, [sharding], are_apart=True))
