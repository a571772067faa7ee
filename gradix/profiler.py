"""Profiles of programs for TensorBoard and XProf, names in them, and profiles of memory."""

from __future__ import annotations

import contextlib
import functools
import gzip
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gradix._base.lazy import lazy_module as _lazy_module
from gradix._base.listing import own_names as _own_names
from gradix._base.ports import check_free as _check_free, port_number as _port_number
from gradix._runtime import xla_profiler
from gradix._runtime.xla_profiler import ProfileOptions as ProfileOptions, register_subprocess as register_subprocess
from gradix.extend.backend import get_backend as _get_backend

_perfetto = _lazy_module("gradix._api.perfetto")

__all__ = [
    "ProfileOptions",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

_lock = threading.Lock()
# The session that records, the directory to which it will be written, whether also for Perfetto,
# and whether with a link; empty if there is none.
_running: list[tuple[Any, str, bool, bool]] = xla_profiler.sessions
_servers: list[Any] = []


class TraceAnnotation(xla_profiler.TraceMe):
    """A context manager that names what its block does, in the profile that is being recorded.

    Args:
        name: the name.
        **kwargs: values that are shown with it.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import profiler
        >>> with profiler.TraceAnnotation("solve", size=2):
        ...     y = jnp.ones(2) + 1
    """


class StepTraceAnnotation(TraceAnnotation):
    """As `TraceAnnotation`, for a step of a loop, by which tools group their statistics.

    Args:
        name: the name of the steps.
        **kwargs: values that are shown with it, such as `step_num`, the number of the step.

    Example:
        >>> from gradix import profiler
        >>> for i in range(2):
        ...     with profiler.StepTraceAnnotation("train", step_num=i):
        ...         pass
    """

    def __init__(self, name: str, **kwargs):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable, name: str | None = None, **decorator_kwargs: Any) -> Callable:
    """A function like `func` whose calls have a name in profiles.

    Args:
        func: the function.
        name: the name; by default that of the function.
        **decorator_kwargs: values that are shown with it.

    Example:
        >>> from gradix import profiler
        >>> @profiler.annotate_function
        ... def twice(x):
        ...     return 2 * x
        >>> twice(3)
        6
    """
    shown = name or getattr(func, "__qualname__", getattr(func, "__name__", repr(func)))

    @functools.wraps(func)
    def called(*args, **kwargs):
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return called


def start_trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Start recording a profile, which `stop_trace` writes below `log_dir`.

    Args:
        log_dir: the directory for `plugins/profile/...`, which TensorBoard and XProf read.
        create_perfetto_trace: whether to write `perfetto_trace.json.gz` beside the profile, which
            ui.perfetto.dev opens.
        create_perfetto_link: whether `stop_trace` writes that file, prints a link with which
            ui.perfetto.dev opens it, and waits until a browser on this machine has fetched it.
        profiler_options: options of what is recorded.

    Raises:
        RuntimeError: a profile is being recorded already.

    Example:
        >>> import pathlib, tempfile
        >>> import gradix
        >>> from gradix import profiler
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     profiler.start_trace(folder)
        ...     _ = gradix.jit(lambda x: x + 1)(1.0).block_until_ready()
        ...     profiler.stop_trace()
        ...     print([file.suffix for file in pathlib.Path(folder).rglob("*.pb")])
        ['.pb']
    """
    with _lock:
        if _running:
            raise RuntimeError(
                f"Only one profile may be run at a time, and one is being recorded for {_running[0][1]}. "
                "Call stop_trace() first."
            )
        session = xla_profiler.new_session(profiler_options)
        _running.append((session, os.fspath(log_dir), create_perfetto_trace, create_perfetto_link))


def stop_trace() -> None:
    """Stop recording, and write the profile.

    Raises:
        RuntimeError: no profile is being recorded.
        OSError: a link was asked for, and port 9001, from which ui.perfetto.dev fetches, is taken.

    Example:
        >>> import pathlib, tempfile
        >>> import gradix
        >>> from gradix import profiler
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     profiler.start_trace(folder)
        ...     _ = gradix.jit(lambda x: x + 1)(1.0).block_until_ready()
        ...     profiler.stop_trace()
        ...     print([file.suffix for file in pathlib.Path(folder).rglob("*.pb")])
        ['.pb']
    """
    with _lock:
        if not _running:
            raise RuntimeError("No profile started. Call start_trace(log_dir) first.")
        session, folder, for_perfetto, has_link = _running.pop()
        session.stop_and_export(folder)
    if for_perfetto or has_link:
        written = Path(folder).glob("plugins/profile/*/*.trace.json.gz")
        newest = max(written, key=lambda path: path.stat().st_mtime_ns)
        copy = newest.parent / "perfetto_trace.json.gz"
        copy.write_bytes(newest.read_bytes())
        if has_link:
            _perfetto.offer(copy)


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """A context manager that records a profile of its block; see `start_trace`.

    Example:
        >>> import pathlib, tempfile
        >>> import gradix
        >>> from gradix import profiler
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with profiler.trace(folder):
        ...         _ = gradix.jit(lambda x: x + 1)(1.0).block_until_ready()
        ...     print([file.suffix for file in pathlib.Path(folder).rglob("*.pb")])
        ['.pb']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def device_memory_profile(backend: str | None = None) -> bytes:
    """A profile of the memory of a platform's devices, as bytes in pprof's compressed form.

    With the option `gradix_memory_stacks`, it has the call stack by which each array was made since
    the option was set. XLA keeps some hundred bytes of each call for good then.

    Example:
        >>> from gradix import profiler
        >>> profiler.device_memory_profile()[:2].hex()
        '1f8b'
    """
    return gzip.compress(xla_profiler.heap_profile(_get_backend(backend)))


def save_device_memory_profile(filename: os.PathLike | str, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file, for `pprof`.

    Example:
        >>> import pathlib, tempfile
        >>> from gradix import profiler
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     profiler.save_device_memory_profile(f"{folder}/memory.prof")
        ...     print(pathlib.Path(folder, "memory.prof").stat().st_size > 0)
        True
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server from which tools request profiles, until `stop_server`.

    XLA's server listens at all addresses of this machine, and asks for no password: whoever reaches
    the port can record what the program does. Let a firewall close it to others.

    Args:
        port: the port of the server.
        requires_backend: whether to start the devices first, so that profiles include them.

    Raises:
        ValueError: a server is running already, or the port is none.
        RuntimeError: another program listens at the port.

    Example:
        >>> import socket
        >>> from gradix import profiler
        >>> with socket.socket() as s:
        ...     s.bind(("127.0.0.1", 0))
        ...     port = s.getsockname()[1]
        >>> server = profiler.start_server(port)
        >>> profiler.stop_server()
    """
    if _servers:
        raise ValueError("Only one profiler server can be active at a time. Call stop_server() first.")
    if requires_backend:
        _get_backend()
    port = _port_number("start_server", port)
    _check_free("start_server", "[::]", port)
    _servers.append(xla_profiler.start_server(port))
    return _servers[0]


def stop_server() -> None:
    """Stop the server that `start_server` started.

    Raises:
        ValueError: no server is running.

    Example:
        >>> from gradix import profiler
        >>> profiler.stop_server()
        Traceback (most recent call last):
            ...
        ValueError: No active profiler server. Call start_server(port) first.
    """
    if not _servers:
        raise ValueError("No active profiler server. Call start_server(port) first.")
    _servers.clear()


def __getattr__(name: str):
    if name in ("ProfileData", "ProfileEvent", "ProfilePlane"):
        return xla_profiler.data_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _own_names(__name__)
