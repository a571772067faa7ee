"""The PJRT client, which is started when a device is first used, and its devices."""

from __future__ import annotations

import functools
import os
import platform
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

from jaxlib import _jax
from jaxlib.version import __version__ as jaxlib_version

from gradix._base import config, source
from gradix._base.lazy import lazy_module
from gradix._runtime.machine import keep_freed_memory

# These modules load slowly and are needed for compilation only.
hashlib, xc = lazy_module("hashlib"), lazy_module("jaxlib.xla_client")
ctypes: Any = lazy_module("ctypes")
_plugins, advice = lazy_module("gradix._runtime.xla_plugins"), lazy_module("gradix._base.advice")

RuntimeFailure = _jax.JaxRuntimeError
Device = _jax.Device

config.define("gradix_memory_stacks", False)
config.on_update("gradix_memory_stacks", _jax.set_tracebacks_enabled)
_options = config.state
_client: Any = None
_lock = threading.Lock()
_settings: dict[str, Any] = {}


def configure(**settings) -> None:
    """Set arguments of the CPU client (`num_devices`, `distributed_client`, ...) before it starts.

    Raises:
        RuntimeError: the client has been started, after which its devices cannot change.
    """
    if _client is not None:
        raise RuntimeError(
            f"the XLA client has already started, so {', '.join(settings)} cannot be set. Set the number "
            "of devices and call gradix.distributed.initialize before the first computation."
        )
    _settings.update(settings)


def is_started() -> bool:
    """Whether the client has been started."""
    return _client is not None


def client():
    """The PJRT client, started at first use."""
    global _client
    if _client is None:
        with _lock:
            if _client is None:
                if _is_forked:
                    _refuse()
                keep_freed_memory()
                # With tracebacks every execution leaks memory (docs/design/running.md).
                _jax.set_tracebacks_enabled(_options.gradix_memory_stacks)
                _client = _started()
    return _client


def _started():
    """A new client of the default platform; those of other platforms start when they are used."""
    if not _options.jax_platforms and not has_driver():
        return _cpu_client()
    found = _plugins.installed()
    names = _plugins.wanted(found)
    if names[0] == "cpu":
        return _cpu_client()
    joined = (
        {
            "distributed_client": _settings["distributed_client"],
            "node_id": _settings["node_id"],
            "num_nodes": _settings["num_nodes"],
        }
        if "distributed_client" in _settings
        else {}
    )
    try:
        return _plugins.start(found[names[0]], **joined)
    except RuntimeError as error:
        if _options.jax_platforms:
            raise
        advice.tell(f"{error} Programs will run on the CPU.", RuntimeWarning, source.current())
        return _cpu_client()


def _warn_of_fork() -> None:
    if _client is not None:
        advice.tell(
            "os.fork() in a process that has used XLA: the new process can compute with NumPy, but not with "
            "compiled functions, whose threads stay behind. Start processes by "
            'multiprocessing.get_context("spawn"), or fork before the first computation.',
            RuntimeWarning,
            source.current(),
        )


def _leave_to_parent() -> None:
    """In a forked process: forget the client, which waits for threads that are not here."""
    global _client, _beside, _lock, _is_forked
    if _client is None:
        return
    # whatever waits for its threads when it is freed must never be
    left = [_client, _beside, *executables]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(left))
    _lock, _is_forked = threading.Lock(), True
    _client = _beside = None
    _places.clear()
    for forget in _on_renewal:
        forget()


def _refuse(*_, **__):
    raise RuntimeError(
        "This process was made by os.fork() from one that had used XLA, and XLA's threads are not copied: a "
        "compiled function would wait for them for ever. Start processes by "
        'multiprocessing.get_context("spawn"), or fork before the first computation.'
    )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_warn_of_fork, after_in_child=_leave_to_parent)
_is_forked = False
# all compiled programs that are alive
executables: weakref.WeakSet = weakref.WeakSet()


@functools.cache
def has_driver() -> bool:
    """Whether NVIDIA's driver is installed."""
    return any(os.path.exists(p) for p in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"))


def _cpu_client():
    return xc.make_cpu_client(asynchronous=False, **{**_asked_devices(), **_settings})


def cpu_devices() -> list:
    """The devices of the CPU, even if another platform is the default one."""
    global _beside
    default = client()
    if default.platform == "cpu":
        return default.devices()
    with _lock:
        if _beside is None:
            _beside = xc.make_cpu_client(asynchronous=False, **_asked_devices())
    return _beside.devices()


_beside: Any = None


def devices_of(name: str) -> list:
    """The devices of a platform.

    Raises:
        RuntimeError: there is no platform of this name.
    """
    found = devices()
    if name in (found[0].platform, platform_of(found[0])):
        return found
    if name == "cpu":
        return cpu_devices()
    raise RuntimeError(
        f"Unknown backend: {name!r} requested, but no platforms that are instances of {name} are "
        f"present. Platforms present are: {found[0].platform}. `python -m gradix doctor` says what is missing."
    )


def default_device():
    """The device of the option `jax_default_device`, which may name a platform; None without it."""
    chosen = _options.jax_default_device
    return devices_of(chosen)[0] if isinstance(chosen, str) else chosen


def _asked_devices() -> dict[str, int]:
    """The number of CPU devices as an argument of the client: by the option, or by XLA's flag."""
    asked = _options.jax_num_cpu_devices
    if asked is None or asked < 1:
        found = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        asked = int(found[-1]) if found else 0
    return {"num_devices": asked} if asked else {}


def renew() -> None:
    """Drop the client, so that the next use of a device starts a new one.

    No array may be in use on its devices any more.
    """
    global _client, _beside
    with _lock:
        _client = _beside = None
        _places.clear()
        for forget in _on_renewal:
            forget()


def on_renewal(forget: Callable[[], Any]) -> None:
    """Call `forget()` whenever the client is dropped, to drop its devices and programs too."""
    _on_renewal.append(forget)


_on_renewal: list[Callable[[], Any]] = []


@functools.lru_cache(None)
def fingerprint() -> str:
    """A digest of what compiled code depends on besides the program: jaxlib, the CPU, XLA's flags.

    It does not start the client.
    """
    machine = f"{platform.system()} {platform.machine()}"
    parts = [jaxlib_version, str(xc._version), machine, os.environ.get("XLA_FLAGS", ""), _cpu()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _cpu() -> str:
    """The model and features of the CPU."""
    try:
        # The first processor is enough; there may be hundreds.
        with open("/proc/cpuinfo", "rb", buffering=0) as f:
            lines = f.read(1 << 14).decode(errors="replace").split("\n\n", 1)[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join([s for s in lines if s.startswith(("model name", "flags", "Features", "CPU part"))])


def platform_of(device) -> str:
    """The platform for which programs on a device are lowered: "cpu", "cuda", "rocm" or "tpu".

    A GPU of either vendor calls its own platform "gpu".
    """
    name = device.platform
    if name != "gpu":
        return name
    return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"


def default_platform() -> str:
    """The platform of the first device. Where only the CPU is possible, no client is started."""
    if _client is None and not _options.jax_platforms and not has_driver():
        return "cpu"
    return platform_of(client().local_devices()[0])


def is_host_apart() -> bool:
    """Whether the memory of the first device is not the host's, so that reading it takes a copy."""
    return _client is not None and _client.platform != "cpu"


def devices() -> list:
    """The devices of all processes."""
    return client().devices()


def local_devices() -> list:
    """The devices of this process."""
    return client().local_devices()


class _Sharding(_jax.SingleDeviceSharding):
    """The sharding of an array on one device, with the two members that jaxlib's C++ code reads."""

    memory_kind = property(lambda self: self._memory_kind)

    def _to_xla_hlo_sharding(self, ndim):
        return xc.HloSharding.replicate()


class Place:
    """jaxlib's objects for transfers to a device and programs on it, which are made once."""

    __slots__ = ("device", "list", "sharding", "device_list", "handlers")

    def __init__(self, device):
        self.device, self.list = device, [device]
        self.sharding, self.device_list = _Sharding(device), _jax.DeviceList((device,))
        self.handlers: dict = {}


_places: dict = {}


def place(device) -> Place:
    """The `Place` of a device; None is the first device of this process."""
    found = _places.get(device)
    if found is None:
        where = client().local_devices()[0] if device is None else device
        found = _places[device] = _places.get(where) or _places.setdefault(where, Place(where))
    return found
