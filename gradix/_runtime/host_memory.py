"""How much freed memory the process keeps for its next arrays.

The C library gives the memory of large arrays back to the system as soon as they are freed; a
program that makes results of the same sizes in every step then waits in every step for pages that
the system clears.
"""

from __future__ import annotations

import ctypes
import os
import sys

from gradix._base import config

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_LARGEST_ON_HEAP = 1 << 25  # bytes, the most that mallopt takes


def _checked(name: str, value) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError(
            f"{name} must be a number of bytes from 0, which leaves the C library as it is, to 2**31 - "
            f"1; got {value!r}."
        )
    return value


config.define("gradix_kept_memory", 1 << 29, _checked)


def keep_freed_memory() -> None:
    """Ask the C library to keep up to `gradix_kept_memory` bytes, unless it is another one or the user has set it."""
    size = config.state.gradix_kept_memory
    if (
        not size
        or not sys.platform.startswith("linux")
        or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")
    ):
        return
    if any(
        name in os.environ
        for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD")
    ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_ON_HEAP)
        mallopt(_TRIM_THRESHOLD, size)
