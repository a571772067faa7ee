"""The key of a compiled program on disk: everything its machine code depends on."""

from __future__ import annotations

import functools
import os

from gradix._base.lazy import lazy_module
from gradix._runtime import xla
from gradix._runtime.cores import cores
from gradix._version import __version__

hashlib = lazy_module("hashlib")

_FORMAT = 1


def key_of(text: str, options: xla.Options, device=None) -> str:
    """The name of a program's cache entry.

    Two programs share an entry only if their text, the compiler's options, the device, jaxlib and
    the machine's instructions agree; anything that is in doubt is in the key, because a miss costs
    a compilation and a wrong hit a wrong answer.

    Args:
        text: the program in StableHLO.
        device: where it will run; None is the first, a tuple stands for several, in the order of
            its partitions.
    """
    several = device if isinstance(device, tuple) else ()
    device = several[0] if several else xla.local_devices()[0] if device is None else device
    h = hashlib.blake2b(_process_part(), digest_size=20)
    asked = xla.options_key(options, device.platform)
    h.update(f"{device.platform} {device.device_kind} {device.id}\n{asked}\n".encode())
    if several:
        h.update(f"{[(d.id, d.process_index) for d in several]}\n".encode())
    h.update(text.encode())
    return h.hexdigest()


@functools.lru_cache(None)
def _process_part() -> bytes:
    """What does not change within a process."""
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
    """`XLA_FLAGS` may name a file of flags; its content counts then."""
    name = os.environ.get("XLA_FLAGS", "").strip()
    if not name or name.startswith("-"):
        return ""
    try:
        with open(name, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""
