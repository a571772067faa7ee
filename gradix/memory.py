"""Memories of devices and of the host, as places for `device_put`."""

from gradix._core.sharding import MemorySpace as Space

__all__ = ["Space"]
