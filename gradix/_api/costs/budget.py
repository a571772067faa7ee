"""`jit(f, memory="2GiB")`: what is computed again is chosen so that a program keeps to a budget."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

from gradix._api.costs.lines import shown_bytes
from gradix._api.costs.recompute import inlined, recomputing
from gradix._api.costs.recompute_loops import with_lean_loops
from gradix._core.jaxpr import ClosedJaxpr
from gradix._runtime.program import Program
from gradix._transforms.cse import simplify

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(i?)b?)\s*", re.IGNORECASE)
# Segments, and the parts of each, in the order of what they cost.
_TRIED = (
    (2, 1), (3, 1), (4, 1), (5, 1), (2, 2), (3, 2), (6, 1), (8, 1), (2, 3), (3, 3), (2, 4), (4, 3),
)  # fmt: skip


def bytes_of(memory: str | int) -> int:
    """The bytes that a text such as "2GiB" or "500 MB" means.

    Raises:
        ValueError: it is no size, or not positive.
        TypeError: it is neither a text nor an integer.
    """
    if isinstance(memory, int) and not isinstance(memory, bool):
        found = memory
    elif isinstance(memory, str):
        form = _FORM.fullmatch(memory)
        if form is None:
            raise ValueError(
                f"jit: memory must be a size such as '2GiB', '500MB' or a number of bytes; got {memory!r}."
            )
        base = 1024 if form[3] else 1000
        found = int(float(form[1]) * base ** _UNITS[form[2].lower()])
    else:
        raise TypeError(
            f"jit: memory must be a text such as '2GiB' or an int; got {memory!r} of type {type(memory).__name__}."
        )
    if found <= 0:
        raise ValueError(f"jit: memory must be positive; got {memory!r}.")
    return found


def within(closed: ClosedJaxpr, nbytes: int, name: str, make: Callable[[ClosedJaxpr], Program]) -> ClosedJaxpr:
    """The program, changed so that its compiled form takes at most so many temporary bytes on a device.

    It is compiled and measured with more and more computed again, until it keeps the budget. If no
    form does, the one that takes least is the result, and a warning says how much it takes.

    Args:
        make: compiles a form of the program, for the devices that it is to run on.
    """

    def taken(program: ClosedJaxpr) -> int:
        return make(program).executable.memory_analysis().temp_size_in_bytes

    best, least = closed, taken(simplify(closed))
    if least <= nbytes:
        return closed
    whole, plain, seen = simplify(inlined(closed)), least, set()
    lean = with_lean_loops(whole)

    def forms():
        if lean is not whole:
            yield lean
        for segments, parts in _TRIED:
            yield recomputing(lean, segments, parts, plain)

    for tried in forms():
        if len(tried.jaxpr.eqns) in seen:  # too short for so many segments
            continue
        seen.add(len(tried.jaxpr.eqns))
        size = taken(tried)
        if size < least:
            best, least = tried, size
        if size <= nbytes:
            return tried
    warnings.warn(
        f"{name} needs {shown_bytes(least)} of temporary memory with all that can be computed again, "
        f"{shown_bytes(plain)} without; its budget is memory={shown_bytes(nbytes)}. "
        f"jit(f).memory(*args) shows which lines take it: put a checkpoint around the body of a "
        "loop, take smaller batches, or raise the budget.",
        UserWarning,
        stacklevel=2,
    )
    return best
