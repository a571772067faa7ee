"""with_sharding_constraint."""
from __future__ import annotations

from gradix._api.derivatives.autodiff import arrays
from gradix._base.tree import broadcast_prefix, tree_flatten as flatten
from gradix._core.sharding import PartitionSpec, Sharding


def with_sharding_constraint(x, shardings):
    """`x`, with the placement asked for.

    On one device every placement is that device's, so nothing moves; what is asked for is checked all the same.

    Args:
        x: arrays in a pytree.
        shardings: `Sharding`s in a pytree whose structure is a prefix of that of `x`.

    Raises:
        TypeError: a leaf is no sharding.
        ValueError: the structures differ, or a sharding does not fit an array.
        RuntimeError: a `PartitionSpec` is given and no mesh is in context.
        NotImplementedError: a sharding over several devices.

    Example:
        >>> import gradix
        >>> from gradix import lax
        >>> here = gradix.sharding.SingleDeviceSharding(gradix.devices()[0])
        >>> lax.with_sharding_constraint(gradix.numpy.ones(2), here)
        Array([1., 1.], dtype=float32)
    """
    leaves, tree = flatten(x)
    try:
        spread = broadcast_prefix(shardings, x, lambda s: s is None or isinstance(s, (Sharding, PartitionSpec)))
    except ValueError as e:
        raise ValueError("with_sharding_constraint shardings specification must be a tree prefix of the corresponding value. "
                         f"{e}") from None
    out = arrays("with_sharding_constraint", leaves, tree, "x")
    for leaf, sharding in zip(out, spread, strict=True):
        _check(leaf.aval.shape, sharding)
    return tree.unflatten(out)


def _check(shape: tuple, sharding) -> None:
    if sharding is None:
        raise ValueError("One of with_sharding_constraint arguments got sharding None which is not allowed. Pass "
                         "gradix.sharding.Sharding instances; leave the call out where nothing is asked for.")
    if isinstance(sharding, PartitionSpec):
        raise RuntimeError("with_sharding_constraint requires a non-empty mesh in context if you are passing "
                           f"`PartitionSpec`s to shardings, got {sharding}. Pass a Sharding, which names its devices.")
    if not isinstance(sharding, Sharding):
        raise TypeError("shardings leaf specifications are expected to be Sharding or PartitionSpec instances, got "
                        f"{sharding!r} of type {type(sharding).__name__}. For a device write "
                        "gradix.sharding.SingleDeviceSharding(device).")
    sharding.check_compatible_aval(shape)
    if len(sharding.device_set) > 1:
        raise NotImplementedError(f"with_sharding_constraint over {len(sharding.device_set)} devices is not possible yet: "
                                  f"{sharding}. Shardings of one device are.")
