"""The machine that this process runs on: its processors, and how much freed memory is kept.

By default the C library returns the memory of large arrays to the system as soon as they are freed.
A program that makes results of the same sizes in every step would then wait in every step until
the system has cleared new pages.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from gradix._base import config

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # These are parameters of mallopt(3).
_LARGEST_ON_HEAP = 1 << 25  # mallopt takes at most so many bytes.


def _checked(name: str, value) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError(
            f"{name} must be an integer from 0 to 2**31 - 1, a number of bytes, where 0 does not change "
            f"the C library's behaviour; got {value!r}."
        )
    return value


config.define("gradix_kept_memory", 1 << 29, _checked)


def keep_freed_memory() -> None:
    """Let glibc keep up to `gradix_kept_memory` bytes, unless the user has configured it."""
    size = config.state.gradix_kept_memory
    if not size or not sys.platform.startswith("linux") or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD")):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_ON_HEAP)
        mallopt(_TRIM_THRESHOLD, size)


@functools.lru_cache(None)
def cores() -> int:
    """The number of processors this process may use, and of XLA:CPU's threads for large loops."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
