"""Where in the user's program something happened, and the names of the scopes around it."""

from gradix._base.source import (
    SourcePlace as SourceInfo,
    current as current,
    current_scope as current_name_stack,
    exclude as register_exclusion,
)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The place as `file:line (function)`."""
    return str(source_info)


__all__ = ["SourceInfo", "current", "current_name_stack", "register_exclusion", "summarize"]
