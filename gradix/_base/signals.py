"""Defers the handlers of signals while native code calls Python in the main thread.

Python runs the handlers of signals in the main thread, between any two steps of Python code, also of
a function that native code has called and before the function's first statement. Most handlers
raise, and what native code does with an exception depends on where it was raised.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import os
import threading
from collections.abc import Callable
from typing import Any

# Signals whose handlers may raise. Each look at a handler takes time in every call.
_NAMES = "HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD CONT TSTP XCPU VTALRM PROF WINCH IO BREAK"
_NUMBERS = tuple([int(getattr(_signal, f"SIG{n}")) for n in _NAMES.split() if hasattr(_signal, f"SIG{n}")])
_getsignal, _setsignal, _get_ident = _signal.getsignal, _signal.signal, _thread.get_ident
_main = 0  # the number of the main thread


def _find_main() -> None:
    global _main
    _main = threading.main_thread().ident or 0


_find_main()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_find_main)


class _Deferral:
    """The handlers that wait, and the signals that have arrived for them, with their frames."""

    __slots__ = ("handlers", "arrived")

    def __init__(self, handlers: dict[int, Callable]):
        self.handlers = handlers
        self.arrived: dict[int, Any] = {}

    def begin(self) -> None:
        # A method of a dict as a handler runs no Python code, so that it cannot be interrupted.
        record = self.arrived.setdefault
        for number in self.handlers:
            _setsignal(number, record)

    def end(self) -> None:
        """Put the handlers back, and run those whose signals have arrived; they may raise."""
        try:
            for number, handler in self.handlers.items():
                _setsignal(number, handler)
        except BaseException:  # A handler that is back already has raised.
            for number, handler in self.handlers.items():
                _setsignal(number, handler)
            raise
        if self.arrived:
            self._run()

    def _run(self) -> None:
        while self.arrived:
            number, frame = self.arrived.popitem()
            try:
                self.handlers[number](number, frame)
            except BaseException:
                if self.arrived:
                    self._run()
                raise


_current: _Deferral | None = None  # that of the main thread
_found: list = []  # the handlers of all signals when they were last looked at
_handlers: dict[int, Callable] = {}  # those of them that are functions


def deferring(function: Callable) -> Callable:
    """`function`, during which the handlers of signals wait; they run when it returns or raises.

    Only calls in the main thread are affected.
    """

    def call(*args, **kwargs):
        global _current, _found, _handlers
        if _get_ident() != _main:
            return function(*args, **kwargs)
        found = [*map(_getsignal, _NUMBERS)]
        if found != _found:
            _handlers = {n: h for n, h in zip(_NUMBERS, found) if h is not None and type(h) is not int}
            _found = found
        outer, deferral = _current, _Deferral(_handlers)
        record = deferral.arrived.setdefault
        try:
            for number in _handlers:
                _setsignal(number, record)
            _current = deferral
            return function(*args, **kwargs)
        finally:
            _current = outer
            deferral.end()

    return call


def current() -> _Deferral | None:
    """The deferral of this thread, whose `end()` and `begin()` enclose code that may be interrupted."""
    return _current if _current is not None and _get_ident() == _main else None
