"""Placing arrays, by the arguments `device` and `out_sharding`."""

from __future__ import annotations

from gradix import lax
from gradix._api.constraints import asked, of_rank, reshard, with_sharding_constraint
from gradix._api.placing import device_put
from gradix._core.named_sharding import NamedSharding
from gradix._core.operators import Array
from gradix._core.sharding import PartitionSpec
from gradix._core.trace import Tracer, is_staging


def place(x: Array, device, out_sharding) -> Array:
    """`x` on a device or under a sharding; a traced `x` is divided within the program.

    Raises:
        ValueError: both are given.
    """
    if device is not None and out_sharding is not None:
        raise ValueError(
            f"Only one of device and out_sharding may be given, got {device=} and {out_sharding=}. "
            "Write device= for where the array lies, or out_sharding= for how it is divided."
        )
    if device is None and out_sharding is not None and (isinstance(x, Tracer) or is_staging()):
        return reshard(x, asked("out_sharding", out_sharding, (x,)))
    spec = getattr(out_sharding, "spec", out_sharding)
    if device is None and getattr(spec, "unreduced", None):
        return reshard(x, out_sharding)
    if device is None and isinstance(out_sharding, (NamedSharding, PartitionSpec)):
        out_sharding = of_rank(asked("out_sharding", out_sharding, (x,)), x.aval.ndim)
    target = device if device is not None else out_sharding
    if isinstance(device, NamedSharding) and (isinstance(x, Tracer) or is_staging()):
        return with_sharding_constraint(lax.stage(x), device)
    return x if target is None or isinstance(x, Tracer) else device_put(x, target)
