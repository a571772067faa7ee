"""Calls of programs whose devices wait for each other, recorded to explain why a call does not end."""

from __future__ import annotations

import collections
import threading
import time
import zlib
from typing import NamedTuple

from gradix._base import config

_REMEMBERED = 4096
_SHORT = 10  # a call is spoken of after a tenth of the time that ends the process


class Call(NamedTuple):
    """One call over several processes: its number, from 1, the program's name and a digest of its text, and its start.

    `path` stands for all calls up to this one.
    """

    number: int
    name: str
    digest: str
    since: float
    path: int = 0

    def told(self, is_in: bool) -> str:
        """What the other processes learn of it."""
        return f"{self.number}|{self.path:x}|{self.digest}|{'in' if is_in else 'done'}|{self.name}"


class Told(NamedTuple):
    """What another process says of its last call."""

    number: int
    path: int
    digest: str
    is_in: bool
    name: str

    @classmethod
    def read(cls, text: str) -> Told:
        number, path, digest, state, name = text.split("|", 4)
        return cls(int(number), int(path, 16), digest, state == "in", name)


class Calls:
    """The last call of this process, whether it is still in it, and the calls before."""

    __slots__ = ("last", "is_in", "before", "_lock")

    def __init__(self) -> None:
        self.last = Call(0, "", "", 0.0)
        self.is_in = False
        self.before: collections.OrderedDict[int, Call] = collections.OrderedDict()
        self._lock = threading.Lock()

    def enter(self, name: str, digest: str) -> None:
        with self._lock:
            number, path = self.last.number + 1, zlib.crc32(digest.encode(), self.last.path)
            self.last = self.before[number] = Call(number, name, digest, time.monotonic(), path)
            self.is_in = True
            if len(self.before) > _REMEMBERED:
                self.before.popitem(last=False)

    def leave(self) -> None:
        self.is_in = False

    def told(self) -> str:
        return self.last.told(self.is_in)


calls = Calls()


def mismatch(rank: int, others: dict[int, Told | None]) -> str | None:
    """What to say where another process has made other calls than this one."""
    for i, other in sorted(others.items()):
        mine = calls.before.get(other.number) if other is not None else None
        if other is not None and mine is not None and mine.path != other.path:
            return (
                f"gradix.distributed: processes {rank} and {i} have called different programs: call number "
                f"{other.number} over several processes is of {mine.name!r} in process {rank} and of "
                f"{other.name!r} in process {i}, or one of those before differs, be it in shapes or in constants. "
                "Results since then are worthless. All processes must call the same programs in the same order, "
                "with arrays of the same types."
            )
    return None


def explanation(
    rank: int, mine: Call, others: dict[int, Told | None], seconds: float
) -> tuple[str, bool]:
    """Why a call does not end, and whether it never will: another process is in another program.

    Args:
        others: what each said last; None for a silent one.
    """
    lines, never = [], False
    for i, other in sorted(others.items()):
        if other is None or other.number < mine.number:
            last = (
                "it has made none"
                if other is None or not other.number
                else (
                    f"its last is number {other.number}, {other.name!r}"
                    f"{', which it is in' if other.is_in else ', which has ended'}"
                )
            )
            lines.append(f"process {i} is missing: {last}")
        elif other.digest != mine.digest and other.number == mine.number:
            never = True
            lines.append(f"process {i} is in another program: {other.name!r}")
    head = (
        f"gradix.distributed: process {rank} has waited {seconds:.0f} s in {mine.name!r}, its call number "
        f"{mine.number} over several processes"
    )
    if not lines:
        return (
            f"{head}. All others are in it, too: the network may be slow, or the work large.",
            False,
        )
    return (
        f"{head}: {'; '.join(lines)}. All processes must call the same programs in the same order.",
        never,
    )


def decide(
    rank: int, others: dict[int, Told | None], said: int, now: float
) -> tuple[str | None, bool]:
    """What to say of the call this process is in, if anything, and whether the process is to end.

    Args:
        said: the number of the call that was last spoken of.
    """
    limit, mine = config.state.gradix_collective_timeout, calls.last
    if not calls.is_in or limit is None:
        return None, False
    seconds = now - mine.since
    if seconds < limit / _SHORT or (said == mine.number and seconds < limit):
        return None, False
    text, never = explanation(rank, mine, others, seconds)
    return text, never or seconds >= limit
