"""Notes for calls of this package's functions with arguments that they do not take: what to write instead.

Python raises such an error before a function runs, so no function can say it itself.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType

from gradix._base import elsewhere, source

_WRONG = re.compile(
    r"(?:(\w+)\.)*(\w+)\(\) (?:got an unexpected keyword argument '(\w+)'|takes .*positional arguments? but )"
)
# Names of arguments in NumPy, PyTorch and TensorFlow, and the names here; the first that a function has is meant.
_NAMES = {
    "axes": ("axis",),
    "axis": ("axes", "dimension"),
    "dim": ("axis", "dimension"),
    "dims": ("axes", "axis"),
    "input": ("a", "x"),
    "keep_dims": ("keepdims",),
    "keepdim": ("keepdims",),
    "loc": ("mean",),
    "num_samples": ("shape",),
    "other": ("x2", "y", "b"),
    "p": ("ord",),
    "perm": ("axes",),
    "reverse": ("descending",),
    "sizes": ("shape",),
    "size": ("shape",),
    "tensors": ("arrays", "tup"),
}


def explain(error: BaseException, caller: FrameType | None = None) -> None:
    """Add a note to a TypeError of a call, if the function is ours and it is known what was meant.

    Args:
        error: the exception; others than such errors stay as they are.
        caller: the frame in which it was caught, whose callers its traceback does not have.
    """
    found = _WRONG.match(str(error)) if type(error) is TypeError else None
    if found is None:
        return
    with suppress(Exception):  # an error's note must not raise another error
        frame, line = _users_place(error.__traceback__, caller)
        function = _function(frame, line, found[1], found[2])
        said = _advice(function, found[2], found[3]) if function else ""
        is_said = said in getattr(error, "__notes__", ()) or "Did you mean" in str(error) and "in place of" not in said
        if said and not is_said:
            error.add_note(said)


def _users_place(link: TracebackType | None, frame: FrameType | None) -> tuple[FrameType, int]:
    """The last frame of the user's in a traceback, or the innermost of those that called `frame`, and its line."""
    last = None
    while link is not None:
        if not source.is_inside(link.tb_frame.f_code.co_filename):
            last = link.tb_frame, link.tb_lineno
        link = link.tb_next
    while last is None and frame is not None:
        if not source.is_inside(frame.f_code.co_filename):
            last = frame, frame.f_lineno
        frame = frame.f_back
    assert last is not None
    return last


def _function(frame: FrameType, line: int, of: str | None, name: str) -> Callable | None:
    """The function of this package that a line calls by the name."""
    if of == "Array":
        return getattr(sys.modules["gradix"].Array, name, None)
    text = linecache.getline(frame.f_code.co_filename, line)
    for path in re.findall(rf"([\w.]*\b{re.escape(name)})\(", text):
        first, *rest = path.split(".")
        value = frame.f_locals.get(first, frame.f_globals.get(first))
        for part in rest:
            value = getattr(value, part, None)
        if callable(value) and str(getattr(value, "__module__", "")).partition(".")[0] == "gradix":
            return value
    return None


def _advice(function: Callable, name: str, keyword: str | None) -> str:
    parameters = [p for p in inspect.signature(function).parameters if p != "self" and not p.startswith("_")]
    if keyword is None:
        sizes = "shape" in parameters
        return (
            f"Write the sizes in brackets, as one shape: {name}({'key, ' * ('key' in parameters)}(2, 3))."
            if sizes
            else ""
        )
    meant = [p for p in _NAMES.get(keyword, ()) if p in parameters]
    if not meant:
        near = elsewhere.close_to(keyword, parameters)
        return f"{name} takes {', '.join(parameters)}{near or '.'}"
    return f"Write {meant[0]} in place of {keyword}: {name} takes {', '.join(parameters)}."
