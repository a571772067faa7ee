"""How many threads may run at once."""

from __future__ import annotations

import functools
import os


@functools.lru_cache(None)
def cores() -> int:
    """The processors that this process may use, which is how many threads XLA:CPU gives large loops."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
