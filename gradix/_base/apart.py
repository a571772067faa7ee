"""Runs work in helper threads, so that signals do not interrupt it.

Python runs the handlers of signals in the main thread, between any two steps of Python code, and
most handlers raise. XLA's compiler does not survive that its caller is gone. A helper thread stays
with it to its end, while the main thread waits and can be interrupted at any time.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import atexit
import contextlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_GRACE = 2.0  # seconds for which the end of the process waits for helpers
_idle: list[_Helper] = []
_busy: dict[int, Task] = {}  # what helpers do now, by the number of the thread


class _Helper:
    """A thread that runs one function at a time."""

    __slots__ = ("wake", "task")

    def __init__(self):
        self.wake = _thread.allocate_lock()
        self.wake.acquire()
        self.task: Task | None = None
        # Threads that are not daemons would keep the process from ending.
        threading.Thread(target=self._serve, name="gradix helper", daemon=True).start()

    def start(self, task: Task) -> None:
        self.task = task
        self.wake.release()

    def _serve(self) -> None:
        me = _thread.get_ident()
        while True:
            self.wake.acquire()
            task, self.task = self.task, None
            assert task is not None
            _busy[me] = task
            task.run()
            done = task.done
            del task, _busy[me]  # An idle helper keeps nothing alive.
            _idle.append(self)
            done.release()


class Task:
    """A call that a helper makes, and its outcome.

    Attributes:
        is_abandoned: whether nobody waits for the outcome any more.
        comes_back: whether the call may return to Python at any time, so that the interpreter must
            not end before.
    """

    __slots__ = ("function", "args", "result", "error", "done", "is_abandoned", "comes_back")

    def __init__(self, function: Callable, args: tuple):
        self.function, self.args = function, args
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_abandoned, self.comes_back = False, True
        self.done = _thread.allocate_lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            self.result = self.function(*self.args)
        except BaseException as error:
            self.error = error
        del self.function, self.args

    def wait(self) -> Any:
        """The result of the call, or its exception; signals interrupt the wait, not the call."""
        try:
            self.done.acquire()
        except BaseException:
            self.is_abandoned = True
            raise
        error = self.error
        if error is None:
            return self.result
        self.error = None  # The exception's traceback refers to this frame.
        raise error


def is_main_thread() -> bool:
    """Whether this is the thread in which Python runs the handlers of signals."""
    return _thread.get_ident() == threading.main_thread().ident


def is_abandoned() -> bool:
    """Whether this thread is a helper, and nobody waits any more for what it does."""
    task = _busy.get(_thread.get_ident())
    return task is not None and task.is_abandoned


def start(function: Callable, *args: Any, comes_back: bool = True) -> Task:
    """Let a helper call `function(*args)`.

    Raises:
        RuntimeError: no thread can be started, as the process is about to end.
    """
    try:
        helper = _idle.pop()
    except IndexError:
        helper = _Helper()
    task = Task(function, args)
    task.comes_back = comes_back
    helper.start(task)
    return task


def apart(function: Callable, *args: Any) -> Any:
    """`function(*args)`, which no signal interrupts.

    The main thread lets a helper make the call, and waits for it. If a signal's handler raises
    meanwhile, the call goes on, and its result is dropped.

    Example:
        >>> apart(divmod, 7, 2)
        (3, 1)
    """
    if not is_main_thread():
        return function(*args)
    try:
        task = start(function, *args)
    except RuntimeError:
        return function(*args)
    return task.wait()


def _finish() -> None:
    """Let helpers finish before the interpreter ends.

    A thread that comes back from native code while the interpreter ends would abort the process.
    """
    try:
        _wait(_GRACE, lambda task: True)
        if _is_busy() and sys.__dict__.get("last_type") is KeyboardInterrupt:
            _end(_signal.SIGINT)
        if _is_busy():
            sys.stderr.write(
                "gradix: the process ends when work that was interrupted is done, such as a "
                "compilation. Press Ctrl-C to end it now.\n"
            )
            _wait(math.inf, lambda task: task.comes_back)
    except KeyboardInterrupt:
        _end(_signal.SIGINT)


def _is_busy(counts: Callable[[Task], bool] = lambda task: task.comes_back) -> bool:
    return any(counts(task) for task in [*_busy.values()])


def _wait(seconds: float, counts: Callable[[Task], bool]) -> None:
    end = time.monotonic() + seconds
    while _is_busy(counts) and time.monotonic() < end:
        time.sleep(0.005)


def _end(signum: int) -> None:
    """End the process by a signal, as Python does after an exception that nobody caught."""
    if "logging" in sys.modules:
        sys.modules["logging"].shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _signal.signal(signum, _signal.SIG_DFL)
    _signal.raise_signal(signum)


def _start_anew() -> None:
    """Forget the threads, none of which exists in a process that was forked off."""
    _idle.clear()
    _busy.clear()


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
