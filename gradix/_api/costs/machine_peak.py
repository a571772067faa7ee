"""What this machine reaches at most: operations of products, and bytes read and written, in a second."""

from __future__ import annotations

import functools
import time
from typing import NamedTuple

import numpy as np

from gradix._api.jit.jit import jit
from gradix._core.array import as_array
from gradix._ops.arithmetic import add
from gradix._ops.dot import dot_general

_SIZE = 768  # rows of the product; a larger one is no quicker
_LONG = 1 << 22  # elements of the sum; memory of longer ones is new to the process each time
_CALLS = 5


class Peak(NamedTuple):
    """Operations and bytes in a second."""

    flops: float
    bytes: float

    def share(self, flops: float, nbytes: float, seconds: float) -> tuple[float, str]:
        """The part of the peak that some work reached, and which of the two it came closer to.

        Work on values in caches can move more bytes than memory gives, so it may exceed 1.
        """
        if not seconds:
            return 0.0, ""
        arithmetic, memory = flops / seconds / self.flops, nbytes / seconds / self.bytes
        return (arithmetic, "arithmetic") if arithmetic >= memory else (memory, "memory")


@functools.lru_cache(1)
def measured() -> Peak:
    """The peak, measured once in a process by compiled float32 programs."""
    square = as_array(np.ones((_SIZE, _SIZE), np.float32))
    row = as_array(np.ones(_LONG, np.float32))
    product = jit(lambda x: dot_general(x, x, (((1,), (0,)), ((), ()))))
    total = jit(lambda x: add(x, x))
    return Peak(2 * _SIZE**3 / _least(product, square), 2 * row.nbytes / _least(total, row))


def _least(function, x) -> float:
    """The least seconds of some calls after a first one."""
    function(x).block_until_ready()
    least = float("inf")
    for _ in range(_CALLS):
        start = time.perf_counter()
        function(x).block_until_ready()
        least = min(least, time.perf_counter() - start)
    return least
