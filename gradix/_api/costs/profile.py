"""`gradix.profile`: what each line of a program costs, in time, memory traffic and arithmetic."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradix._api.costs.lines import shown_bytes, source
from gradix._api.costs.memory import Memory, memory_of
from gradix._api.costs.recording import STAGES_OF_COMPILATION, Recording, Work
from gradix._api.jit.jit import jit
from gradix._api.jit.jitted_function import JitFunction
from gradix._base.lazy import lazy_module
from gradix._base.source import located
from gradix._base.tree import tree_leaves

_page = lazy_module("gradix._api.costs.page")
_pandas = lazy_module("pandas")
_rich = lazy_module("gradix._api.rich_tables")
_SHOWN = 20  # rows of a table that is printed
_STAGES = (*STAGES_OF_COMPILATION, "run", "eager")


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileRow:
    """What a line, scope or operation cost.

    Attributes:
        file, line: its place; empty and 0 for what the compiler added.
        source: the text of the line, or the name of the scope or operation.
        phase: "forward", "backward" or "again" (computed again in the backward pass) in a
            derivative, else empty.
        calls: how often operations of it ran.
        seconds: the time of these operations, summed over threads.
        share: the part of the time of all rows.
        bytes: the bytes that they read and wrote.
        flops: the numbers that they computed; two for each product that is summed up.
    """

    file: str
    line: int
    source: str
    phase: str
    calls: int
    seconds: float
    share: float
    bytes: float
    flops: float


class Profile:
    """A recorded profile; made by `gradix.profile`.

    Attributes:
        result: what the profiled function returned; None for a block.
        seconds: how long the block took, or the call.
        lines: a `ProfileRow` for each line and phase, the costliest first; their shares sum to 1.
        scopes, operations: the same by the names of functions, scopes and transformations, and by
            the names of operations.
        stages: the seconds for "trace", "lower", "compile", "load" (from disk), "run" (of compiled
            programs), "eager" (operations outside of them) and "other".
    """

    def __init__(self, recording: Recording, result: Any = None):
        self._recording, self.result = recording, result
        self.seconds = recording.seconds
        self._work = recording.work()
        self.lines = _rows(self._work, lambda w: (w.place, w.phase))
        self.scopes = _rows(self._work, lambda w: (w.scope.rpartition("/")[0] or w.scope, ""))
        self.operations = _rows(self._work, lambda w: (w.operation, ""))
        self.stages = _stages(recording)

    def __str__(self) -> str:
        return table(self, _SHOWN)

    def __rich__(self):
        rows = [(_cells(row), row.share) for row in self.lines[:_SHOWN]]
        return _rich.table(_head(self), _HEAD, rows, ("line", ""), _rest(self, _SHOWN))

    def __repr__(self) -> str:
        return f"<Profile of {1e3 * self.seconds:.1f} ms, {len(self.lines)} lines; print it for the table>"

    def memory(self) -> dict[str, Memory]:
        """What each compiled program that ran has in memory at most, by line, as `jit(f).memory` tells.

        Example:
            >>> import gradix, gradix.numpy as jnp
            >>> p = gradix.profile(lambda x: jnp.sort(x @ x).sum())(jnp.ones((128, 128)))
            >>> [table.arguments for table in p.memory().values()]
            [65536]
        """
        found: dict[str, Memory] = {}
        for (name, _), signature in self._recording.signatures.items():
            table = memory_of(*signature)
            if name not in found or found[name].peak < table.peak:
                found[name] = table
        return found

    def to_pandas(self, by: str = "lines"):
        """The rows as a pandas DataFrame; `by` is "lines", "scopes" or "operations"."""
        return _pandas.DataFrame([dataclasses.asdict(row) for row in getattr(self, by)])

    def to_html(self) -> str:
        """One page that needs nothing else: the table, the source with heat, a timeline, memory."""
        return _page.page(self)

    def save(self, path: str | os.PathLike) -> None:
        """Write the page of `to_html` to a file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return _page.embedded(self)

    def perfetto(self, path: str | os.PathLike) -> None:
        """Write the timeline for ui.perfetto.dev: JSON, compressed if the name ends in ".gz"."""
        events: list[dict] = [
            {
                "name": run.name,
                "cat": run.program,
                "ph": "X",
                "ts": 1e6 * run.start,
                "dur": 1e6 * run.seconds,
                "pid": 1,
                "tid": run.thread,
                "args": self._told(run),
            }
            for run in self._recording.runs
        ]
        data = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode()
        Path(path).write_bytes(gzip.compress(data) if str(path).endswith(".gz") else data)

    def _told(self, run) -> dict[str, str]:
        """What is known of an operation: its line and its name in the user's program."""
        program = self._recording.programs.get((run.program, run.number))
        instruction = program.module.by_name.get(run.name) if program is not None else None
        if program is None or instruction is None:
            return {}
        origin = program.module.origin(instruction)
        return {"line": str(origin.place or ""), "scope": origin.scope, "type": str(instruction.shape)}


class profile:
    """What each line of a program costs: a context manager, or a function of a function.

    `with gradix.profile() as p: ...` records what runs in the block. Eager operations are waited
    for, so that each has its own time, and so are the arrays that exist at its end: keep results, or
    wait for them. `gradix.profile(f)(*args)` compiles `f`, calls it once to
    warm up if it has no effects and donates nothing, records a second call, and returns a `Profile`
    whose `result` is what the call returned.

    The programs that ran are compiled again, with lines, when the profile is made. Nothing is slower
    outside of the block.

    Args:
        fun: the function to profile, jitted or not.

    Raises:
        TypeError: `fun` is not callable.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> p = gradix.profile(lambda x: jnp.sin(x @ x).sum())(jnp.ones((128, 128)))
        >>> p.result.shape, round(sum(row.share for row in p.lines), 3)
        ((), 1.0)
        >>> with gradix.profile() as p:
        ...     y = jnp.ones((64, 64)) @ jnp.ones((64, 64))
        >>> p.stages["eager"] > 0
        True
    """

    def __init__(self, fun: Callable | None = None):
        if fun is not None and not callable(fun):
            raise TypeError(
                f"gradix.profile takes a function, or nothing as in `with gradix.profile() as p:`; got "
                f"{fun!r} of type {type(fun).__name__}."
            )
        self._fun = fun

    def __call__(self, *args, **kwargs) -> Profile:
        if self._fun is None:
            raise TypeError(
                "gradix.profile() without a function is a context manager: `with gradix.profile() as "
                "p:`. To profile a function, write gradix.profile(f)(*args)."
            )
        function = self._fun if isinstance(self._fun, JitFunction) else jit(self._fun)
        traced = function.trace(*args, **kwargs)._traced
        if not traced.donated and not traced.jaxpr.effects and traced.refs is None:
            if traced.placing is None:
                traced.compiled()
            _wait(function(*args, **kwargs))
        recording = Recording()
        with recording:
            result = function(*args, **kwargs)
            _wait(result)
        return Profile(recording, result)

    def __enter__(self) -> Profile:
        if self._fun is not None:
            raise TypeError("gradix.profile(f) is called with arguments: gradix.profile(f)(*args).")
        self._recording = Recording()
        self._recording.__enter__()
        self._made: Profile = Profile.__new__(Profile)
        return self._made

    def __exit__(self, *exc) -> None:
        self._recording.__exit__(*exc)
        self._made.__init__(self._recording)  # type: ignore[misc]


def _wait(tree) -> None:
    for leaf in tree_leaves(tree):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()


def _rows(work: list[Work], key: Callable[[Work], tuple]) -> list[ProfileRow]:
    groups: dict[tuple, list[Work]] = {}
    for w in work:
        groups.setdefault(key(w), []).append(w)
    whole = sum([w.seconds for w in work])
    rows = []
    for (of, when), held in groups.items():
        file, line, text = ("", 0, of or "(added by the compiler)")
        if of is not None and not isinstance(of, str):
            file, line, text = of.file, of.line, source(of.file, of.line)
        seconds = sum([w.seconds for w in held])
        rows.append(
            ProfileRow(
                file,
                line,
                text,
                when,
                sum([w.calls for w in held]),
                seconds,
                seconds / whole if whole else 1 / len(groups),
                sum([w.nbytes for w in held]),
                sum([w.flops for w in held]),
            )
        )
    return sorted(rows, key=lambda row: -row.seconds)


def _stages(recording: Recording) -> dict[str, float]:
    found = dict.fromkeys(_STAGES, 0.0)
    for event in recording.compiler:
        if event.kind in found:
            found[event.kind] += event.seconds
    end = 0.0
    for run in recording.runs:  # they overlap where several threads run operations
        if (run.program, run.number) not in recording.programs:
            continue
        first = max(run.start, end)
        end = max(end, run.start + run.seconds)
        found["run"] += max(end - first, 0.0)
    found["eager"] = sum([seconds for _, seconds, _ in recording.eager.values()])
    found["other"] = max(recording.seconds - sum(found.values()), 0.0)
    return found


_HEAD = ("ms", "share", "calls", "moved", "Mflop", "line", "")


def _head(p: Profile) -> str:
    """How long it took, by stages."""
    stages = ", ".join([f"{k} {1e3 * s:.1f} ms" for k, s in p.stages.items() if s >= 5e-5])
    return f"{1e3 * p.seconds:.1f} ms" + (f": {stages}" if stages else "")


def _cells(row: ProfileRow) -> tuple[str, ...]:
    when = f" ({row.phase})" if row.phase else ""
    return (
        f"{1e3 * row.seconds:.2f}",
        f"{100 * row.share:.1f} %",
        str(row.calls),
        shown_bytes(row.bytes),
        f"{1e-6 * row.flops:.1f}",
        os.path.basename(located(row.file, row.line)) if row.file else "",
        row.source[:60] + when,
    )


def _rest(p: Profile, most: int) -> str:
    """What is told of the rows that are not shown."""
    rest = p.lines[most:]
    return f"and {len(rest)} more lines with {100 * sum([r.share for r in rest]):.1f} %" if rest else ""


def table(p: Profile, most: int) -> str:
    """The first rows by line, as text."""
    cells = [_HEAD, *[_cells(row) for row in p.lines[:most]]]
    widths = [max([len(c[k]) for c in cells]) for k in range(6)]
    lines = [
        "  ".join([f"{c[k]:>{widths[k]}}" if k < 5 else f"{c[k]:<{widths[k]}}" for k in range(6)]) + f"  {c[6]}"
        for c in cells
    ]
    return "\n".join(filter(None, [_head(p), *[line.rstrip() for line in lines], _rest(p, most)]))
