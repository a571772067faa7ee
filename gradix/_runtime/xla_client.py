"""The PJRT client and its devices, started at the first use of one."""
from __future__ import annotations

import functools
import os
import platform
import threading
from typing import Any

from jaxlib import _jax
from jaxlib.version import __version__ as jaxlib_version

from gradix._base.lazy import lazy_module

hashlib, xc = lazy_module("hashlib"), lazy_module("jaxlib.xla_client")      # slow to import, needed to compile

RuntimeFailure = _jax.JaxRuntimeError
Device = _jax.Device

_client: Any = None
_lock = threading.Lock()
_settings: dict[str, Any] = {}


def configure(**settings) -> None:
    """Set arguments of the CPU client (`num_devices`, `distributed_client`, ...) before it starts.

    Raises:
        RuntimeError: when the client already runs, as its devices cannot change any more.
    """
    if _client is not None:
        raise RuntimeError("the XLA client has already started; set the number of devices and the distributed "
                           "service before the first computation.")
    _settings.update(settings)


def is_started() -> bool:
    return _client is not None


def client():
    """The PJRT client, started at first use."""
    global _client
    if _client is None:
        with _lock:
            if _client is None:
                _jax.set_tracebacks_enabled(False)          # with it every execution leaks some 60 bytes
                _client = xc.make_cpu_client(asynchronous=False, **_settings)
    return _client


@functools.lru_cache(None)
def fingerprint() -> str:
    """What compiled code depends on besides the program: jaxlib, the CPU and XLA's flags. Starts no client."""
    machine = f"{platform.system()} {platform.machine()}"
    parts = [jaxlib_version, str(xc._version), machine, os.environ.get("XLA_FLAGS", ""), _cpu()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _cpu() -> str:
    """The CPU's model and features."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as f:     # the first of perhaps hundreds is enough
            lines = f.read(1 << 14).decode(errors="replace").split("\n\n", 1)[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join([s for s in lines if s.startswith(("model name", "flags", "Features", "CPU part"))])


def devices() -> list:
    """All devices, of every process."""
    return client().devices()


def local_devices() -> list:
    """The devices of this process."""
    return client().local_devices()


class _Sharding(_jax.SingleDeviceSharding):
    """A whole array on one device, with the two members jaxlib's C++ asks for."""

    memory_kind = property(lambda self: self._memory_kind)

    def _to_xla_hlo_sharding(self, ndim):
        return xc.HloSharding.replicate()


class Place:
    """What putting on and running on one device needs, made once."""

    __slots__ = ("device", "list", "sharding", "device_list", "handlers")

    def __init__(self, device):
        self.device, self.list = device, [device]
        self.sharding, self.device_list = _Sharding(device), _jax.DeviceList((device,))
        self.handlers: dict = {}


_places: dict = {}


def place(device) -> Place:
    found = _places.get(device)
    if found is None:
        where = client().local_devices()[0] if device is None else device
        found = _places[device] = _places.get(where) or _places.setdefault(where, Place(where))
    return found
