"""Shardings in the form that XLA uses, and their serialization as bytes."""

from __future__ import annotations

from typing import Any

from gradix._base.listing import own_names as _own_names
from gradix._core.named_sharding import GSPMDSharding as GSPMDSharding
from gradix._runtime import xla_partitioning as _partitioning

__all__ = [
    "GSPMDSharding",
    "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The `OpSharding` of jaxlib that was serialized to the given bytes.

    Args:
        sharding: the bytes of a protocol buffer.

    Example:
        >>> from gradix.extend import sharding
        >>> type(sharding.get_op_sharding_from_serialized_proto(b"")).__name__
        'OpSharding'
    """
    return _partitioning.op_sharding_from(sharding)


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The `HloSharding` of jaxlib that was serialized to the given bytes.

    Args:
        sharding: the bytes that `get_serialized_proto_from_hlo_sharding` returned.

    Example:
        >>> from gradix.extend import sharding
        >>> sharding.get_hlo_sharding_from_serialized_proto(b"")
        {replicated}
    """
    return _partitioning.hlo_sharding_from(sharding)


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The `HloSharding` of jaxlib serialized to bytes, which other processes can read.

    Args:
        sharding: an `HloSharding`.

    Example:
        >>> from gradix.extend import sharding
        >>> whole = sharding.get_hlo_sharding_from_serialized_proto(b"")
        >>> whole, sharding.get_serialized_proto_from_hlo_sharding(whole)
        ({replicated}, b'')
    """
    return sharding.to_proto().SerializeToString()


__dir__ = _own_names(__name__)
