"""The paths that a specialized function has taken, as `f.stats().paths` shows them."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple


class Decision(NamedTuple):
    """A decision: Python read the value of a traced array.

    Attributes:
        kind: how it was read: as "bool", "int", "index", "float", "complex" or "array".
        place: the file, line and function.
        value: the value.
    """

    kind: str
    place: str
    value: Any


class Path(NamedTuple):
    """One path through a function: its decisions in order, and the number of calls that took it."""

    decisions: tuple[Decision, ...]
    calls: int


class Paths(tuple):
    """The paths through a specialized function; they print as a tree of its decisions.

    Example:
        >>> first = Path((Decision("bool", "demo.py:3 (f)", True),), 2)
        >>> other = Path((Decision("bool", "demo.py:3 (f)", False), Decision("int", "demo.py:5 (f)", 4)), 1)
        >>> Paths([first, other])
        bool at demo.py:3 (f)
        ├─ True: returns (2 calls)
        └─ False: int at demo.py:5 (f)
           └─ 4: returns (1 call)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        lines: list[str] = []
        groups: dict[str, list[Path]] = {}
        for path in self:
            groups.setdefault(_question(path, 0), []).append(path)
        for question, paths in groups.items():
            lines.append(question)
            _draw(paths, 0, "", lines)
        return "\n".join(lines)

    __str__ = __repr__


NO_PATHS = Paths()


def _question(path: Path, depth: int) -> str:
    if depth == len(path.decisions):
        return f"returns ({path.calls} call{'s' if path.calls != 1 else ''})"
    kind, place, _ = path.decisions[depth]
    return f"{kind} at {place}"


def _draw(paths: list[Path], depth: int, indent: str, lines: list[str]) -> None:
    """Write a line for each value of a decision and what follows; only a fork indents further."""
    while True:
        answers: dict[str, list[Path]] = {}
        for path in paths:
            if depth < len(path.decisions):
                answers.setdefault(reprlib.repr(path.decisions[depth].value), []).append(path)
        depth += 1
        if len(answers) != 1:
            break
        ((answer, paths),) = answers.items()
        lines.append(f"{indent}└─ {answer}: {_question(paths[0], depth)}")
    for i, (answer, chosen) in enumerate(answers.items()):
        last = i == len(answers) - 1
        lines.append(f"{indent}{'└─' if last else '├─'} {answer}: {_question(chosen[0], depth)}")
        _draw(chosen, depth, indent + ("   " if last else "│  "), lines)
