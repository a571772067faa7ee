"""The clients of the platforms that programs run on, and their compile options."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gradix._api.devices import devices as _devices
from gradix._api.jit.jitted_function import clear_caches as _clear_caches
from gradix._base.config import config as _config
from gradix._base.listing import own_names as _own_names
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


# Nothing is cached; the decorator exists because programs call `get_backend.cache_clear()`.
@lru_cache(maxsize=0)
def get_backend(platform: Any = None) -> Any:
    """The client of a platform, by default of the default platform.

    Args:
        platform: the name of a platform, or a client, which is returned.

    Raises:
        RuntimeError: there is no such platform.

    Example:
        >>> from gradix.extend.backend import get_backend
        >>> get_backend("cpu").platform
        'cpu'
    """
    return platform if hasattr(platform, "compile_and_load") else _devices(platform)[0].client


def backends() -> dict:
    """The clients of the default platform and of the CPU, by the names of their platforms.

    Example:
        >>> from gradix.extend import backend
        >>> "cpu" in backend.backends()
        True
    """
    default, cpu = get_backend(), get_backend("cpu")
    return {cpu.platform: cpu, default.platform: default}


def backend_xla_version(platform: Any = None) -> int | None:
    """None; other clients than jaxlib's own would give the number of their version of XLA.

    Example:
        >>> from gradix.extend import backend
        >>> backend.backend_xla_version("cpu") is None
        True
    """
    return None


def get_default_device() -> Any:
    """The device of arrays for which no other device is given.

    Example:
        >>> import gradix
        >>> from gradix.extend import backend
        >>> backend.get_default_device() in gradix.devices()
        True
    """
    chosen = _config.jax_default_device
    return chosen if hasattr(chosen, "client") else _devices(chosen)[0]


def clear_in_memory_compilation_cache() -> None:
    """Drop all programs that were compiled in this process.

    Example:
        >>> import gradix
        >>> from gradix.extend import backend
        >>> f = gradix.jit(lambda x: x + 1)
        >>> _ = f(1.0)
        >>> backend.clear_in_memory_compilation_cache()
        >>> f(1.0)
        Array(2., dtype=float32, weak_type=True)
    """
    _clear_caches()


def clear_backends() -> None:
    """Drop the clients and all programs compiled for them; the next program starts new clients.

    Example:
        >>> import gradix
        >>> from gradix.extend import backend
        >>> f = gradix.jit(lambda x: x + 1)
        >>> f(1)                                # doctest: +SKIP
        Array(2, dtype=int32, weak_type=True)
        >>> backend.clear_backends()            # doctest: +SKIP
        >>> f(1)                                # doctest: +SKIP
        Array(2, dtype=int32, weak_type=True)
    """
    _xla.renew()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Let `clear_backends` clear a cache too.

    Args:
        cache: an object with a method `cache_clear()`, such as a function with
            `functools.lru_cache`.
        for_what: not used; what the cache is for.

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
    """Register a platform whose client `factory` makes, if the option `jax_platforms` names it.

    Args:
        name: the name of the platform.
        factory: a function without arguments that returns the client.
        priority, fail_quietly, experimental, make_topology, c_api: not used, because only platforms
            that are named are started.

    Raises:
        RuntimeError: a client has been started already.

    Example:
        >>> import gradix
        >>> from gradix.extend import backend
        >>> _ = gradix.devices()
        >>> backend.register_backend_factory("mine", lambda: None)
        Traceback (most recent call last):
            ...
        RuntimeError: register_backend_factory('mine') was called after a client had been started. ...
    """
    if _xla.is_started():
        raise RuntimeError(
            f"register_backend_factory({name!r}) was called after a client had been started. Call it "
            "before the first operation."
        )
    _plugins.factories[name] = factory


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """jaxlib's `CompileOptions`, which a client's `compile_and_load` takes.

    Args:
        num_replicas, num_partitions: the numbers of replicas and partitions of the program.
        device_assignment: the ids of the devices, of shape `(num_replicas, num_partitions)`; by
            default they count from 0.
        env_options_overrides: XLA's debug options by name.
        fdo_profile, detailed_logging: not used.
        backend: a platform or its client; by default the default platform.

    Raises:
        ValueError: the size of `device_assignment` is not `num_replicas * num_partitions`.

    Example:
        >>> get_compile_options(1, 1).num_partitions
        1
    """
    shape = (num_replicas, num_partitions)
    ids = np.arange(num_replicas * num_partitions) if device_assignment is None else np.asarray(device_assignment)
    if ids.size != num_replicas * num_partitions:
        raise ValueError(
            f"device_assignment must have num_replicas * num_partitions = {num_replicas} * "
            f"{num_partitions} devices, got {ids.size}."
        )
    options = _xla_options.options(compiler_options=env_options_overrides)
    platform = getattr(backend, "platform", backend) or _devices()[0].platform
    return _xla_options.build(options, ids.reshape(shape), platform, [True] if num_partitions > 1 else None)


__dir__ = _own_names(__name__)
