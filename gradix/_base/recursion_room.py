"""Frames of this library that do not count against the user's recursion limit."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Held by whoever changes the recursion limit, which is one for all threads, or needs it steady. A finalizer or a
# handler of a signal may come to either while its own thread holds it.
LIMIT_LOCK = threading.RLock()
_TRACE = 24  # the most frames that tracing a function inside of another one takes
_MAX_DEPTH = 500  # the most functions traced inside of each other; the C stack is limited


class _Tracing(threading.local):
    depth = 0  # the functions that this thread traces inside of each other


_tracing = _Tracing()


class Room:
    """While entered, the recursion limit is higher by a number of frames.

    A call from Python to Python takes no memory of the C stack.

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
        with LIMIT_LOCK:
            sys.setrecursionlimit(sys.getrecursionlimit() + self.frames)

    def __exit__(self, *exc) -> None:
        with LIMIT_LOCK:
            try:
                sys.setrecursionlimit(sys.getrecursionlimit() - self.frames)
            except RecursionError:
                pass  # another thread is deeper by now: the limit stays high


# Walks over nested programs end by themselves, however deep these are nested.
_FOR_PROGRAMS = Room(20_000)


def with_room(walk: Callable[..., T], *args, **kwargs) -> T:
    """What a walk over nested programs returns; where the recursion limit ends it, it is walked once more with room.

    The limit is every thread's, and on Python 3.11 also that of the calls of C, which do take memory of the C stack; so
    it is left alone as long as it suffices.

    Args:
        walk: a function that can be called twice.

    Example:
        >>> def last(nested):
        ...     return last(nested[1]) if nested else "end"
        >>> nested = ()
        >>> for _ in range(2_000):
        ...     nested = (0, nested)
        >>> with_room(last, nested)
        'end'
    """
    try:
        return walk(*args, **kwargs)
    except RecursionError:
        with _FOR_PROGRAMS:
            return walk(*args, **kwargs)


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
