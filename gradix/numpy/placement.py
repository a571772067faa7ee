"""Where arrays are put: the `device` and `out_sharding` arguments."""
from __future__ import annotations

from gradix._core import array as _arrays
from gradix._core.operators import Array


def place(x: Array, device, out_sharding) -> Array:
    """`x` on a device or under a sharding; traced arrays stay where the compiled program puts them."""
    target = device if device is not None else out_sharding
    if target is None or type(x) is not _arrays.ArrayImpl:
        return x
    return _arrays._device.put(x, target)
