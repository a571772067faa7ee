"""Printing from traced code, and reports of what is traced and compiled when, and why."""

from gradix._api.callbacks import (
    debug_callback as callback,
    debug_log as log,
    debug_print as print,
)
from gradix._api.jit.explain import (
    Explanation as Explanation,
    explain as explain,
)
from gradix._api.visualize import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
from gradix._base.events import (
    Event as Event,
)
from gradix._core.effects import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
)

__all__ = [
    "DebugEffect",
    "Event",
    "Explanation",
    "OrderedDebugEffect",
    "callback",
    "explain",
    "log",
    "print",
]
