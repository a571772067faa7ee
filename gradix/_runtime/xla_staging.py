"""Memory that a program reads as an argument again and again: values are written to it without a transfer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._runtime.xla_buffers import is_at, physical, put

_ALIGNMENT = 64
_PLAIN = frozenset(map(np.dtype, ("bool", "int32", "int64", "float32", "float64")))


def staging(avals, are_numbers, device) -> Callable[[], tuple] | None:
    """What makes pairs of a view to write to and the device buffer over the same memory, one pair per type.

    A view of an array is a NumPy array; of a Python number, a memoryview of one item, or two for a
    complex number: writing to it neither warns nor loses digits, and raises ValueError for an
    integer too large.

    Args:
        are_numbers: for each aval, whether Python numbers will be written.

    Returns:
        A function that makes them, as one flat tuple (view, buffer, view, buffer, ...); None where
        the device does not read the host's memory.
    """

    def make() -> tuple:
        found: list[Any] = []
        for aval, is_number in zip(avals, are_numbers):
            view = _aligned(aval)
            found += _as_number(view) if is_number else view, put(view, aval, device, owned=True)
            if not is_at(found[-1], view):
                raise NotImplementedError
        return tuple(found)

    try:
        make()
    except NotImplementedError:
        return None
    return make


def _aligned(aval) -> np.ndarray:
    """Memory that XLA takes as it is."""
    kind = physical(aval)
    size = aval.size * kind.dtype.itemsize
    raw = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % _ALIGNMENT
    return raw[start : start + size].view(kind.dtype).reshape(kind.shape)


def _as_number(view: np.ndarray) -> memoryview:
    flat = view.reshape(1)
    flat = flat.view(flat.real.dtype)  # the two parts of a complex number
    if flat.dtype not in _PLAIN:
        raise NotImplementedError
    return memoryview(flat)  # type: ignore[arg-type]
