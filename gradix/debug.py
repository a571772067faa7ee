"""Looking into traced code: printing and calling back with the values it computes."""

from gradix._api.callbacks import (
    debug_callback as callback,
    debug_print as print,
)
from gradix._core.effects import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
)

__all__ = ["DebugEffect", "OrderedDebugEffect", "callback", "print"]
