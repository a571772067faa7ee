"""XLA's profiler, which records what ran when on the host and on devices."""

from __future__ import annotations

from jaxlib import _profiler  # type: ignore[attr-defined]

from gradix._base.lazy import lazy_module
from gradix._runtime.xla_client import client

_data = lazy_module("jaxlib._profile_data")

# sessions for `gradix.profiler`, of which there is at most one
sessions: list = []

ProfileOptions = _profiler.ProfileOptions
TraceMe = _profiler.TraceMe
start_server = _profiler.start_server
register_subprocess = _profiler.register_subprocess


def new_session(options=None):
    """A session that records from now on, until its method `stop_and_export(folder)` is called."""
    client()  # Devices that are started later would not be recorded.
    return _profiler.ProfilerSession() if options is None else _profiler.ProfilerSession(options)


def data_class(name: str):
    """A class that reads recorded profiles: `ProfileData`, `ProfilePlane` or `ProfileEvent`."""
    return getattr(_data, name)


def heap_profile(of=None) -> bytes:
    """The contents of the memory of a client's devices, as a compressed profile for pprof."""
    return (of or client()).heap_profile()
