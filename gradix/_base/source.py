"""Places in the user's program, which are cheap to record and are looked up only when shown."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from types import CodeType

from gradix._base.name_stack import EMPTY, NameStack, _names, used

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
MAIN = _PACKAGE + "__main__.py"
# Their frames stand between a decorated function and this package; they explain nothing to users.
_PLUMBING = frozenset(os.path.abspath(str(module.__file__)) for module in (contextlib, functools))

# The key is the file name, as a str keeps its hash, which a code object computes each time.
_inside: dict[str, bool] = {}
_excluded: list[str] = []


def _asks_for_users(path: str) -> bool:
    """Whether a file is of NumPy or SciPy, whose functions ask arrays for their values on behalf of users."""
    modules = [sys.modules.get(name) for name in ("numpy", "scipy")]
    return any(m is not None and path.startswith(os.path.dirname(str(m.__file__)) + os.sep) for m in modules)


def _is_inside(filename: str) -> bool:
    path = os.path.abspath(filename)
    inside = (
        (path.startswith(_PACKAGE) and path != MAIN)
        or path in _PLUMBING
        or _asks_for_users(path)
        or filename.startswith(("numpy/", "scipy/"))  # compiled parts name their files in this way
        or any(map(path.startswith, _excluded))
    )
    _inside[filename] = inside
    return inside


def exclude(path: str) -> None:
    """Count the frames of another library's file or folder as inside, so that places skip them.

    Example:
        >>> from gradix.extend import source_info_util as source
        >>> source.register_exclusion("/path/of/a/library")
    """
    _excluded.append(os.path.abspath(path))
    _inside.clear()


def include(path: str) -> None:
    """Undo `exclude` of the file or folder."""
    _excluded[:] = [p for p in _excluded if p != os.path.abspath(path)]
    _inside.clear()


def is_inside(filename: str) -> bool:
    """Whether a file is of this package, or of code whose frames explain nothing to users."""
    found = _inside.get(filename)
    return _is_inside(filename) if found is None else found


def located(file: str, line: int) -> str:
    """A place as text: `file:line`, or that of a notebook's cell.

    Example:
        >>> from gradix._base.source import located
        >>> located("model.py", 3)
        'model.py:3'
    """
    shell = sys.modules.get("IPython")
    active = getattr(shell, "get_ipython", bool)()
    name = getattr(getattr(active, "compile", None), "format_code_name", lambda file: None)(file)
    # IPython names its cells by a pair, as in "Cell", "In[27]".
    return f"{' '.join(name)}, line {line}" if name is not None else f"{file}:{line}"


class SourcePlace:
    """One instruction of the user's program; file, line and function are looked up when read.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> place = gradix.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns[0].source_info
        >>> place.function, place.line >= 1
        ('<lambda>', True)
    """

    __slots__ = ("code", "lasti")
    name_stack = EMPTY  # the names around it, in `NamedPlace`

    def __init__(self, code: CodeType, lasti: int):
        self.code = code
        self.lasti = lasti

    @property
    def transposed(self) -> SourcePlace:
        """The same place, for the transpose of the operation that is written there."""
        return self

    @property
    def traceback(self) -> SourcePlace:
        """The place without names, as `source_info_util.user_context` takes it."""
        return SourcePlace(self.code, self.lasti)

    def within(self, names: NameStack) -> SourcePlace:
        """The same place, with names around those it has."""
        return NamedPlace(self.code, self.lasti, names + self.name_stack) if names else self

    def replace(self, *, name_stack: NameStack | None = None, traceback: SourcePlace | None = None) -> SourcePlace:
        """The place with other names, or another place with these names."""
        at, names = traceback or self, self.name_stack if name_stack is None else name_stack
        return NamedPlace(at.code, at.lasti, names) if names else SourcePlace(at.code, at.lasti)

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
        """The tuple (line, end line, column, end column); None for what Python did not keep."""
        for index, position in enumerate(self.code.co_positions()):
            if index == self.lasti // 2:
                return position
        return (None, None, None, None)

    def __eq__(self, other):
        return isinstance(other, SourcePlace) and self.code is other.code and self.lasti == other.lasti

    def __hash__(self):
        return hash((id(self.code), self.lasti))

    def __str__(self):
        return f"{located(self.file, self.line)} ({self.function})"

    def __repr__(self):
        return f"SourcePlace({self})"


class NamedPlace(SourcePlace):
    """A place with names around it."""

    __slots__ = ("name_stack", "_transposed")

    def __init__(self, code: CodeType, lasti: int, name_stack: NameStack):
        self.code, self.lasti, self.name_stack = code, lasti, name_stack
        self._transposed: NamedPlace | None = None

    @property
    def transposed(self) -> NamedPlace:
        found = self._transposed
        if found is None:
            found = self._transposed = NamedPlace(self.code, self.lasti, self.name_stack.transposed)
        return found


def current(depth: int = 1) -> SourcePlace:
    """The innermost place outside of this package that led here, with the names around it.

    Callers that know the first frames to be of this package skip them with a larger `depth`.

    Example:
        >>> from gradix.extend import source_info_util as source
        >>> source.current() is not None
        True
    """
    frame = sys._getframe(depth)
    known = _inside
    while True:
        code = frame.f_code
        filename = code.co_filename
        inside = known.get(filename)
        if inside is None:
            inside = _is_inside(filename)
        outer = frame.f_back
        if not inside or outer is None:
            if used:
                stack = _names.stack
                if stack is not EMPTY:
                    return NamedPlace(code, frame.f_lasti, stack)
            return SourcePlace(code, frame.f_lasti)
        frame = outer
