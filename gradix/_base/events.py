"""Events of the compiler, for listeners: traces, compilations, programs loaded from disk."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

from gradix._base import config, source
from gradix._base.lazy import lazy_module

logging = lazy_module("logging")  # it is slow to import, and rarely needed
listeners: list[Callable[[Event], None]] = []
# listeners that also get the parts of a first call, such as lowering to StableHLO
details: list[Callable[[Event], None]] = []
_options = config.state


@dataclasses.dataclass(frozen=True)
class Event:
    """One thing the compiler did.

    Attributes:
        kind: "trace", "lower" (to StableHLO), "compile" (by XLA) or "load" (a compiled program,
            from disk).
        function: the name of the function.
        seconds: how long it took.
        why: for a trace, what differs from the traces before; for a compilation, why no compiled
            program was found.
        place: the user's file and line.

    Example:
        >>> import gradix
        >>> with gradix.debug.explain(show=False) as seen:
        ...     _ = gradix.jit(lambda x: x * 3)(1.0)
        >>> event = seen.events[0]
        >>> event.kind, event.function, event.why
        ('trace', '<lambda>', 'never traced before')
    """

    kind: str
    function: str
    seconds: float
    why: str
    place: str

    def __str__(self) -> str:
        reason = f": {self.why}" if self.why else ""
        return f"{self.kind:<7} {self.function} ({1e3 * self.seconds:.1f} ms) at {self.place}{reason}"


def tell(kind: str, function: str, seconds: float, why: str = "") -> None:
    """Pass an event to the listeners, and to the log if the option jax_log_compiles is set."""
    if not listeners and not _options.jax_log_compiles:
        return
    event = Event(kind, function, seconds, why, place())
    for listener in list(listeners):
        listener(event)
    if _options.jax_log_compiles:
        warn("compile", "%s", _SAID[kind].format(e=event) + (f" ({why})" if why else ""))


def tell_detail(kind: str, function: str, seconds: float) -> None:
    """Pass a part of a first call to the listeners of `details`, and to the log."""
    if details:
        event = Event(kind, function, seconds, "", place())
        for listener in list(details):
            listener(event)
    if _options.jax_log_compiles:
        warn("compile", "%s", _SAID[kind].format(e=Event(kind, function, seconds, "", "")))


_SAID = {
    "trace": "Finished tracing {e.function} for jit in {e.seconds:.6f} sec at {e.place}",
    "lower": "Finished jaxpr to MLIR module conversion jit({e.function}) in {e.seconds:.6f} sec",
    "compile": "Compiling jit({e.function}): finished XLA compilation in {e.seconds:.6f} sec",
    "load": "Loaded jit({e.function}) from the compilation cache in {e.seconds:.6f} sec",
}


def place() -> str:
    """The file and line in the user's program that led here."""
    at = source.current()
    return source.located(os.path.relpath(at.file) if _is_below_here(at.file) else at.file, at.line)


def _is_below_here(file: str) -> bool:
    try:
        return os.path.abspath(file).startswith(os.getcwd() + os.sep)
    except OSError:
        return False


def note(logger: str, is_asked: bool, message: str, *values) -> None:
    """Write one line to the log of `gradix.<logger>`: a warning where an option asks, else for debugging."""
    level = logging.WARNING if is_asked else logging.DEBUG
    logging.getLogger(f"gradix.{logger}").log(level, message, *values)


def warn(logger: str, message: str, *values) -> None:
    """Write one line to the log of `gradix.<logger>`, as a warning."""
    logging.getLogger(f"gradix.{logger}").warning(message, *values)
