"""The memories of devices and of the host, to which `device_put` can move arrays."""

from gradix._core.sharding import MemorySpace as Space

__all__ = ["Space"]
