"""Advice that JAX would not give: warnings in our own name, lines of the log where gradix stands in for JAX."""

from __future__ import annotations

import atexit
import sys
import warnings

from gradix._base import events
from gradix._base.source import SourcePlace

FULL = 3  # how many functions get the full text; the others get a line each
_NAMED = 8  # how many the summary at exit names
_told: list[str] = []
_to_log: list[bool] = []


def to_log(on: bool) -> None:
    """Tell the log, never `warnings`: suites of libraries written for JAX make errors of warnings."""
    _to_log[:] = [True] * on


def tell(text: str, category: type[Warning], at: SourcePlace) -> None:
    """Warn at a line of the user's."""
    if _to_log:
        events.warn("advice", "%s:%s: %s", at.file, at.line, text)
    else:
        warnings.warn_explicit(text, category, at.file, at.line)


def tell_of_function(
    name: str, text: str, brief: str, category: type[Warning], at: SourcePlace
) -> None:
    """As `tell`, of one of many functions: after the first few `brief` alone, and their number at exit."""
    _told.append(name)
    if len(_told) == FULL + 1 and not _to_log:
        atexit.register(_summarize, category)
    tell(text if len(_told) <= FULL else brief, category, at)


def forget() -> None:
    """Begin counting anew."""
    _told.clear()
    atexit.unregister(_summarize)


def _summarize(category: type[Warning]) -> None:
    if not _told or _to_log:
        return
    names = list(dict.fromkeys(_told))
    listed = ", ".join(names[:_NAMED]) + (
        f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    )
    warnings.warn_explicit(
        f"{len(_told)} functions were traced again and again, each trace compiled anew: {listed}. f.stats().reasons "
        "tells why.",
        category,
        sys.argv[0] or "gradix",
        0,
    )
