"""Where arrays are put: the `device` and `out_sharding` arguments."""
from __future__ import annotations

from gradix._api.placing import device_put
from gradix._core.operators import Array
from gradix._core.trace import Tracer


def place(x: Array, device, out_sharding) -> Array:
    """`x` on a device or under a sharding; traced arrays stay where the compiled program puts them."""
    target = device if device is not None else out_sharding
    return x if target is None or isinstance(x, Tracer) else device_put(x, target)
