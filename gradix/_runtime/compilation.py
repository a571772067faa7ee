"""Executables: loaded from disk if an earlier process compiled the program, else made by XLA."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._base import config, events
from gradix._base.bounded import BoundedCache, on_clear
from gradix._runtime import disk_cache, xla
from gradix._runtime.cache_key import key_of
from gradix._stablehlo.module import LoweredModule

_options = config.state


class Obtained(NamedTuple):
    """An executable, for one device or several, and whether it was loaded from disk."""

    executable: Any
    is_loaded: bool


class Saved(NamedTuple):
    """The bytes that `Executable.serialize` returned, and the compiler options."""

    code: bytes
    options: xla.Options


def obtain(module: LoweredModule, name: str, options: xla.Options, on: xla.On = xla.HERE) -> Obtained:
    """The executable of a lowered program.

    Args:
        module: the lowered program.
        name: the name of the function, for the events that `explain` shows.
        options: the compiler options.
        on: where it runs.

    Raises:
        RuntimeFailure: XLA refuses the program or its options.
    """
    start, why = time.perf_counter(), ""
    known: tuple | None = None
    if on.devices and not module.host_callbacks:
        wanted = on._replace(out_shardings=tuple(on.out_shardings or ()))
        known = module.text, options, wanted, module.out_avals
        if known in _recent:
            return Obtained(_recent[known], True)
    entries = disk_cache.current()
    if entries is None:
        why = "the disk cache is off"
    elif module.host_callbacks or module.partitioners:
        # Another process cannot call the functions of this one.
        entries, why = None, "it calls Python, so it is not kept on disk"
    key = key_of(module.text, options, on.devices) if entries is not None else ""
    found = _load(entries, key, module, options, on) if entries is not None else None
    is_loaded = found is not None
    if found is not None:
        events.tell("load", name, time.perf_counter() - start)
        events.note(
            "cache", _options.jax_log_compiles, "Persistent compilation cache hit for '%s' with key '%s'.", name, key
        )
    else:
        found = compiled(module, options, on)
        seconds = time.perf_counter() - start
        if entries is not None:
            told = _told_of_misses()
            told("PERSISTENT COMPILATION CACHE MISS for '%s' with key '%s'.", name, key)
            left_out = _keep(entries, key, found, seconds)
            if left_out:
                told("Not writing persistent cache entry for '%s' because %s.", name, left_out)
            else:
                told("Writing '%s' to persistent compilation cache with key '%s'.", name, key)
            why = "not on disk, and not kept there" if left_out else "not on disk"
        elif module.host_callbacks:
            told = _told_of_misses()
            told("PERSISTENT COMPILATION CACHE MISS for '%s', which has no key.", name)
            told("Not writing persistent cache entry for '%s' because it uses host callbacks.", name)
        events.tell("compile", name, seconds, why)
    if known is not None:
        _recent.keep(known, found)
    return Obtained(found, is_loaded)


def compiled(module: LoweredModule, options: xla.Options, on: xla.On = xla.HERE) -> xla.Executable:
    """The executable of a lowered program, which XLA compiles."""
    return xla.compile(
        module.text,
        module.in_avals,
        module.out_avals,
        module.host_callbacks,
        options,
        on,
        partitioners=module.partitioners,
    )


def loaded(module: LoweredModule, saved: Saved, on: xla.On = xla.HERE) -> xla.Executable:
    """The executable of a lowered program that calls no Python, from its bytes."""
    return xla.deserialize(saved.code, module.in_avals, module.out_avals, (), saved.options, on, text=module.text)


def code_of(module: LoweredModule, name: str, options: xla.Options) -> bytes:
    """The serialized executable of a program that calls no function of this process.

    It runs on any device of the same kind.

    Raises:
        RuntimeFailure: XLA refuses the program, or cannot serialize it.
    """
    entries = disk_cache.current()
    kept = entries.read(key_of(module.text, options)) if entries is not None else None
    # An executable that was loaded from disk cannot be serialized again, so its file is read.
    return kept if kept is not None else obtain(module, name, options).executable.serialize()


# Executables for several devices by their programs, because eager calls lower them again each time.
_recent: BoundedCache[tuple, xla.Executable] = BoundedCache(256, drop=1)
on_clear(_recent.clear)


def _load(entries, key: str, module: LoweredModule, options, on) -> xla.Executable | None:
    payload = entries.read(key)
    if payload is None:
        return None
    try:
        return loaded(module, Saved(payload, options), on)
    except (xla.RuntimeFailure, ValueError) as error:
        return entries.reject(key, f"XLA does not load ({str(error).splitlines()[0][:120]})")


def _told_of_misses() -> Callable[..., None]:
    """Writes a line to the log, as a warning where the option asks for explanations."""
    return functools.partial(events.note, "cache", _options.jax_explain_cache_misses)


def _keep(entries, key: str, made: xla.Executable, seconds: float) -> str:
    """Write an executable to disk before its first run; return why it was not written, or "".

    XLA cannot serialize some programs after they have run. No thread is used: writing is much
    faster than compiling, and a thread might not finish before the process ends.
    """
    least = _options.jax_persistent_cache_min_compile_time_secs
    if seconds < least:
        return f"it took < {least:.2f} seconds to compile ({seconds:.2f}s)"
    try:
        payload = made.serialize()
    except xla.RuntimeFailure:  # XLA cannot serialize some programs.
        return "it cannot be serialized"
    if len(payload) < _options.jax_persistent_cache_min_entry_size_bytes:
        least = _options.jax_persistent_cache_min_entry_size_bytes
        return (
            f"its size, {len(payload)} bytes, is less than threshold {least}, jax_persistent_cache_min_entry_size_bytes"
        )
    entries.write(key, payload)
    return ""
