"""Counts the traces of a jitted function and explains them: `f.stats()` and `max_traces`."""

from __future__ import annotations

import collections
import dataclasses
import reprlib
import threading
import weakref
from itertools import count
from typing import Any

from gradix._api.jit import retraces
from gradix._api.jit.specialize_paths import NO_PATHS, Paths
from gradix._base import config as _config, events
from gradix._base.config import apart
from gradix._base.errors import RetraceError
from gradix._base.lazy import lazy_module
from gradix._core.jaxpr import DebugInfo

_showing = lazy_module("gradix._api.showing")
_options = _config.state
# how many functions of a code were traced
_made_of: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_REMEMBERED = 64  # a new signature is compared with this many earlier ones
_REASONS = 1024  # at most this many reasons are kept per function; the oldest are dropped first


@dataclasses.dataclass(frozen=True)
class Stats:
    """The result of `f.stats()`.

    Attributes:
        traces: how often the Python function was run to trace it.
        calls: how often the compiled function was called.
        compiles: how many programs XLA compiled for it.
        seconds: the time spent tracing, compiling and loading.
        reasons: for each trace after the first, what differed from the most similar trace before.
        loads: how many compiled programs came from the disk cache.
        paths: the paths that a function jitted with specialize=True has taken.
    """

    traces: int
    calls: int
    compiles: int
    seconds: float
    reasons: tuple[str, ...]
    loads: int = 0
    paths: Paths = NO_PATHS

    def __repr__(self) -> str:
        fields = [f.name for f in dataclasses.fields(self) if f.name != "paths" or self.paths is not NO_PATHS]
        return f"Stats({', '.join([f'{name}={getattr(self, name)!r}' for name in fields])})"

    def _repr_html_(self) -> str:
        return _showing.stats(self)


class Signature:
    """What one trace depends on."""

    __slots__ = ("context", "axes", "tree", "names", "avals", "statics")

    def __init__(self, context, axes, tree, names: DebugInfo, avals, statics):
        self.context, self.axes, self.tree, self.names = context, tuple(axes), tree, names
        self.avals = avals
        # a static argument may change, so that its text is made now
        self.statics = [(n, key, f"{_shown(x)} of type {type(x).__name__}") for n, key, x in statics]

    def parts(self) -> dict[tuple[str, str], tuple[Any, str]]:
        """For each part by name, a key to compare and a text to show."""
        parts = {("static argument", name): (key, text) for name, key, text in self.statics}
        for name, aval in zip(self.names.arg_names, self.avals):
            parts["argument", name] = (aval, str(aval).lstrip("~") + (" (weakly typed)" if aval.weak_type else ""))
        parts["the structure of", "the arguments"] = self.tree, str(self.tree)
        parts["named", "axes"] = self.axes, str(self.axes)
        mesh, others = apart(self.context, "gradix_auto_mesh")
        parts["the mesh of", "the arguments"] = mesh, "none" if mesh is None else str(mesh)
        parts["the", "configuration"] = others, "as set"
        return parts


class TraceLog:
    """Counts and times the traces of one jitted function, and finds the reason of each retrace."""

    __slots__ = ("traces", "compiles", "loads", "seconds", "reasons", "_known", "_code", "lock")

    def __init__(self, function: Any = None):
        self.traces = self.compiles = self.loads = 0
        self.lock = threading.RLock()
        self._code = getattr(function, "__code__", None)
        self.seconds = 0.0
        self.reasons: collections.deque[str] = collections.deque(maxlen=_REASONS)
        self._known: collections.deque[Signature] = collections.deque(maxlen=_REMEMBERED)

    def add(self, signature: Signature, name: str, limit: int | None) -> str:
        """Count a trace that is about to be made.

        Returns:
            The reason of the trace.

        Raises:
            RetraceError: `limit` traces have been made; the message says what differs.
        """
        known = list(self._known)
        reason = _difference(known, signature) if known else ""
        if limit is not None and self.traces >= limit:
            raise RetraceError(
                f"{name} was jitted with max_traces={limit} and would be traced once more ({self.traces} so far): "
                f"{reason or 'no trace is allowed'}. Call it with the shapes, dtypes and static values it was "
                "traced for, or raise max_traces."
            )
        self.traces += 1
        if known:
            self.reasons.append(reason)
            if retraces.is_due(len(self.reasons)) and not retraces.is_own(self._code):
                retraces.warn(name, list(self.reasons))
        self._known.append(signature)
        reason = reason or self._first_reason()
        if _options.jax_explain_cache_misses:
            retraces.log_miss(name, reason)
        return reason

    def _first_reason(self) -> str:
        """Why a function is traced that never was: it is new, or made anew of code that was."""
        if self._code is None or self.traces > 1 or retraces.is_own(self._code):
            return "never traced before"
        made = _made_of[self._code] = _made_of.get(self._code, 0) + 1
        if made == 1:
            return "never traced before"
        return f"function number {made} of the same code; make it once, and pass what it captures as arguments"

    def forget(self) -> None:
        """Drop what earlier traces depended on, such as static arguments; the counts stay."""
        self._known.clear()

    def traced(self, name: str, seconds: float, reason: str) -> None:
        """Add the time of a trace."""
        self.seconds += seconds
        events.tell("trace", name, seconds, reason)

    def another_way(self, reason: str) -> None:
        """Count a run of the Python function for a new value of a decision."""
        self.traces += 1
        self.reasons.append(reason)

    def compiled(self, seconds: float, is_loaded: bool = False) -> None:
        """Count a program compiled by XLA, or loaded from disk."""
        if is_loaded:
            self.loads += 1
        else:
            self.compiles += 1
        self.seconds += seconds

    def stats(self, calls: int, paths: Paths = NO_PATHS) -> Stats:
        return Stats(self.traces, calls, self.compiles, self.seconds, tuple(self.reasons), self.loads, paths)


def _difference(known: list[Signature], new: Signature) -> str:
    """How a signature differs from the most similar known one; the latest, if several are."""
    now = new.parts()
    ways = [(_changes(old, now), _apart(old, now)) for old in [k.parts() for k in reversed(known)]]
    changes, _ = min(ways, key=lambda way: (len(way[0]), way[1]))
    return "; ".join(changes) or "traced before, but not kept"


def _apart(old: dict, new: dict) -> int:
    """The number of shapes and dtypes that differ, among arguments that both signatures have."""
    pairs = [(old[place][0], key) for place, (key, _) in new.items() if place in old and place[0] == "argument"]
    return sum([(a.shape != b.shape) + (a.dtype != b.dtype) for a, b in pairs if a is not b])


def _changes(old: dict, new: dict) -> list[str]:
    out = []
    for place, (key, text) in new.items():
        kind, name = place
        if place not in old:
            out.append(f"{kind} {name} is new: {text}")
        elif not _equal(old[place][0], key):
            before, was = old[place]
            changed = f"{kind} {name} changed{_attributes_apart(before, key)}"
            out.append(f"{kind} {name}: {was} -> {text}" if was != text else changed)
    return out + [
        f"{kind} {name} is gone: {text}" for (kind, name), (_, text) in old.items() if (kind, name) not in new
    ]


def _attributes_apart(old: Any, new: Any) -> str:
    """The attributes in which two fingerprints of objects of one class differ, as the end of a sentence."""
    both = [dict(key[1]) for key in (old, new) if _is_of_attributes(key)]
    if len(both) < 2 or old[0] is not new[0]:
        return ""
    apart = [name for name in {**both[0], **both[1]} if not _equal(both[0].get(name), both[1].get(name))]
    return f" in its attribute{'s' if len(apart) > 1 else ''} {', '.join(apart)}" if apart else ""


def _is_of_attributes(key: Any) -> bool:
    content = key[1] if isinstance(key, tuple) and len(key) == 2 else None
    return isinstance(content, tuple) and all(
        isinstance(part, tuple) and len(part) == 2 and type(part[0]) is str for part in content
    )


def _equal(a, b) -> bool:
    try:
        return bool(a == b)
    except Exception:  # the __eq__ of a static argument raised
        return a is b


def _shown(value) -> str:
    try:
        return reprlib.repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def reached(counter: count) -> int:
    """How often `next` was called on a counter; the counter misses no call of another thread."""
    return int(repr(counter)[len("count(") : -1])
