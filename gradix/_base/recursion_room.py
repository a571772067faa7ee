"""Frames of this library that do not count against the user's recursion limit."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager, suppress

_lock = threading.Lock()
_TRACE = 24  # the most frames that tracing a function inside of another one takes
_MAX_DEPTH = 500  # the most functions traced inside of each other; the C stack is limited
_tracing = threading.local()


class Room:
    """While entered, the recursion limit is higher by a number of frames.

    A call from Python to Python takes no memory of the C stack, so a higher limit endangers
    nothing.

    Example:
        >>> import sys
        >>> limit = sys.getrecursionlimit()
        >>> with Room(100):
        ...     sys.getrecursionlimit() - limit
        100
    """

    __slots__ = ("frames",)

    def __init__(self, frames: int):
        self.frames = frames

    def __enter__(self) -> None:
        with _lock:
            sys.setrecursionlimit(sys.getrecursionlimit() + self.frames)

    def __exit__(self, *exc) -> None:
        # if another thread is deeper by now, the limit stays high
        with _lock, suppress(RecursionError):
            sys.setrecursionlimit(sys.getrecursionlimit() - self.frames)


# walks over nested programs end by themselves, however deep these are nested
FOR_PROGRAMS = Room(20_000)


@contextmanager
def room_to_trace(name: str):
    """Make room for the frames of one trace, and stop a user's endless recursion with an error.

    Raises:
        RecursionError: more functions are traced inside of each other than any program needs.
    """
    depth = _tracing.__dict__.get("depth", 0)
    if depth >= _MAX_DEPTH:
        raise RecursionError(
            f"{name or 'A function'} is traced inside of {depth} other traces. A traced function that calls itself "
            "never ends if a traced value decides when: decide by shapes or static arguments, or use "
            "lax.while_loop, lax.cond or lax.scan."
        )
    _tracing.depth = depth + 1
    try:
        with Room(_TRACE):
            yield
    finally:
        _tracing.depth = depth
