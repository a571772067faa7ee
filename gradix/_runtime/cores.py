"""The number of threads that can run at the same time."""

from __future__ import annotations

import functools
import os


@functools.lru_cache(None)
def cores() -> int:
    """The number of processors this process may use, and of XLA:CPU's threads for large loops."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
