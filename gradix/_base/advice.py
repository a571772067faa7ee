"""Advice that JAX does not give: as warnings, or as lines of the log where gradix replaces JAX."""

from __future__ import annotations

import atexit
import sys
import warnings

from gradix._base import events
from gradix._base.source import SourcePlace

FULL = 3  # the number of functions that get the full text; the others get a line each
_NAMED = 8  # the number of functions that the summary at exit names
_told: list[str] = []
_to_log: list[bool] = []


def to_log(on: bool) -> None:
    """Write advice to the log only: test suites of libraries for JAX turn warnings into errors."""
    _to_log[:] = [True] * on


def tell(text: str, category: type[Warning], at: SourcePlace) -> None:
    """Warn at a line of the user's program."""
    if _to_log:
        events.warn("advice", "%s:%s: %s", at.file, at.line, text)
    else:
        warnings.warn_explicit(text, category, at.file, at.line)


def tell_of_function(name: str, text: str, brief: str, category: type[Warning], at: SourcePlace) -> None:
    """Warn about a function; after the first few, only with `brief`, and with a summary at exit."""
    _told.append(name)
    if len(_told) == FULL + 1 and not _to_log:
        atexit.register(_summarize, category)
    tell(text if len(_told) <= FULL else brief, category, at)


def forget() -> None:
    """Begin to count functions again."""
    _told.clear()
    atexit.unregister(_summarize)


def _summarize(category: type[Warning]) -> None:
    if not _told or _to_log:
        return
    names = list(dict.fromkeys(_told))
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    warnings.warn_explicit(
        f"{len(_told)} functions were traced many times, and each trace was compiled anew: {listed}. "
        "f.stats().reasons gives the reasons.",
        category,
        sys.argv[0] or "gradix",
        0,
    )
