"""The key of a compiled program on disk: everything its machine code depends on."""

from __future__ import annotations

import functools
import os

from gradix._base.lazy import lazy_module
from gradix._runtime import xla
from gradix._runtime.machine import cores
from gradix._version import __version__

hashlib = lazy_module("hashlib")

_FORMAT = 1


def key_of(text: str, options: xla.Options, devices: tuple = ()) -> str:
    """The name of a program's cache entry.

    Two programs share an entry only if their text, the compiler's options, the device, jaxlib and
    the machine's instructions agree. Anything in doubt is part of the key, because a miss costs
    only a compilation, but a wrong hit gives a wrong result.

    Args:
        text: the program in StableHLO.
        options: the compiler options.
        devices: the devices it will run on, in the order of the program's partitions; by default
            the first one.
    """
    device = devices[0] if devices else xla.local_devices()[0]
    h = hashlib.blake2b(_process_part(), digest_size=20)
    asked = xla.options_key(options, device.platform)
    h.update(f"{device.platform} {device.device_kind} {device.id}\n{asked}\n".encode())
    if devices:
        h.update(f"{[(d.id, d.process_index) for d in devices]}\n".encode())
    h.update(text.encode())
    return h.hexdigest()


@functools.lru_cache(None)
def _process_part() -> bytes:
    """The part of the key that does not change within a process."""
    platform = xla.client()
    parts = [
        str(_FORMAT),
        __version__,
        xla.fingerprint(),
        platform.platform,
        platform.platform_version,
        str(len(platform.devices())),
        str(cores()),
        _flags_file(),
    ]
    return "\n".join(parts).encode()


xla.on_renewal(_process_part.cache_clear)


def _flags_file() -> str:
    """The content of the file of flags that `XLA_FLAGS` may name; empty if it names none."""
    name = os.environ.get("XLA_FLAGS", "").strip()
    if not name or name.startswith("-"):
        return ""
    try:
        with open(name, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""
