"""The page of a profile: one HTML file without anything from a network.

What is drawn is told as JSON; `web/page.js` and `web/graph.js` draw it, with the libraries that `make charts` has
bundled. Tables and source are HTML, so that all figures are there without a script, and for a keyboard.
"""

from __future__ import annotations

import base64
import functools
import gzip
import html
import json
import linecache
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradix._api.costs import machine_peak
from gradix._api.costs.flow import Flow
from gradix._api.costs.lines import Lined, shown_bytes
from gradix._api.costs.memory import Memory, operand_names, parameter_name
from gradix._base.source import located
from gradix._runtime.hlo.buffers import buffers, peak, taken
from gradix._runtime.hlo.module import Place

if TYPE_CHECKING:
    from gradix._api.costs.profile import Profile, ProfileRow

_WEB = Path(__file__).with_name("web")
_MOST_RUNS = 4000  # the timeline leaves out the shortest beyond
_MOST_BOXES = 3000  # of the graphs of all programs
_MOST_PROGRAMS = 12
_MOST_MOMENTS = 800  # of the curve of memory
_AROUND = 3  # lines of source around those with costs
_FOOT = (
    "<footer class='quiet'>Drawn with Apache ECharts (Apache-2.0) and dagre (MIT); "
    "their notices are in the page, compressed with them.</footer>"
)
_STAGES = ("trace", "lower", "compile", "load", "run", "eager", "other")


class _Numbered:
    """A list of texts or places that holds each once."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return -1 if value is None else self._numbers.setdefault(value, len(self._numbers))

    def __iter__(self):
        return iter(self._numbers)


class _Page:
    """The parts of a page, which share a list of texts and one of places."""

    def __init__(self, p: Profile):
        self.p = p
        self.text, self.place = _Numbered(), _Numbered()

    def html(self) -> str:
        p = self.p
        took = p._recording.counted()
        found = sorted(p._recording.programs, key=lambda key: -sum([c.seconds for c in took[key].values()]))
        programs, left = [], _MOST_BOXES
        for key in found[:_MOST_PROGRAMS]:
            flow = Flow(p._recording.programs[key].module, took[key], left)
            left = max(left - len(flow.nodes), 0)
            programs.append(self._program(key, flow))
        parts = [_head(p), self._lines(), self._source()]
        if programs:
            parts += [
                _section("program", "Program", _programs(p, found)),
                _section("timeline", "Timeline", self._operations()),
            ]
            tables = [self._memory_table(k, self._memory_of(key)) for k, key in enumerate(found[:_MOST_PROGRAMS])]
            parts.append(_section("memory", "Memory", "".join(tables)))
        else:
            parts.append("<section><h2>Timeline</h2><p>No compiled program ran.</p></section>")
        parts.append(_FOOT if programs else "")
        data = {"programs": programs, **self._timeline()}
        data |= {"texts": list(self.text), "places": [self._shown(at) for at in self.place]}
        told = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        return (
            f"<div class='gradix'><style>{_read('page.css')}</style>{''.join(parts)}"
            f'<script type="application/json">{told}</script>'
            f'<script type="text/plain" class="charts">{_charts()}</script><script>{_script()}</script></div>'
        )

    def _shown(self, at: Place) -> list:
        return [os.path.basename(located(*at)), linecache.getline(*at).strip()[:120]]

    def _at(self, file: str, line: int) -> str:
        """The attribute by which rows of the page are found that tell of a line."""
        return f"data-place='{self.place(Place(file, line))}'" if file else ""

    # -- tables ---------------------------------------------------------------------------------------

    def _lines(self) -> str:
        heads = [("ms", 1), ("share", 1), ("calls", 1), ("moved", 1), ("Mflop", 1), ("Gflop/s", 1)]
        heads += [("of peak", 1), ("pass", 0), ("line", 0), ("source", 0)]
        top = machine_peak.measured()
        rows = []
        for r in self.p.lines:
            place = os.path.basename(located(r.file, r.line)) if r.file else ""
            numbers = [
                (f"{1e3 * r.seconds:.3f}", r.seconds),
                (f"{100 * r.share:.1f} %", r.share),
                (str(r.calls), r.calls),
                (shown_bytes(r.bytes), r.bytes),
                (f"{1e-6 * r.flops:.2f}", r.flops),
                (f"{1e-9 * r.flops / r.seconds:.2f}" if r.seconds else "", r.flops / (r.seconds or 1)),
                _of_peak(top, r),
            ]
            cells = "".join([f"<td class='n' data-v='{v!r}'>{t}</td>" for t, v in numbers])
            rows.append(
                f"<tr {self._at(r.file, r.line)} data-text='{_quoted(f'{place} {r.source} {r.phase}')}'>{cells}"
                f"<td>{r.phase}</td><td title='{_quoted(r.file)}'>{_link(place)}</td>"
                f"<td class='code' style='--share:{r.share:.4f}'>{html.escape(r.source[:120])}</td></tr>"
            )
        told = (
            f"<p class='quiet'>This machine reaches {1e-9 * top.flops:.0f} Gflop/s in a product, and moves "
            f"{1e-9 * top.bytes:.1f} GB/s; <i>of peak</i> is the part of the one that a line is closer to, "
            "and more than 100 % where the caches serve it.</p>"
        )
        return f"<section class='lines'><h2>Lines</h2>{_table(heads, rows)}{told}</section>"

    def _operations(self) -> str:
        """The table below the timeline, of the same operations."""
        heads = [("ms", 1), ("share", 1), ("calls", 1), ("moved", 1), ("Mflop", 1), ("operation", 0)]
        rows = []
        for r in self.p.operations[:40]:
            numbers = [
                (f"{1e3 * r.seconds:.3f}", r.seconds),
                (f"{100 * r.share:.1f} %", r.share),
                (str(r.calls), r.calls),
            ]
            numbers += [(shown_bytes(r.bytes), r.bytes), (f"{1e-6 * r.flops:.2f}", r.flops)]
            cells = "".join([f"<td class='n' data-v='{v!r}'>{t}</td>" for t, v in numbers])
            rows.append(
                f"<tr data-text='{_quoted(r.source)}'>{cells}"
                f"<td class='code' style='--share:{r.share:.4f}'>{html.escape(r.source)}</td></tr>"
            )
        rest = len(self.p.operations) - len(rows)
        more = f"<p class='quiet'>and {rest} more, which <code>p.operations</code> has</p>" if rest > 0 else ""
        return f"<details><summary>Operations by name</summary>{_table(heads, rows)}{more}</details>"

    def _source(self) -> str:
        """The files with costs: the lines around those, each with its time and heat."""
        cost: dict[str, dict[int, float]] = {}
        for r in self.p.lines:
            if r.file:
                lines = cost.setdefault(r.file, {})
                lines[r.line] = lines.get(r.line, 0.0) + r.share
        parts = []
        for file, lines in sorted(cost.items(), key=lambda item: -sum(item[1].values())):
            shown = sorted({n for at in lines for n in range(max(at - _AROUND, 1), at + _AROUND + 1)})
            rows, before = [], 0
            for n in shown:
                text = linecache.getline(file, n)
                if not text:
                    continue
                if before and n > before + 1:
                    rows.append("<tr class='gap'><td colspan='2'></td><td class='number'>⋯</td><td></td></tr>")
                before, share = n, lines.get(n, 0.0)
                told = f"{100 * share:.1f} %" if n in lines else ""
                at = self._at(file, n) if n in lines else ""
                rows.append(
                    f"<tr {at} style='--share:{share:.4f}'><td class='n'>{told}</td><td class='heat'></td>"
                    f"<td class='number'>{n}</td><td class='code'>{html.escape(text.rstrip())}</td></tr>"
                )
            parts.append(
                f"<details open><summary>{html.escape(file)} <b>{100 * sum(lines.values()):.1f} %</b></summary>"
                f"<div class='wide'><table class='source'><tbody>{''.join(rows)}</tbody></table></div></details>"
            )
        told = "".join(parts) or "<p>No line of a file was seen.</p>"
        return f"<section class='files'><h2>Source</h2>{told}</section>"

    # -- what is drawn --------------------------------------------------------------------------------

    def _program(self, key: tuple[str, int], flow: Flow) -> dict:
        recording = self.p._recording
        found, names = recording.programs[key], operand_names(recording.signatures[key][0])
        called = {p.parameter: parameter_name(found, p.parameter, names) for p in found.module.entry.parameters}
        return {"name": key[0], **flow.told(self.text, self.place, called), "memory": self._curve(found)}

    def _memory_of(self, key: tuple[str, int]) -> Memory:
        recording = self.p._recording
        return Memory(recording.programs[key], operand_names(recording.signatures[key][0]))

    def _curve(self, found: Lined) -> dict:
        """The bytes in memory in the order of operations: at each of some moments the operation, and its line."""
        module = found.module
        sizes = found.program.executable.memory_analysis()
        held, allocated = buffers(module, sizes.serialized_buffer_assignment_proto)
        order = list(module.running())
        series = taken(held, len(order))
        step = max(-(-len(series) // _MOST_MOMENTS), 1)
        most = peak(held, allocated).position
        moments = [
            most if k <= most < k + step else max(range(k, min(k + step, len(series))), key=series.__getitem__)
            for k in range(0, len(series), step)
        ]
        return {
            "arguments": sizes.argument_size_in_bytes,
            "results": sizes.output_size_in_bytes - sizes.alias_size_in_bytes,
            "peak": most,
            "moments": [
                [k, series[k], self.text(order[k].name), self.place(module.origin(order[k]).place)] for k in moments
            ],
        }

    def _memory_table(self, number: int, memory: Memory) -> str:
        heads = [("bytes", 1), ("share", 1), ("what", 0), ("until", 0), ("made by", 0), ("source", 0)]
        rows = []
        for row, (shown, share, made_by, until, what) in zip(memory.rows, memory._cells()):
            place = os.path.basename(located(row.file, row.line)) if row.file else ""
            part = row.bytes / max(memory.peak, 1)
            rows.append(
                f"<tr {self._at(row.file, row.line)} data-text='{_quoted(f'{made_by} {what} {row.name}')}'>"
                f"<td class='n' data-v='{row.bytes}'>{shown}</td><td class='n' data-v='{part!r}'>{share}</td>"
                f"<td class='what' title='{_quoted(what)}'>{html.escape(what)}</td><td>{html.escape(until)}</td>"
                f"<td>{_link(place) or html.escape(made_by)}</td>"
                f"<td class='code' style='--share:{part:.4f}'>{html.escape(row.source[:90])}</td></tr>"
            )
        hidden = " hidden" if number else ""
        told = f"Alive at the most: {memory._head()}"
        return (
            f"<div class='of-program' data-program='{number}'{hidden}><p>{html.escape(told)}</p>"
            f"{_table(heads, rows)}<p class='quiet'>{html.escape(memory._rest())}</p></div>"
        )

    def _timeline(self) -> dict:
        """When each operation ran, on which thread, and when the compiler worked, in microseconds."""
        p = self.p
        longest = sorted(p._recording.runs, key=lambda r: -r.seconds)[:_MOST_RUNS]
        runs = []
        for r in sorted(longest, key=lambda r: (r.start, -r.seconds)):
            program = p._recording.programs.get((r.program, r.number))
            instruction = program.module.by_name.get(r.name) if program is not None else None
            origin = program.module.origin(instruction) if program is not None and instruction is not None else None
            at = self.place(origin.place if origin is not None else None)
            scope = self.text(origin.scope.rpartition("/")[2] if origin is not None else "")
            runs.append([self.text(r.name), round(1e6 * r.start, 2), round(1e6 * r.seconds, 2), r.thread, at, scope])
        compiler = [
            [
                self.text(f"{event.kind} {event.function}"),
                round(1e6 * (end - event.seconds), 1),
                round(1e6 * event.seconds, 1),
            ]
            for event, end in zip(p._recording.compiler, p._recording.ended)
            if event.kind in _STAGES
        ]
        return {"runs": runs, "compiler": compiler, "left_out": len(p._recording.runs) - len(runs)}


def page(p: Profile) -> str:
    """The whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f'<title>gradix profile</title></head><body style="margin:0">{embedded(p)}</body></html>\n'
    )


def embedded(p: Profile) -> str:
    """What the page shows, for a cell of a notebook."""
    return _Page(p).html()


def _read(name: str) -> str:
    return (_WEB / name).read_text(encoding="utf-8")


def _script() -> str:
    """What draws the page, in a scope of its own: a notebook may have several."""
    return f'(() => {{\n"use strict";\n{_read("graph.js")}\n{_read("page.js")}}})();'


@functools.cache
def _charts() -> str:
    """The libraries, compressed."""
    return base64.b64encode(gzip.compress((_WEB / "charts.min.js").read_bytes(), mtime=0)).decode()


def _quoted(text: str) -> str:
    return html.escape(text, quote=True)


def _link(place: str) -> str:
    return f"<button class='link' type='button'>{html.escape(place)}</button>" if place else ""


def _section(kind: str, title: str, below: str) -> str:
    return f"<section class='{kind}'><h2>{title}</h2><div class='{kind}-drawn'></div>{below}</section>"


def _programs(p: Profile, found: list) -> str:
    rest = len(found) - _MOST_PROGRAMS
    return f"<p class='quiet'>and {rest} more programs, which took less time</p>" if rest > 0 else ""


def _table(heads: list[tuple[str, int]], rows: list[str]) -> str:
    head = "".join([f"<th class='{'n' if n else ''}'><button type='button'>{name}</button></th>" for name, n in heads])
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _head(p: Profile) -> str:
    """How long it took, by stages, and the search."""
    shown = {k: s for k, s in p.stages.items() if s > 0}
    whole = sum(shown.values()) or 1.0
    bar = "".join([f"<i class='{k}' style='width:{100 * s / whole:.3f}%' title='{k}'></i>" for k, s in shown.items()])
    keys = "".join([f"<span class='key'><i class='{k}'></i>{k} {1e3 * s:.2f} ms</span>" for k, s in shown.items()])
    return (
        f"<header><h1>{1e3 * p.seconds:.1f} ms</h1><input type='search' placeholder='search lines and operations' "
        f"aria-label='search lines and operations'><output></output></header>"
        f"<div class='bar'>{bar}</div><p class='keys'>{keys}</p>"
    )


def _of_peak(top: machine_peak.Peak, r: ProfileRow) -> tuple[str, float]:
    share, limit = top.share(r.flops, r.bytes, r.seconds)
    return (f"{100 * share:.0f} % {limit}" if limit else "", share)
