"""`jit(f).memory(*args)`: the memory of a compiled program, explained by line."""

from __future__ import annotations

import dataclasses
import os
from html import escape
from typing import Any

from gradix._api.costs.lines import Lined, lined, phase, shown_bytes, source
from gradix._api.jit.traced import Traced
from gradix._base.lazy import lazy_module
from gradix._base.source import located
from gradix._core import display as _display
from gradix._core.trace import state
from gradix._runtime.hlo.buffers import Buffer, buffers, peak

_rich = lazy_module("gradix._api.rich_tables")
_SHOWN = 25  # rows at most
_HEAD = ("bytes", "share", "made by", "until", "what")


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryRow:
    """What one line has in memory at the moment of the most.

    Attributes:
        file, line: the place that made the values; empty and 0 for arguments.
        source: the text of this line.
        bytes: the memory they take.
        until: the place of the last operation that reads them, as "file:line"; empty for results.
        count: how many arrays they are.
        shape: the type of the largest.
        kind: "argument", "result" or "temporary".
        phase: "forward", "backward" or "again" in a derivative.
        name: the name of an argument, or of the operation.
    """

    file: str
    line: int
    source: str
    bytes: int
    until: str
    count: int
    shape: str
    kind: str
    phase: str
    name: str


class Memory:
    """The memory of a compiled program at the moment of the most; made by `jit(f).memory(*args)`.

    Attributes:
        peak: the bytes of arguments, results and temporaries, as XLA counts them.
        arguments, results, temporaries: the parts of it.
        rows: a `MemoryRow` for each line with something in memory then, the largest first. Their
            bytes sum to the peak, but for gaps between buffers.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> outer = gradix.jit(lambda x: (x[:, None] * x @ x).sum())
        >>> outer.memory(jnp.ones(512)).arguments
        2048
    """

    def __init__(self, found: Lined, names: tuple[str, ...] = ()):
        sizes = found.program.executable.memory_analysis()
        self.arguments = sizes.argument_size_in_bytes
        self.results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        self.temporaries = sizes.temp_size_in_bytes
        self.peak = self.arguments + self.results + self.temporaries
        self.rows = _rows(found, names)

    def _head(self) -> str:
        return (
            f"peak {shown_bytes(self.peak)} = arguments {shown_bytes(self.arguments)} + results "
            f"{shown_bytes(self.results)} + temporaries {shown_bytes(self.temporaries)}"
        )

    def _cells(self) -> list[tuple[str, ...]]:
        """The first rows, as texts."""
        cells: list[tuple[str, ...]] = []
        for row in self.rows[:_SHOWN]:
            share = f"{100 * row.bytes / max(self.peak, 1):.1f} %"
            cells.append((shown_bytes(row.bytes), share, _made_by(row), _short(row.until), _what(row)))
        return cells

    def _rest(self) -> str:
        """What is told of the rows that are not shown."""
        rest = self.rows[_SHOWN:]
        return f"and {len(rest)} more lines with {shown_bytes(sum(r.bytes for r in rest))}" if rest else ""

    def _repr_html_(self) -> str:
        return _display.frame(self._head(), _display.rows(self._cells(), _HEAD), escape(self._rest()))

    def __rich__(self):
        shares = [row.bytes / max(self.peak, 1) for row in self.rows]
        return _rich.table(self._head(), _HEAD, zip(self._cells(), shares), _HEAD[2:], self._rest())

    def __str__(self) -> str:
        cells = [_HEAD, *self._cells()]
        widths = [max(len(c[k]) for c in cells) for k in range(5)]
        lines = [
            f"{a:>{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d:<{widths[3]}}  {e}".rstrip()
            for a, b, c, d, e in cells
        ]
        return "\n".join(filter(None, [self._head(), *lines, self._rest()]))

    def __repr__(self) -> str:
        return f"<Memory: peak {shown_bytes(self.peak)}, {len(self.rows)} rows; print it for the table>"


def memory_of(traced: Traced, avals: tuple) -> Memory:
    """The memory of the program of a signature."""
    return Memory(lined(traced, avals), operand_names(traced))


def operand_names(traced: Traced) -> tuple[str, ...]:
    """The names of what a signature's program is called with."""
    every = traced.debug.arg_names
    own = ["(captured)" if i is None else every[i] for i in traced.operands]
    return (*["(captured)"] * len(traced.consts), *own)


def parameter_name(found: Lined, parameter: int, names: tuple[str, ...]) -> str:
    """The name of a parameter of a compiled program, of the names of what it is called with."""
    lowered = found.program.lowered
    number = parameter - len(lowered.const_args)
    if not 0 <= number < len(lowered.kept):
        return "(captured)"
    position = lowered.kept[number]
    return names[position] if position < len(names) else ""


def explain(error: Exception, function: Any, args: tuple, kwargs: dict) -> None:
    """Note the table of what is alive at the moment of the most, in the error of a failed allocation."""
    if getattr(error, "__notes__", None) or state.stage is not None:
        return
    try:
        table = function.memory(*args, **kwargs)
    except Exception:  # it is no help for the first error
        return
    error.add_note(
        f"The memory of the jit-compiled function {function.__name__} at the moment of the most:\n{table}\n"
        "To take less, compute parts of it again with gradix.checkpoint or jit(f, memory='2GiB'), or divide the "
        "work: lax.map, vmap(f, chunk_size=n)."
    )


def _rows(found: Lined, names: tuple[str, ...]) -> list[MemoryRow]:
    module = found.module
    assignment = found.program.executable.memory_analysis().serialized_buffer_assignment_proto
    groups: dict[tuple, list[tuple[Buffer, int]]] = {}
    for buffer, nbytes in peak(*buffers(module, assignment)).alive:
        if nbytes:
            origin = module.origin(buffer.made_by)
            is_argument = buffer.kind == "argument"
            place = None if is_argument else origin.place
            when = "" if is_argument else phase(origin)
            key = place or buffer.made_by.name, buffer.kind, when
            groups.setdefault(key, []).append((buffer, nbytes))
    rows = [_row(found, key, held, names) for key, held in groups.items()]
    return sorted(rows, key=lambda r: -r.bytes)


def _row(found: Lined, key: tuple, held: list[tuple[Buffer, int]], names) -> MemoryRow:
    module, (_, kind, when) = found.module, key
    largest = max(held, key=lambda pair: pair[1])[0]
    last = max(held, key=lambda pair: pair[0].last)[0].last_used_by
    end = module.origin(last).place if last is not None and kind != "result" else None
    place = module.origin(largest.made_by).place if kind != "argument" else None
    return MemoryRow(
        place.file if place else "",
        place.line if place else 0,
        source(*place) if place else "",
        sum([n for _, n in held]),
        str(end) if end else "",
        len(held),
        str(largest.shape),
        kind,
        when,
        _name(found, largest, names) if kind == "argument" else module.origin(largest.made_by).scope,
    )


def _name(found: Lined, buffer: Buffer, names) -> str:
    """The name of the argument in a buffer."""
    if buffer.made_by.id not in [p.id for p in found.module.entry.parameters]:
        return ""
    return parameter_name(found, buffer.made_by.parameter, names)


def _made_by(row: MemoryRow) -> str:
    if row.kind == "argument":
        return f"argument {row.name}".rstrip()
    if not row.file:
        return "the compiler"
    return f"{_short(located(row.file, row.line))}  {row.source[:48]}"


def _what(row: MemoryRow) -> str:
    arrays = "" if row.count == 1 else f"{row.count} arrays, largest "
    when = f" ({row.phase})" if row.phase else ""
    return f"{row.kind}{when}: {arrays}{row.shape}"


def _short(place: str) -> str:
    return os.path.basename(place)
