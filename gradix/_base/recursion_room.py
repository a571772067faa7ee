"""Frames of this library that do not count against the user's recursion limit."""

from __future__ import annotations

import sys
import threading

_lock = threading.Lock()
_TRACE = 24  # the most frames that tracing a function inside of another one takes
_MAX_DEPTH = 500  # the most functions traced inside of each other; the C stack is limited


class _Tracing(threading.local):
    depth = 0  # the functions that this thread traces inside of each other


_tracing = _Tracing()


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
        with _lock:
            try:
                sys.setrecursionlimit(sys.getrecursionlimit() - self.frames)
            except RecursionError:
                pass  # another thread is deeper by now: the limit stays high


# walks over nested programs end by themselves, however deep these are nested
FOR_PROGRAMS = Room(20_000)


class room_to_trace(Room):
    """Room for the frames of one trace; it also stops a user's endless recursion with an error.

    Args:
        name: the function that is traced, for the message.

    Raises:
        RecursionError: more functions are traced inside of each other than any program needs.
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name, self.frames = name, _TRACE

    def __enter__(self) -> None:
        depth = _tracing.depth
        if depth >= _MAX_DEPTH:
            raise RecursionError(
                f"{self.name or 'A function'} is traced inside of {depth} other traces. A traced function that calls "
                "itself never ends if a traced value decides when: decide by shapes or static arguments, or use "
                "lax.while_loop, lax.cond or lax.scan."
            )
        super().__enter__()
        _tracing.depth = depth + 1

    def __exit__(self, *exc) -> None:
        _tracing.depth -= 1
        super().__exit__(*exc)
