"""`explain`: reports what is traced, compiled and loaded from disk in a block, and why."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterable
from typing import Any

from gradix._api.jit.jitted_function import jitted_functions
from gradix._base import events
from gradix._base.events import Event


class Explanation:
    """The record of an `explain` block; it prints as a summary.

    Attributes:
        events: each trace, compilation and load from disk, in order, with its reason.
        hits: for the name of each function, the number of calls that found a compiled program.

    Example:
        >>> import gradix
        >>> double = gradix.jit(lambda x: x * 2)
        >>> with gradix.debug.explain(show=False) as seen:
        ...     _ = double(1.0), double(2.0)
        >>> type(seen).__name__, seen.count("trace"), seen.seconds("trace") > 0
        ('Explanation', 1, True)
    """

    def __init__(self):
        self.events: list[Event] = []
        self.hits: dict[str, int] = {}

    def count(self, kind: str) -> int:
        """The number of events of a kind: "trace", "compile" or "load"."""
        return sum([e.kind == kind for e in self.events])

    def seconds(self, kind: str) -> float:
        """The total time of the events of a kind, in seconds."""
        return sum([e.seconds for e in self.events if e.kind == kind])

    def __str__(self) -> str:
        counts = collections.Counter([(e.kind, e.function) for e in self.events])
        lines = [f"{what}: {self.count(kind)} in {self.seconds(kind):.3f} s" for kind, what in _KINDS.items()]
        lines.append(f"calls that found their program: {sum(self.hits.values())}")
        for name in dict.fromkeys([*[e.function for e in self.events], *self.hits]):
            shown = [f"{counts[kind, name]} {what}" for kind, what in _KINDS.items() if counts[kind, name]]
            shown += [f"{self.hits[name]} hits"] if name in self.hits else []
            lines.append(f"  {name}: {', '.join(shown)}")
        return "\n".join(lines)

    __repr__ = __str__


_KINDS = {"trace": "traces", "compile": "compilations", "load": "loads from disk"}


class explain:
    """Context manager that reports the reason of every trace, compilation and load from disk.

    It counts, by function, the calls that find their program compiled. It reports the events of all
    threads; of nested blocks, each reports all events.

    Args:
        show: whether to print each event as it happens, and the calls that hit at the end.
        file: the stream to print to; the standard error by default.

    Returns:
        The context manager; entering it gives an object with the attributes `events` and `hits`.

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
    """All jitted functions, and the number of calls of each that found a compiled program."""
    for f in jitted_functions():
        s = f.stats()
        yield f, max(s.calls - s.traces, 0)
