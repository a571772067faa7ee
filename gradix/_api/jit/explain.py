"""`explain`: what was traced, compiled and loaded from disk while a block ran, and why."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterable
from typing import Any

from gradix._api.jit.jitted_function import jitted_functions
from gradix._base import events
from gradix._base.events import Event


class Explanation:
    """What `explain` gives: printed, a summary.

    Attributes:
        events: each trace, compilation and load from disk, in order, with its reason.
        hits: by name of the function, how many calls found a program ready.
    """

    def __init__(self):
        self.events: list[Event] = []
        self.hits: dict[str, int] = {}

    def count(self, kind: str) -> int:
        """How many events of a kind there were: "trace", "compile" or "load"."""
        return sum([e.kind == kind for e in self.events])

    def seconds(self, kind: str) -> float:
        """Their time altogether."""
        return sum([e.seconds for e in self.events if e.kind == kind])

    def __str__(self) -> str:
        counts = collections.Counter([(e.kind, e.function) for e in self.events])
        lines = [
            f"{what}: {self.count(kind)} in {self.seconds(kind):.3f} s"
            for kind, what in _KINDS.items()
        ]
        lines.append(f"calls that found their program: {sum(self.hits.values())}")
        for name in dict.fromkeys([*[e.function for e in self.events], *self.hits]):
            told = [
                f"{counts[kind, name]} {what}"
                for kind, what in _KINDS.items()
                if counts[kind, name]
            ]
            told += [f"{self.hits[name]} hits"] if name in self.hits else []
            lines.append(f"  {name}: {', '.join(told)}")
        return "\n".join(lines)

    __repr__ = __str__


_KINDS = {"trace": "traces", "compile": "compilations", "load": "loads from disk"}


class explain:
    """Context manager: says of every trace, compilation and load from disk what it was for.

    Calls that find their program are counted by function. Nested blocks each see everything; a
    block sees what all threads do.

    Args:
        show: whether to print each event as it happens, and the calls that hit at the end.
        file: where to; the standard error by default.

    Returns:
        The context manager; entering it gives an object with the lists `events` and `hits`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> f = gradix.jit(lambda x: x * 2)
        >>> with gradix.debug.explain(show=False) as seen:
        ...     _ = f(jnp.ones(3)), f(jnp.ones(3)), f(jnp.ones(4))
        >>> [e.why for e in seen.events if e.kind == "trace"]
        ['never traced before', 'argument x: float32[3] -> float32[4]']
        >>> seen.hits
        {'<lambda>': 1}
    """

    def __init__(self, show: bool = True, file: Any = None):
        self._show, self._file = show, file
        self._entered: list[tuple[Explanation, dict]] = []

    def __enter__(self) -> Explanation:
        seen = Explanation()
        self._entered.append((seen, {id(f): (f, n) for f, n in _calls()}))
        events.listeners.append(seen.events.append)
        if self._show:
            events.listeners.append(self._print)
        return seen

    def __exit__(self, *exc) -> None:
        seen, before = self._entered.pop()
        events.listeners.remove(seen.events.append)
        if self._show:
            events.listeners.remove(self._print)
        hits: collections.Counter[str] = collections.Counter()
        for f, n in _calls():
            hits[getattr(f, "__name__", "<unnamed>")] += n - before.get(id(f), (f, 0))[1]
        seen.hits = {name: n for name, n in hits.items() if n > 0}
        if self._show:
            for name, n in seen.hits.items():
                self._print(f"hit     {name}: {n} calls found their program")

    def _print(self, event) -> None:
        print(event, file=self._file or sys.stderr)


def _calls() -> Iterable[tuple[Any, int]]:
    """All jitted functions, and how many calls of each found a program ready."""
    for f in jitted_functions():
        s = f.stats()
        yield f, max(s.calls - s.traces, 0)
