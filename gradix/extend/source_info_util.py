"""Where in the user's program something happened, and the names of the scopes around it."""

from gradix._api.inspect import current_scope as current_name_stack
from gradix._base.source import (
    SourcePlace as SourceInfo,
    current as current,
)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The place as `file:line (function)`."""
    return str(source_info)


__all__ = ["SourceInfo", "current", "current_name_stack", "summarize"]
