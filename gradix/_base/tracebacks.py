"""Leaves the frames of this package out of tracebacks.

Three places leave frames out, as the option `jax_traceback_filtering` says:

- The functions that call the user's, such as `jit`, `grad`, `vmap` and `scan`, are boundaries: an
  exception that leaves the outermost of them is caught there and raised again without our frames.
  They cost nothing while nothing is raised.
- The hook of uncaught exceptions, which importing this module installs in front of
  `sys.excepthook`, leaves out those that remain, such as of a function of arrays that refused its arguments.
- Where this module is imported in IPython, the shell does, which calls no such hook.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, TypeVar, cast

from gradix._base import source
from gradix._base.config import state
from gradix._base.lazy import lazy_module

_wrong_calls = lazy_module("gradix._base.wrong_calls")
F = TypeVar("F", bound=Callable)

NOTE = "(Frames of gradix are left out; set the environment variable JAX_TRACEBACK_FILTERING=off to show them.)"
_RUNPY = "<frozen runpy>"
_OPTIMIZED = 1  # the flag of code whose frames hold their variables, so not of a module's


class UnfilteredStackTrace(Exception):
    """The cause of an exception some frames of which were removed; its traceback has them all."""


def boundary(function: F) -> F:
    """The function, which leaves this package's frames out of exceptions it raises.

    Example:
        >>> from gradix._base.tracebacks import boundary
        >>> @boundary
        ... def double(x):
        ...     return 2 * x
        >>> double(3)
        6
    """

    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            filter_frames(error)
            raise

    # by hand, since functions that a transformation returns are made in each step of a program
    call.__name__, call.__qualname__ = function.__name__, function.__qualname__
    call.__module__, call.__doc__ = function.__module__, function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def filter_frames(error: Exception) -> None:
    """Leave this package's frames out of an exception that is about to be raised again.

    A function that calls this in its `except` block, and then has a bare `raise`, is a boundary.
    The outermost boundary on the stack does the work, so that handlers inside of a transformed
    function see the whole traceback.
    """
    frame = sys._getframe(1)
    try:
        mode = _mode()
        if mode == "off" or _is_nested(frame):
            return
    except RecursionError:  # there is no room to look, and a boundary further out has some
        return
    _wrong_calls.explain(error, frame)
    if mode == "tracebackhide":
        return _hide(error.__traceback__, frame)
    whole = error.__traceback__
    if mode == "remove_frames":
        _chain_unfiltered(error, _with_callers(whole, frame))
    else:
        _add_note(error)
    # A bare `raise` adds no frame of the boundary itself. The class may have a `__setattr__`.
    BaseException.with_traceback(error, _users_frames(whole))


def _mode() -> str:
    mode = state.jax_traceback_filtering
    # IPython shows the last frame even if it is hidden.
    return "quiet_remove_frames" if mode == "auto" else mode


def _is_nested(frame: FrameType) -> bool:
    """Whether another boundary is called further out: its code has the name of what filters."""
    outer = frame.f_back
    while outer is not None:
        if filter_frames.__name__ in outer.f_code.co_names and is_ours(outer):
            return True
        outer = outer.f_back
    return False


def is_ours(frame: FrameType) -> bool:
    """Whether a frame belongs to this package, or to plumbing that explains nothing to the user."""
    return source.is_inside(frame.f_code.co_filename)


def _links(of: TracebackType | None) -> list[TracebackType]:
    links = []
    # no recursion: a RecursionError has a thousand frames
    while of is not None:
        links.append(of)
        of = of.tb_next
    return links


def _users_frames(whole: TracebackType | None, others=()) -> TracebackType | None:
    """The traceback without our frames, and those of other files."""
    shown = None
    users = [t for t in _links(whole) if not is_ours(t.tb_frame) and t.tb_frame.f_code.co_filename not in others]
    for t in reversed(users if len(users) <= _MOST_FRAMES else _without_repeats(users)):
        shown = TracebackType(shown, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return shown


# Longer tracebacks are of a recursion, whose turns need not all be seen.
_MOST_FRAMES = 60
_TURNS = 3


def _without_repeats(links: list[TracebackType]) -> list[TracebackType]:
    """The links of a recursion: of each place the first turns, and the last one."""
    turns: dict[tuple, int] = {}
    last = {(t.tb_frame.f_code, t.tb_lasti): i for i, t in enumerate(links)}
    kept = []
    for i, t in enumerate(links):
        place = t.tb_frame.f_code, t.tb_lasti
        turns[place] = turns.get(place, 0) + 1
        if turns[place] <= _TURNS or last[place] == i:
            kept.append(t)
    return kept


def _with_callers(whole: TracebackType | None, frame: FrameType) -> TracebackType | None:
    """The traceback from the start of the program on, not from the function that caught."""
    outer = frame.f_back
    while outer is not None:
        whole = TracebackType(whole, outer, outer.f_lasti, outer.f_lineno)
        outer = outer.f_back
    return whole


def _chain_unfiltered(error: Exception, whole: TracebackType | None) -> None:
    """Give the exception a cause with the whole traceback, which takes over what it arose from."""
    said = "".join(traceback.format_exception_only(error)).strip()
    unfiltered = UnfilteredStackTrace(
        f"{said}\n\nThis is the exception with all its frames. The traceback below, of the same "
        "exception, leaves out gradix's own.\n\n--------------------"
    ).with_traceback(whole)
    unfiltered.__cause__, unfiltered.__context__ = error.__cause__, error.__context__
    unfiltered.__suppress_context__ = error.__suppress_context__
    _set(error, "__cause__", unfiltered)
    _set(error, "__context__", None)


def _set(error: Exception, name: str, value) -> None:
    """Set an attribute whatever `__setattr__` the exception's class has."""
    getattr(BaseException, name).__set__(error, value)


def _add_note(error: Exception) -> None:
    # Some exceptions take no attributes, such as frozen dataclasses, and go without the note.
    with suppress(Exception):
        if NOTE not in getattr(error, "__notes__", ()):
            error.add_note(NOTE)


def _hide(whole: TracebackType | None, frame: FrameType | None) -> None:
    """Set `__tracebackhide__` in our frames, which IPython and pytest then leave out."""
    frames = [t.tb_frame for t in _links(whole)]
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    for f in frames:
        if f.f_code.co_flags & _OPTIMIZED and is_ours(f):
            cast(dict, f.f_locals)["__tracebackhide__"] = True


def users_part(whole: TracebackType | None) -> TracebackType | None:
    """The traceback without this package's frames; as it is where that would leave nothing."""
    # python -m gradix program.py
    launched = any(t.tb_frame.f_code.co_filename == source.MAIN for t in _links(whole))
    return _users_frames(whole, (source.MAIN, _RUNPY) if launched else ()) or whole


def _chain(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """The exception, those it arose from, and those of a group, each once."""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        for member in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _chain(member, seen)
        yield from _chain(error.__cause__, seen)
        error = error.__context__


def _show(kind: type[BaseException], error: BaseException, whole: TracebackType | None) -> None:
    _show_by(_before, kind, error, whole)


def _show_by(show: Callable, kind: type[BaseException], error: BaseException, whole: TracebackType | None) -> None:
    """Show an exception that nobody caught, without our frames."""
    if state.jax_traceback_filtering == "off":
        return show(kind, error, whole)
    chain = [e for e in _chain(error, set()) if not isinstance(e, UnfilteredStackTrace)]
    for e in chain:
        _wrong_calls.explain(e)
    before = [(e, e.__traceback__) for e in chain]
    try:
        for e, frames in before:
            BaseException.with_traceback(e, users_part(frames))
        show(kind, error, users_part(whole))
    finally:
        shortened = any(len(_links(e.__traceback__)) < len(_links(t)) for e, t in before)
        for e, frames in before:
            BaseException.with_traceback(e, frames)
    noted = any(NOTE in getattr(e, "__notes__", ()) for e in chain)
    if shortened and not noted and state.jax_traceback_filtering != "quiet_remove_frames" and sys.stderr is not None:
        print(NOTE, file=sys.stderr)


_before = sys.excepthook
sys.excepthook = _show


def leave_out_in(shell: Any) -> None:
    """Leave our frames out of the tracebacks of a shell of IPython, which shows exceptions by itself.

    A shell that has a way of its own already keeps it.
    """
    if getattr(shell, "custom_exceptions", True):
        return

    def shown(shell, kind, error, whole, tb_offset=None):
        def show(kind, error, whole):
            shell.showtraceback((kind, error, whole), tb_offset=tb_offset, running_compiled_code=True)

        _show_by(show, kind, error, whole)

    shell.set_custom_exc((Exception,), shown)


_ipython = sys.modules.get("IPython")
if _ipython is not None:
    leave_out_in(getattr(_ipython, "get_ipython", lambda: None)())
