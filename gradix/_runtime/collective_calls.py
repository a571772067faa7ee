"""The calls of programs that communicate: they are awaited, and recorded to explain one that does not end."""

from __future__ import annotations

import collections
import hashlib
import re
import threading
import time
import zlib
from collections.abc import Callable
from typing import NamedTuple

from gradix._base import config

_REMEMBERED = 4096
_REPORTS_BEFORE_END = 10  # A call is reported after this fraction of the time that ends the process.


class Call(NamedTuple):
    """A call of a program over several processes.

    Attributes:
        number: the number of the call, from 1.
        name, digest: the program's name, and a digest of its text.
        since: when the call began.
        path: a checksum of the digests of all calls up to this one.
    """

    number: int
    name: str
    digest: str
    since: float
    path: int = 0

    def message(self, is_running: bool) -> str:
        """The text by which other processes learn of the call."""
        return f"{self.number}|{self.path:x}|{self.digest}|{'in' if is_running else 'done'}|{self.name}"


class RemoteCall(NamedTuple):
    """The last call of another process, read from its message."""

    number: int
    path: int
    digest: str
    is_running: bool
    name: str

    @classmethod
    def read(cls, text: str) -> RemoteCall:
        number, path, digest, state, name = text.split("|", 4)
        return cls(int(number), int(path, 16), digest, state == "in", name)


class Calls:
    """The last call of this process, whether it is still running, and the calls before it.

    `ask` gives the rank of this process, and the last calls of the others as far as they have told them.
    """

    __slots__ = ("last", "is_running", "before", "ask", "_lock")

    def __init__(self) -> None:
        self.ask: Callable[[], tuple[int, dict]] = lambda: (0, {})
        self.last = Call(0, "", "", 0.0)
        self.is_running = False
        self.before: collections.OrderedDict[int, Call] = collections.OrderedDict()
        self._lock = threading.Lock()

    def enter(self, name: str, digest: str) -> None:
        """Record that a call begins."""
        with self._lock:
            number, path = self.last.number + 1, zlib.crc32(digest.encode(), self.last.path)
            self.last = self.before[number] = Call(number, name, digest, time.monotonic(), path)
            self.is_running = True
            if len(self.before) > _REMEMBERED:
                self.before.popitem(last=False)

    def leave(self) -> None:
        """Record that the last call has ended."""
        self.is_running = False

    def message(self) -> str:
        """The text by which other processes learn of the last call."""
        return self.last.message(self.is_running)


calls = Calls()

_COLLECTIVE = re.compile(
    r" (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|ragged-all-to-all)"
    r"(?:-start)?\("
)
_MODULE = re.compile(r"\s*(?:builtin\.)?module @(\S+)")


def are_in(loaded) -> bool:
    """Whether the devices of an executable of XLA communicate."""
    return any(_COLLECTIVE.search(m.to_string()) for m in loaded.hlo_modules())


def waiting(run: Callable[[list], list], text: str, devices: tuple) -> Callable[[list], list]:
    """A function that runs a program whose devices communicate, and waits until it has ended.

    If several calls ran at the same time, XLA:CPU's threads could wait for each other for ever. If
    the devices are those of several processes, the calls are recorded. `text` is the module.
    """

    def call(buffers):
        outs = run(buffers)
        for out in outs:
            out.block_until_ready()
        return outs

    if all(d.process_index == devices[0].process_index for d in devices):
        return call
    found = _MODULE.match(text)
    name = found[1] if found else ""
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def joint(buffers):
        calls.enter(name, digest)
        try:
            return call(buffers)
        except Exception as error:
            if "Gloo" not in str(error):  # the library by which processes talk
                raise
            raise RuntimeError(lost(*calls.ask(), str(error).partition("\n")[0])) from error
        finally:
            calls.leave()

    return joint


def mismatch(rank: int, others: dict[int, RemoteCall | None]) -> str | None:
    """An error message if another process has called other programs than this one; else None."""
    for i, other in sorted(others.items()):
        mine = calls.before.get(other.number) if other is not None else None
        if other is not None and mine is not None and mine.path != other.path:
            return (
                f"gradix.distributed: processes {rank} and {i} have called different programs: call number "
                f"{other.number} over several processes is of {mine.name!r} in process {rank} and of "
                f"{other.name!r} in process {i}, or an earlier call differs in its program, shapes or "
                "constants. The results since then are wrong. All processes must call the same programs in "
                "the same order, with arrays of the same types."
            )
    return None


def lost(rank: int, others: dict[int, RemoteCall | None], why: str) -> str:
    """An error message for a call in which the connection to another process was lost, whose reason is `why`."""
    told = mismatch(rank, others)
    if told is not None:
        return told
    known = [
        f"that of process {i} was number {o.number}, {o.name!r}{', which had not ended' if o.is_running else ''}"
        for i, o in sorted(others.items())
        if o is not None
    ]
    return (
        f"gradix.distributed: process {rank} has lost another process in {calls.last.name!r}, its call number "
        f"{calls.last.number} over several processes ({why}). The last call that was told before: "
        f"{'; '.join(known) or 'none'}. The other process may have ended, whose output tells the reason, or may have "
        "called another program: all processes must call the same programs in the same order, with arrays of the "
        "same types."
    )


def explanation(rank: int, mine: Call, others: dict[int, RemoteCall | None], seconds: float) -> tuple[str, bool]:
    """A text that says why a call does not end, and whether it never will.

    A call never ends if another process runs another program instead.

    Args:
        rank: the number of this process.
        mine: its call.
        others: the last call of each other process; None if it has sent no message.
        seconds: how long the call has been running.
    """
    lines, never = [], False
    for i, other in sorted(others.items()):
        if other is None or other.number < mine.number:
            last = (
                "it has made none"
                if other is None or not other.number
                else (
                    f"its last is number {other.number}, {other.name!r}"
                    f"{', which it is in' if other.is_running else ', which has ended'}"
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
        return (f"{head}. All others are in it too: the network may be slow, or the work large.", False)
    return (f"{head}: {'; '.join(lines)}. All processes must call the same programs in the same order.", never)


def decide(rank: int, others: dict[int, RemoteCall | None], reported: int, now: float) -> tuple[str | None, bool]:
    """A message about the running call, or None, and whether this process must end.

    Args:
        rank: the number of this process.
        others: the last call of each other process.
        reported: the number of the call that was last reported.
        now: the current time.
    """
    limit, mine = config.state.gradix_collective_timeout, calls.last
    if not calls.is_running or limit is None:
        return None, False
    seconds = now - mine.since
    if seconds < limit / _REPORTS_BEFORE_END or (reported == mine.number and seconds < limit):
        return None, False
    text, never = explanation(rank, mine, others, seconds)
    return text, never or seconds >= limit
