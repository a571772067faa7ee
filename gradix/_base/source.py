"""Where in the user's program something happened, found cheaply and spelled out only when asked."""

import contextlib
import functools
import os
import sys
import threading
from types import CodeType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
MAIN = _PACKAGE + "__main__.py"
# Their frames stand between a decorated user function and us, and explain nothing to the user.
_PLUMBING = frozenset(os.path.abspath(str(module.__file__)) for module in (contextlib, functools))

# Cached by file name, not by code object: a str keeps its hash, a code object computes it each time.
_inside: dict[str, bool] = {}
_excluded: list[str] = []


def _is_inside(filename: str) -> bool:
    path = os.path.abspath(filename)
    inside = (path.startswith(_PACKAGE) and path != MAIN) or path in _PLUMBING or any(map(path.startswith, _excluded))
    _inside[filename] = inside
    return inside


def exclude(path: str) -> None:
    """Take the frames of another library's file, or of its folder, for plumbing too."""
    _excluded.append(os.path.abspath(path))
    _inside.clear()


def include(path: str) -> None:
    """Undo `exclude` of the file or folder."""
    _excluded[:] = [p for p in _excluded if p != os.path.abspath(path)]
    _inside.clear()


def is_inside(filename: str) -> bool:
    """Whether a file belongs to this package, or to plumbing that explains nothing to the user."""
    found = _inside.get(filename)
    return _is_inside(filename) if found is None else found


class SourcePlace:
    """One instruction of the user's program; file, line and function are looked up when read."""

    __slots__ = ("code", "lasti")
    scope = ""                # the names of the scopes around it, joined by `/`

    def __init__(self, code: CodeType, lasti: int):
        self.code = code
        self.lasti = lasti

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def line(self) -> int:
        return self.position[0] or self.code.co_firstlineno

    @property
    def position(self) -> tuple:
        """(line, end line, column, end column), each None where the compiler kept none."""
        for index, position in enumerate(self.code.co_positions()):
            if index == self.lasti // 2:
                return position
        return (None, None, None, None)

    def __eq__(self, other):
        return isinstance(other, SourcePlace) and self.code is other.code and self.lasti == other.lasti

    def __hash__(self):
        return hash((id(self.code), self.lasti))

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})"

    def __repr__(self):
        return f"SourcePlace({self})"


class _ScopedPlace(SourcePlace):
    __slots__ = ("scope",)

    def __init__(self, code: CodeType, lasti: int, scope: str):
        super().__init__(code, lasti)
        self.scope = scope


class _Scopes(threading.local):
    names: tuple[str, ...] = ()


_scopes = _Scopes()
_used: list[bool] = []        # holds something from the first scope of the process on: until then nobody looks for any


def enter_scope(name: str) -> None:
    _scopes.names = (*_scopes.names, name)
    if not _used:
        _used.append(True)


def leave_scope() -> None:
    _scopes.names = _scopes.names[:-1]


def current_scope() -> str:
    """The names of the scopes entered in this thread, outermost first, joined by `/`."""
    return "/".join(_scopes.names)


def any_scopes() -> bool:
    """Whether the process has entered a scope."""
    return bool(_used)


def current() -> SourcePlace:
    """The place in the user's program that led here, the innermost frame outside this package, and its scopes."""
    frame = sys._getframe(1)
    known = _inside
    while True:
        code = frame.f_code
        filename = code.co_filename
        inside = known.get(filename)
        if inside is None:
            inside = _is_inside(filename)
        outer = frame.f_back
        if not inside or outer is None:
            if _used and _scopes.names:
                return _ScopedPlace(code, frame.f_lasti, "/".join(_scopes.names))
            return SourcePlace(code, frame.f_lasti)
        frame = outer


def user_frames(limit: int | None = None) -> list[SourcePlace]:
    """The places of all frames outside this package, innermost first, at most `limit`."""
    places: list[SourcePlace] = []
    frame = sys._getframe(1)
    while frame is not None and (limit is None or len(places) < limit):
        code = frame.f_code
        inside = _inside.get(code.co_filename)
        if inside is None:
            inside = _is_inside(code.co_filename)
        if not inside:
            places.append(SourcePlace(code, frame.f_lasti))
        frame = frame.f_back
    return places
