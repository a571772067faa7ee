"""The clients of the platforms that programs run on."""
from __future__ import annotations

from gradix._api.devices import devices as _devices
from gradix._api.jit.jit import clear_caches as _clear_caches
from gradix._base.config import config as _config

__all__ = ["backend_xla_version", "backends", "clear_in_memory_compilation_cache", "get_backend", "get_default_device"]


def get_backend(platform=None):
    """The client of a platform, by default of the fastest present.

    Raises:
        RuntimeError: there is no such platform.

    Example:
        >>> from gradix.extend.backend import get_backend
        >>> get_backend("cpu").platform
        'cpu'
    """
    return platform if hasattr(platform, "compile_and_load") else _devices(platform)[0].client


def backends() -> dict:
    """The clients by the names of their platforms."""
    default, cpu = get_backend(), get_backend("cpu")
    return {cpu.platform: cpu, default.platform: default}


def backend_xla_version(platform=None) -> int | None:
    """The number of XLA's version in a plug-in; None where the client is jaxlib's own."""
    return None


def get_default_device():
    """The device that arrays come to lie on where nothing says otherwise."""
    chosen = _config.jax_default_device
    return chosen if hasattr(chosen, "client") else _devices(chosen)[0]


def clear_in_memory_compilation_cache() -> None:
    """Forget what was compiled in this process."""
    _clear_caches()
