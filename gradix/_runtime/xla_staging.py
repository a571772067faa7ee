"""Host memory that programs read as arguments, so that values need not be sent to the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._runtime.xla_buffers import aligned, is_at, physical, put

_PLAIN = frozenset(map(np.dtype, ("bool", "int32", "int64", "float32", "float64")))


def staging(avals, are_numbers, device) -> Callable[[], tuple] | None:
    """A function that makes pairs of a writable view and the device buffer over the same memory.

    The view of an array is a NumPy array. That of a Python number is a memoryview of one item, or
    of two for a complex number: writing to it rounds as C does and never warns, and it raises
    ValueError for integers that are too large.

    Args:
        avals: the type of each pair.
        are_numbers: for each aval, whether Python numbers will be written.
        device: the device of the buffers.

    Returns:
        A function that returns a flat tuple (view, buffer, view, buffer, ...), or None if the device
        does not read the host's memory.
    """

    def make() -> tuple:
        found: list[Any] = []
        for aval, is_number in zip(avals, are_numbers):
            kind = physical(aval)
            view = aligned(kind.shape, kind.dtype)
            found += _as_number(view) if is_number else view, put(view, aval, device, owned=True)
            if not is_at(found[-1], view):
                raise NotImplementedError
        return tuple(found)

    try:
        make()
    except NotImplementedError:
        return None
    return make


def _as_number(view: np.ndarray) -> memoryview:
    flat = view.reshape(1)
    flat = flat.view(flat.real.dtype)  # A complex number becomes its two parts.
    if flat.dtype not in _PLAIN:
        raise NotImplementedError
    return memoryview(flat)  # type: ignore[arg-type]
