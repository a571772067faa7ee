"""Long programs on the CPU: they run in a helper thread, and their results are buffers to come.

XLA would hand each program of a thousand numbers to another thread, which takes longer than the
program. So only programs that may take a millisecond run this way, and no more once they turn out
to be quick (docs/design/running.md).
"""

from __future__ import annotations

import _thread
import atexit
import collections
import contextvars
import os
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gradix._base import apart, config

_options = config.state
_MOST = 32  # programs that wait to be run
_QUICK = 5e-4  # seconds
_QUICK_EACH = 4e-6  # seconds more for each result, which a helper has to hand over
_QUICK_RUNS = 2  # as many make a program count as quick


class Pace:
    """Whether a program is taken to be long; measured runs decide."""

    __slots__ = ("is_long", "left", "quick")

    def __init__(self, results: int):
        self.is_long, self.left = True, _QUICK_RUNS
        self.quick = _QUICK + results * _QUICK_EACH

    def note(self, seconds: float) -> None:
        if seconds < self.quick:
            self.left -= 1
            self.is_long = self.left > 0


class PendingBuffer:
    """A buffer that a running program will make; other members than these wait for it."""

    __slots__ = ("run", "made", "__weakref__")

    def __init__(self, run: Run):
        self.run, self.made = run, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real(), name)

    def real(self) -> Any:
        """The buffer, when the program has ended; the program's error is raised here."""
        self.run.wait()
        return self.made

    def is_ready(self) -> bool:
        return self.run.is_done

    def is_deleted(self) -> bool:
        return self.made is not None and self.made.is_deleted()

    def block_until_ready(self) -> PendingBuffer:
        self.real().block_until_ready()
        return self


def real(buffer):
    """The buffer itself, which jaxlib takes, of one that may be pending."""
    return buffer.real() if type(buffer) is PendingBuffer else buffer


class Run:
    """One run of a program in a helper."""

    __slots__ = ("call", "buffers", "pace", "results", "error", "is_done", "ended", "followers")

    def __init__(self, call: Callable[[list], list], buffers: list, pace: Pace | None):
        self.call, self.buffers, self.pace = call, buffers, pace
        # Each result is held by whoever wants it, and freed with it.
        self.results: list[weakref.ref[PendingBuffer]] = []
        self.error: BaseException | None = None
        self.is_done = False
        self.ended = _thread.allocate_lock()
        self.ended.acquire()
        self.followers: list[Run] = []

    def promise(self, count: int) -> list[PendingBuffer]:
        """The results, before the run begins."""
        made = [PendingBuffer(self) for _ in range(count)]
        self.results = [weakref.ref(m) for m in made]
        return made

    def wait(self) -> None:
        """Wait until the run has ended, and raise its error; signals interrupt the wait alone."""
        if not self.is_done:
            try:
                _queue.ensure()
                with self.ended:
                    pass
            except BaseException:
                _queue.go_on()
                raise
        if self.error is not None:
            raise self.error.with_traceback(None)

    def first_needed(self) -> Run | None:
        """A run that has not ended and whose results this one needs."""
        for b in self.buffers:
            if type(b) is PendingBuffer and not b.run.is_done:
                return b.run
        return None

    def begin(self) -> None:
        try:
            buffers, self.buffers = [real(b) for b in self.buffers], []
            start = time.perf_counter()
            made = self.call(buffers)
            del buffers
            for m in made:
                m.block_until_ready()
            if self.pace is not None:
                self.pace.note(time.perf_counter() - start)
            for result, m in zip(self.results, made):
                found = result()
                if found is not None:
                    found.made = m
        except BaseException as error:
            self.error = error
        self.buffers, self.results = [], []
        del self.call
        self.is_done = True
        self.ended.release()


class _Queue:
    """The runs that have not begun; one helper at a time takes them in order.

    The order keeps a program that overwrites a donated argument behind those that read it.
    """

    def __init__(self):
        self.start_anew()

    def start_anew(self) -> None:
        self.lock, self.runs = _thread.allocate_lock(), collections.deque()
        self.running: Run | None = None
        self.taker: object | None = None

    @property
    def is_busy(self) -> bool:
        return self.taker is not None

    def add(self, run: Run) -> None:
        while len(self.runs) >= _MOST:
            self._await_first()
        try:
            with self.lock:
                self.runs.append(run)
                self._take()
        except RuntimeError:  # The process is about to end, and no thread can be started.
            self.runs.remove(run)
            run.begin()

    def _await_first(self) -> None:
        run = self.running
        if run is None:
            time.sleep(1e-4)
            return
        with suppress(Exception):  # Whoever wants its results gets its error.
            run.wait()

    def ensure(self) -> None:
        """See to it that a helper takes what is left, though a signal has interrupted `add`."""
        with self.lock:
            self._take()

    def _take(self) -> None:
        if self.taker is None and self.runs:
            taker = object()
            apart.start(self._serve, taker, comes_back=False)
            self.taker = taker

    def _serve(self, taker: object) -> None:
        while True:
            with self.lock:
                if self.taker is not taker:
                    return
                if not self.runs:
                    self.taker = self.running = None
                    return
                run = self.runs.popleft()
                first = run.first_needed()
                if first is not None:  # The user gave up waiting for it.
                    first.followers.append(run)
                    continue
                self.running = run
            run.begin()
            with self.lock:
                self.runs.extendleft(reversed(run.followers))
                run.followers = []
                self._take()

    def go_on(self) -> None:
        """Leave a run behind for which the user gave up waiting: another helper takes what follows."""
        with self.lock:
            if self.running is not None and not self.running.is_done:
                self.taker = self.running = None
                self._take()

    def finish(self) -> None:
        """Wait until no run is left, before a fork, whose child has no thread to run any."""
        while self.is_busy:
            self._await_first()

    def forget(self) -> None:
        """Begin no more runs, as nobody can read their results any more."""
        self.runs.clear()


_queue = _Queue()


def finish() -> None:
    """Wait until all runs that were left to a helper have ended."""
    _queue.finish()


def later(call: Callable[[list], list], count: int, pace: Pace | None = None) -> Callable:
    """A function of buffers that runs `call` in a helper; it returns `count` pending buffers.

    With `jax_cpu_enable_async_dispatch` off it waits for them, which signals interrupt.
    """

    def run(buffers: list) -> list:
        if _options.gradix_memory_stacks:  # the call stack of a helper would tell nothing
            return call([real(b) for b in buffers])
        new = Run(call, buffers, pace)
        made = new.promise(count)
        _queue.add(new)
        if _options.jax_cpu_enable_async_dispatch:
            return made
        return [m.real() for m in made]

    return run


def waiting(call: Callable[[list], list]) -> Callable[[list], list]:
    """A function that runs `call` on buffers when they have been made."""
    return lambda buffers: call([real(b) for b in buffers])


def runner(
    call: Callable[[list], list], count: int, pace: Pace | None, *, donates: bool = False, calls_python: bool = False
) -> Callable[[list], list]:
    """The function of buffers that runs a program in the thread that suits it.

    Args:
        call: runs the program in the thread that calls it.
        count: the number of results.
        pace: whether the program is long; None for one that never is.
        donates: whether it overwrites arguments, which programs that have not begun may still read.
        calls_python: whether it calls Python functions, whose effects and errors belong to the call.
    """
    if pace is None and not donates:
        return call
    if calls_python:
        return call if pace is None else _aside(call, pace)
    begin = later(call, count, pace)

    def run(buffers: list) -> list:
        is_later = pace is not None and pace.is_long or donates and _queue.is_busy
        return begin(buffers) if is_later else call(buffers)

    return run


def _aside(call: Callable[[list], list], pace: Pace) -> Callable[[list], list]:
    """A function that lets a helper run a long program, and waits, which signals interrupt."""

    def run(buffers: list) -> list:
        if not pace.is_long or not apart.is_main_thread():
            return call(buffers)
        buffers = [real(b) for b in buffers]
        return apart.apart(_within, contextvars.copy_context(), config.trace_context(), timed, buffers)

    def timed(buffers: list) -> list:
        start = time.perf_counter()
        made = call(buffers)
        pace.note(time.perf_counter() - start)
        return made

    return run


def _within(variables: contextvars.Context, options, function: Callable, *args: Any) -> Any:
    """Call a function with the context variables and options of another thread."""
    with config.within(options):
        return variables.run(function, *args)


def settle(arrays: list) -> bool:
    """Give arrays the buffers that have been made; returns whether one is still pending.

    It is called where jaxlib has raised TypeError because it was given a pending buffer.

    Raises:
        TypeError: jaxlib's error, as no array has a pending buffer.
    """
    found, left = False, False
    for a in arrays:
        buffer = a._buffer
        if type(buffer) is PendingBuffer:
            found = True
            if buffer.run.is_done:
                a._buffer = buffer.real()
            else:
                left = True
    if not found:
        raise  # noqa: PLE0704
    return left


atexit.register(_queue.forget)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_queue.finish, after_in_child=_queue.start_anew)
