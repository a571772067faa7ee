"""Printing from traced code, and reports of what is traced and compiled when, and why."""

from gradix._api.callbacks import debug_callback as callback, debug_log as log, debug_print as print
from gradix._api.jit.explain import Explanation as Explanation, explain as explain
from gradix._api.visualize import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
from gradix._base.events import Event as Event
from gradix._base.lazy import on_demand
from gradix._core.effects import DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect

with on_demand(globals()):
    from gradix._api.breakpoints import breakpoint as breakpoint
    from gradix._api.values import values as values

__all__ = [
    "DebugEffect",
    "Event",
    "Explanation",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "explain",
    "log",
    "print",
    "values",
]
