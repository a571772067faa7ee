"""The runs of operations, read from what XLA records of each thread.

An operation that several threads share, or that goes on after its thread has started the next one,
is recorded as a call of a few microseconds, and as regions of work in a pool of threads. Each region
bears a number, which is noted where the region was asked for: within the operation, or within
another region of it. An operation's time is that in which any thread works on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

_ASKED, _BEGUN, _ENDED = (f"ThreadpoolListener::{name}" for name in ("Record", "StartRegion", "StopRegion"))
# What starts the operations that follow; it runs within the region of the operation that ended last.
_GOES_ON = "ThunkExecutor::Execute"


class Run(NamedTuple):
    """One run of an operation: when, where, and how long without what ran inside of it.

    Attributes:
        name: the operation's name in its program.
        program: the name of the program.
        number: the number of the program.
        thread: the thread that ran it, by number.
        start, seconds: when it began, since the profile began, and how long it took.
        own: the seconds without the operations that it waited for, and without those in which
            another thread worked on it, too.
        is_part: whether it is work on an operation whose run is another one.
    """

    name: str
    program: str
    number: int
    thread: int
    start: float
    seconds: float
    own: float
    is_part: bool = False


class Counted(NamedTuple):
    """How often an operation ran, and the seconds that it took without those inside of it."""

    calls: int
    seconds: float


class _Span(NamedTuple):
    """A time in which one thread did one thing.

    Attributes:
        start, end: nanoseconds.
        what: the name, program and program's number of an operation; the number of a region; None
            for what belongs to no operation.
    """

    start: float
    end: float
    what: tuple[str, str, int] | int | None


def runs_of(reader: Any, recorded: bytes) -> list[Run]:
    """The runs of operations in what XLA recorded.

    Args:
        reader: the class that reads it, `ProfileData`.
        recorded: the serialized profile.
    """
    with warnings.catch_warnings():
        # The reader makes classes whose deprecation, as an error, would end the process.
        warnings.simplefilter("ignore", DeprecationWarning)
        threads = [line.events for plane in reader.from_serialized_xspace(recorded).planes for line in plane.lines]
        return _joined([_Thread(events) for events in threads])


class _Thread:
    """What one thread did.

    Attributes:
        spans: the operations and regions, each before those inside of it.
        own: the times of each span without those inside of it.
        around: the span around each region that was asked for, by the number of the region.
    """

    def __init__(self, events: Any):
        self.spans: list[_Span] = []
        asked: list[tuple[float, int]] = []
        begun: list[tuple[float, int]] = []
        for event in events:
            name, start = event.name, event.start_ns
            if name == _BEGUN:
                begun.append((start, _number(event, "_c")))
            elif name == _ENDED:
                if begun:
                    self.spans.append(_Span(begun[-1][0], start, begun.pop()[1]))
            elif name == _ASKED:
                asked.append((start, _number(event, "_p")))
            elif name == _GOES_ON:
                self.spans.append(_Span(start, start + event.duration_ns, None))
            elif "::" not in name and not name.startswith("end: "):
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    known = stats["hlo_op"], stats["hlo_module"], int(stats.get("program_id", 0))
                    self.spans.append(_Span(start, start + event.duration_ns, known))
        self.spans.sort(key=lambda span: (span.start, -span.end))
        self.own, self.around = self._without_inner(sorted(asked))

    def _without_inner(self, asked: list[tuple[float, int]]) -> tuple[list[list[tuple]], dict[int, int]]:
        own: list[list[tuple]] = [[] for _ in self.spans]
        around: dict[int, int] = {}
        stack: list[int] = []
        since = 0.0
        waiting = iter([*asked, (float("inf"), -1)])
        at, number = next(waiting)

        def until(time: float) -> None:
            """Pass the time of the innermost span, and note the regions that are asked for in it."""
            nonlocal since, at, number
            while at < time:
                if stack:
                    around[number] = stack[-1]
                at, number = next(waiting)
            if stack and time > since:
                own[stack[-1]].append((since, time))
            since = max(since, time)

        def close(time: float) -> None:
            while stack and self.spans[stack[-1]].end <= time:
                until(self.spans[stack[-1]].end)
                stack.pop()

        for k, span in enumerate(self.spans):
            close(span.start)
            until(span.start)
            since = span.start
            stack.append(k)
        close(float("inf"))
        return own, around


def _number(event: Any, name: str) -> int:
    return int(dict(event.stats).get(name, -1))


def _joined(threads: list[_Thread]) -> list[Run]:
    """The runs of all threads, with the regions that belong to each."""
    asked = {number: (t, k) for t, thread in enumerate(threads) for number, k in thread.around.items()}

    def owner(t: int, k: int) -> tuple[int, int] | None:
        """The thread and the span of the operation that a span works for."""
        seen = set()
        while type(number := threads[t].spans[k].what) is int:
            if number in seen or number not in asked:
                return None
            seen.add(number)
            t, k = asked[number]
        return (t, k) if number is not None else None

    found: list[Run] = []
    counted: dict[tuple[int, int], list[tuple]] = {}
    for t, k in _operations_first(threads):
        of = owner(t, k)
        if of is None:
            continue
        span, held = threads[t].spans[k], counted.setdefault(of, [])
        own = 0.0
        for part in threads[t].own[k]:
            own += _without(part, held)
            held.append(part)
        name, program, number = threads[of[0]].spans[of[1]].what  # type: ignore[misc]
        seconds = (span.end - span.start) * 1e-9
        found.append(Run(name, program, number, t, span.start * 1e-9, seconds, own * 1e-9, of != (t, k)))
    numbers = {t: n for n, t in enumerate(dict.fromkeys(sorted([run.thread for run in found])))}
    return sorted([run._replace(thread=numbers[run.thread]) for run in found], key=lambda run: run.start)


def _operations_first(threads: list[_Thread]) -> Iterator[tuple[int, int]]:
    every = [(t, k) for t, thread in enumerate(threads) for k in range(len(thread.spans))]
    yield from [(t, k) for t, k in every if type(threads[t].spans[k].what) is not int]
    yield from [(t, k) for t, k in every if type(threads[t].spans[k].what) is int]


def _without(part: tuple, counted: list[tuple]) -> float:
    """The length of an interval outside of others, which do not overlap one another on one thread."""
    left = [part]
    for start, end in counted:
        left = [piece for a, b in left for piece in ((a, min(b, start)), (max(a, end), b)) if piece[1] > piece[0]]
    return sum([b - a for a, b in left])
