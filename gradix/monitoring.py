"""Events, durations and numbers that a program records while it runs, and listeners for them.

Gradix records the times of tracing and compiling, and which programs were found on disk, under the
names that tools for JAX listen for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gradix._base import events as _events
from gradix._base.lazy import lazy_module
from gradix._base.listing import own_names as _own_names

_disk_cache = lazy_module("gradix._runtime.disk_cache")

_on_event: list[Callable[..., None]] = []
_on_duration: list[Callable[..., None]] = []
_on_time_span: list[Callable[..., None]] = []
_on_scalar: list[Callable[..., None]] = []
_DURATIONS = {
    "trace": "/jax/core/compile/jaxpr_trace_duration",
    "lower": "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "compile": "/jax/core/compile/backend_compile_duration",
    "load": "/jax/compilation_cache/cache_retrieval_time_sec",
}
_EVENTS = {"compile": "/jax/compilation_cache/cache_misses", "load": "/jax/compilation_cache/cache_hits"}


def record_event(event: str, **kwargs: str | int) -> None:
    """Call the listeners of events, with the name of an event and further values.

    Example:
        >>> import gradix
        >>> seen = []
        >>> listener = lambda event, **more: seen.append((event, more))
        >>> gradix.monitoring.register_event_listener(listener)
        >>> gradix.monitoring.record_event("/train/restart", step=3)
        >>> gradix.monitoring.unregister_event_listener(listener)
        >>> seen
        [('/train/restart', {'step': 3})]
    """
    for listener in list(_on_event):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call the listeners of durations: `event` took `duration` seconds.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, seconds, **kwargs):
        ...     print(event, seconds, kwargs)
        >>> monitoring.register_event_duration_secs_listener(listen)
        >>> monitoring.record_event_duration_secs("/mine/step", 0.5, size=3)
        /mine/step 0.5 {'size': 3}
        >>> monitoring.unregister_event_duration_listener(listen)
    """
    for listener in list(_on_duration):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Call the listeners of time spans: `event` lasted from `start_time` to `end_time`.

    The times are seconds as `time.time()` returns them.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, start, end, **kwargs):
        ...     print(event, end - start)
        >>> monitoring.register_event_time_span_listener(listen)
        >>> monitoring.record_event_time_span("/mine/step", 1.0, 3.5)
        /mine/step 2.5
        >>> monitoring.unregister_event_time_span_listener(listen)
    """
    for listener in list(_on_time_span):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call the listeners of numbers: `event` has the value `value`.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, value, **kwargs):
        ...     print(event, value)
        >>> monitoring.register_scalar_listener(listen)
        >>> monitoring.record_scalar("/mine/loss", 0.25)
        /mine/loss 0.25
        >>> monitoring.unregister_scalar_listener(listen)
    """
    for listener in list(_on_scalar):
        listener(event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Let `callback(event, **kwargs)` be called for every event.

    Example:
        >>> from gradix import monitoring
        >>> heard = []
        >>> def listen(event, **kwargs):
        ...     heard.append(event)
        >>> monitoring.register_event_listener(listen)
        >>> monitoring.record_event("/mine/started")
        >>> monitoring.unregister_event_listener(listen)
        >>> heard
        ['/mine/started']
    """
    _register(_on_event, callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Let `callback(event, seconds, **kwargs)` be called for every duration.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> seen = []
        >>> listener = lambda event, seconds, **more: seen.append(event)
        >>> gradix.monitoring.register_event_duration_secs_listener(listener)
        >>> _ = gradix.jit(lambda x: x + 1)(1.0)
        >>> gradix.monitoring.unregister_event_duration_listener(listener)
        >>> "/jax/core/compile/jaxpr_trace_duration" in seen
        True
    """
    _register(_on_duration, callback)


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Let `callback(event, start, end, **kwargs)` be called for every time span.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, start, end, **kwargs):
        ...     print(event, end - start)
        >>> monitoring.register_event_time_span_listener(listen)
        >>> monitoring.record_event_time_span("/mine/step", 1.0, 3.5)
        /mine/step 2.5
        >>> monitoring.unregister_event_time_span_listener(listen)
    """
    _register(_on_time_span, callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Let `callback(event, value, **kwargs)` be called for every number.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, value, **kwargs):
        ...     print(event, value)
        >>> monitoring.register_scalar_listener(listen)
        >>> monitoring.record_scalar("/mine/loss", 0.25)
        /mine/loss 0.25
        >>> monitoring.unregister_scalar_listener(listen)
    """
    _register(_on_scalar, callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Stop calling `callback` for events.

    Raises:
        AssertionError: it is not registered.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, **kwargs):
        ...     print(event)
        >>> monitoring.register_event_listener(listen)
        >>> monitoring.unregister_event_listener(listen)
        >>> monitoring.record_event("/mine/started")
    """
    _unregister(_on_event, callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Stop calling `callback` for durations.

    Raises:
        AssertionError: it is not registered.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, seconds, **kwargs):
        ...     print(event, seconds)
        >>> monitoring.register_event_duration_secs_listener(listen)
        >>> monitoring.unregister_event_duration_listener(listen)
        >>> monitoring.record_event_duration_secs("/mine/step", 0.5)
    """
    _unregister(_on_duration, callback)


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Stop calling `callback` for time spans.

    Raises:
        AssertionError: it is not registered.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, start, end, **kwargs):
        ...     print(event)
        >>> monitoring.register_event_time_span_listener(listen)
        >>> monitoring.unregister_event_time_span_listener(listen)
        >>> monitoring.record_event_time_span("/mine/step", 1.0, 3.5)
    """
    _unregister(_on_time_span, callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Stop calling `callback` for numbers.

    Raises:
        AssertionError: it is not registered.

    Example:
        >>> from gradix import monitoring
        >>> def listen(event, value, **kwargs):
        ...     print(event, value)
        >>> monitoring.register_scalar_listener(listen)
        >>> monitoring.unregister_scalar_listener(listen)
        >>> monitoring.record_scalar("/mine/loss", 0.25)
    """
    _unregister(_on_scalar, callback)


def clear_event_listeners() -> None:
    """Remove all listeners, of every kind.

    Example:
        >>> from gradix import monitoring
        >>> monitoring.register_event_listener(lambda event, **kwargs: print(event))
        >>> monitoring.clear_event_listeners()
        >>> monitoring.record_event("/mine/started")
    """
    for listeners in (_on_event, _on_duration, _on_time_span, _on_scalar):
        listeners.clear()
    _listen()


def _register(listeners: list, callback: Callable[..., None]) -> None:
    listeners.append(callback)
    _listen()


def _unregister(listeners: list, callback: Callable[..., None]) -> None:
    if callback not in listeners:
        raise AssertionError(f"{callback!r} is not registered as a listener of this kind.")
    listeners.remove(callback)
    _listen()


def _listen() -> None:
    """Listen to the compiler's events as long as there are listeners here."""
    wanted = bool(_on_event or _on_duration or _on_time_span or _on_scalar)
    for listeners in (_events.listeners, _events.details):
        if wanted and _pass_on not in listeners:
            listeners.append(_pass_on)
        elif not wanted and _pass_on in listeners:
            listeners.remove(_pass_on)


def _pass_on(event: Any) -> None:
    """Record an event of the compiler."""
    end = time.time()
    names = [_DURATIONS[event.kind]]
    if event.kind == "load":  # to have a compiled program also took these seconds where it was not compiled
        names.append(_DURATIONS["compile"])
    for name in names:
        record_scalar(name, event.seconds, fun_name=event.function)
    if event.kind in _EVENTS:
        if _disk_cache.current() is None:
            _record_once("/jax/compilation_cache/task_disabled_cache")
        else:
            _record_once("/jax/compilation_cache/tasks_using_cache")
            record_event("/jax/compilation_cache/compile_requests_use_cache")
            record_event(_EVENTS[event.kind])
    for name in names:
        record_event_duration_secs(name, event.seconds, fun_name=event.function)
        record_event_time_span(name, end - event.seconds, end, fun_name=event.function)


def _record_once(event: str) -> None:
    """Record an event at the first compilation since the cache was opened."""
    if event not in _disk_cache.told:
        _disk_cache.told.add(event)
        record_event(event)


__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]


__dir__ = _own_names(__name__)
