"""The clients of the platforms that programs run on."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gradix._api.devices import devices as _devices
from gradix._api.jit.jitted_function import clear_caches as _clear_caches
from gradix._base.config import config as _config
from gradix._runtime import xla_client as _xla, xla_options as _xla_options, xla_plugins as _plugins

__all__ = [
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "register_backend_cache",
    "register_backend_factory",
]


# Nothing is kept; programs call its `cache_clear` after they set flags.
@lru_cache(maxsize=0)
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


def clear_backends() -> None:
    """Forget the clients and all that was compiled for them; the next program starts new ones."""
    _xla.renew()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Let `clear_backends` empty a cache: an object with `cache_clear()`, as `functools.lru_cache` gives.

    Example:
        >>> import functools
        >>> @functools.lru_cache
        ... def executable(name):
        ...     return object()
        >>> register_backend_cache(executable, "executables by name")
    """
    _xla.on_renewal(cache.cache_clear)


def register_backend_factory(
    name: str,
    factory: Callable[[], Any],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Callable | None = None,
    c_api: Any = None,
) -> None:
    """Bring a platform: `factory()` makes its client when the platform is asked for by `jax_platforms`.

    Args:
        priority, fail_quietly, experimental, make_topology, c_api: accepted; only platforms that
            are asked for are started.

    Raises:
        RuntimeError: clients run already.
    """
    if _xla.is_started():
        raise RuntimeError(
            f"register_backend_factory({name!r}) comes too late: clients run already. Call it before "
            "the first operation."
        )
    _plugins.factories[name] = factory


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment=None,
    env_options_overrides: dict | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend=None,
):
    """What a client's `compile_and_load` takes beside a module: jaxlib's `CompileOptions`, as used here.

    Args:
        device_assignment: numbers of devices, of shape `(num_replicas, num_partitions)`; by default
            the first ones.
        env_options_overrides: XLA's options by name.

    Example:
        >>> get_compile_options(1, 1).num_partitions
        1
    """
    shape = (num_replicas, num_partitions)
    ids = (
        np.arange(num_replicas * num_partitions)
        if device_assignment is None
        else np.asarray(device_assignment)
    )
    if ids.size != num_replicas * num_partitions:
        raise ValueError(
            f"device_assignment has {ids.size} devices for num_replicas={num_replicas} times "
            f"num_partitions={num_partitions}."
        )
    options = _xla_options.options(compiler_options=env_options_overrides)
    platform = getattr(backend, "platform", backend) or _devices()[0].platform
    return _xla_options.build(
        options, ids.reshape(shape), platform, [True] if num_partitions > 1 else None
    )
