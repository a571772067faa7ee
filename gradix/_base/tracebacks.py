"""Shows tracebacks of uncaught exceptions without the frames of this package.

Importing this module installs it in front of `sys.excepthook`, which costs nothing until a program
ends with an exception. The exception itself keeps all its frames, for debuggers and handlers. The
option `jax_traceback_filtering` turns it off.
"""

import sys
from collections.abc import Iterator
from types import TracebackType

from gradix._base import source
from gradix._base.config import state

_NOTE = "(Frames of gradix are left out; set the environment variable JAX_TRACEBACK_FILTERING=off to show them.)"
_RUNPY = "<frozen runpy>"


def users_part(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without this package's frames; the first frame if that leaves none."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    # python -m gradix program.py
    launched = any(t.tb_frame.f_code.co_filename == source.MAIN for t in frames)
    shown = None
    for t in reversed(frames):
        name = t.tb_frame.f_code.co_filename
        if not (source.is_inside(name) or launched and name in (source.MAIN, _RUNPY)):
            shown = TracebackType(shown, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return shown or (frames[0] if frames else None)


def _chain(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """The exception, its causes and its contexts, each once."""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        yield from _chain(error.__cause__, seen)
        error = error.__context__


def _length(traceback: TracebackType | None) -> int:
    n = 0
    # it is a loop, because the traceback of a RecursionError is too long for recursion
    while traceback is not None:
        n, traceback = n + 1, traceback.tb_next
    return n


def _show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if state.jax_traceback_filtering == "off":
        return _before(kind, error, traceback)
    whole = [(e, e.__traceback__) for e in _chain(error, set())]
    try:
        for e, frames in whole:
            e.__traceback__ = users_part(frames)
        _before(kind, error, users_part(traceback))
    finally:
        shortened = any(_length(e.__traceback__) < _length(frames) for e, frames in whole)
        for e, frames in whole:
            e.__traceback__ = frames
    if (
        shortened
        and state.jax_traceback_filtering != "quiet_remove_frames"
        and sys.stderr is not None
    ):
        print(_NOTE, file=sys.stderr)


_before = sys.excepthook
sys.excepthook = _show
