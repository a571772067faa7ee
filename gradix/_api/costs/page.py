"""The page of a profile: one HTML file without anything from a network."""

from __future__ import annotations

import html
import json
import linecache
import os
from typing import TYPE_CHECKING, Any

from gradix._api.costs import machine_peak
from gradix._api.costs.lines import Lined, shown_bytes
from gradix._base.source import located
from gradix._runtime.hlo.buffers import buffers, peak
from gradix._runtime.hlo.module import NESTING, Computation, Module

if TYPE_CHECKING:
    from gradix._api.costs.profile import Profile, ProfileRow

_MOST_RUNS = 4000  # the timeline leaves out the shortest beyond
_AROUND = 3  # lines of source around those with costs
_COLORS = {
    "trace": "#7b6fd0", "lower": "#a487d6", "compile": "#c96fa6", "load": "#d69a6f",
    "run": "#3f9d6f", "eager": "#5aa7c7", "other": "#9a9a9a",
}  # fmt: skip

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1d21; --paper: #fff; --line: #d9dce1; --soft: #f3f4f6;
  --heat: 214, 69, 40; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #17191d; --line: #363a42;
  --soft: #22252b; --heat: 240, 110, 70; } }
.gradix { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 76rem; margin: auto; padding: 1rem; }
.gradix h2 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
.gradix table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.gradix th { text-align: left; cursor: pointer; border-bottom: 1px solid var(--line); }
.gradix td, .gradix th { padding: .12rem .5rem; white-space: nowrap; }
.gradix td.n, .gradix th.n { text-align: right; }
.gradix code, .gradix pre, .gradix td.code { font: 12.5px/1.5 ui-monospace, monospace; }
.gradix pre { margin: 0; white-space: pre; overflow-x: auto; }
.gradix .bar { display: flex; height: 1.1rem; border-radius: 3px; overflow: hidden; }
.gradix .key { margin-right: 1rem; } .gradix .key i { display: inline-block; width: .8em; height: .8em;
  margin-right: .3em; border-radius: 2px; }
.gradix input { font: inherit; padding: .2rem .5rem; width: 22rem; color: inherit;
  background: var(--soft); border: 1px solid var(--line); border-radius: 4px; }
.gradix details { margin-left: .8rem; } .gradix summary { cursor: pointer; }
.gradix svg { width: 100%; background: var(--soft); border-radius: 4px; display: block; }
.gradix svg text { fill: var(--ink); font-size: 11px; } .gradix .hidden { display: none; }
"""

_SCRIPT = """
(root => {
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const $ = q => root.querySelector(q);
  const search = $('input');
  search.addEventListener('input', () => {
    const wanted = search.value.toLowerCase();
    for (const row of root.querySelectorAll('[data-text]'))
      row.classList.toggle('hidden', !row.dataset.text.toLowerCase().includes(wanted));
  });
  root.querySelectorAll('th').forEach((head, k) => head.addEventListener('click', () => {
    const body = head.closest('table').tBodies[0], up = head.dataset.up = head.dataset.up ? '' : '1';
    const value = row => { const c = row.cells[k]; return c.dataset.v ? +c.dataset.v : c.textContent; };
    [...body.rows].sort((a, b) => { const x = value(a), y = value(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); }).forEach(row => body.append(row));
  }));
  const make = (tag, fill, parent) => { const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const k in fill) e.setAttribute(k, fill[k]); parent.append(e); return e; };
  const hue = text => { let h = 0; for (const c of text) h = (h * 31 + c.charCodeAt(0)) % 360; return h; };
  const line = $('svg.timeline');
  if (line && data.runs.length) {
    const end = Math.max(...data.runs.map(r => r[1] + r[2])), start = Math.min(...data.runs.map(r => r[1]));
    const threads = 1 + Math.max(...data.runs.map(r => r[3]));
    line.setAttribute('viewBox', `0 0 1000 ${threads * 22 + 4}`);
    for (const [name, at, took, thread, place] of data.runs) {
      const x = 1000 * (at - start) / (end - start || 1), width = Math.max(1000 * took / (end - start || 1), .3);
      const box = make('rect', {x, width, y: thread * 22 + 3, height: 18, rx: 2,
        fill: `hsl(${hue(place || name)} 55% 50%)`}, line);
      make('title', {}, box).textContent = `${name}  ${(1e3 * took).toFixed(3)} ms  ${place}`;
    }
  }
  const memory = $('svg.memory');
  if (memory && data.memory.length) {
    const top = Math.max(...data.memory, 1), n = data.memory.length;
    memory.setAttribute('viewBox', '0 0 1000 140');
    const points = data.memory.map((b, k) => `${1000 * k / Math.max(n - 1, 1)},${130 - 120 * b / top}`);
    make('polygon', {points: `0,130 ${points.join(' ')} 1000,130`, fill: '#3f9d6f', opacity: .6}, memory);
  }
})(document.currentScript.closest('.gradix'));
"""


def page(p: Profile) -> str:
    """The whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>gradix profile</title></head>'
        f'<body style="margin:0">{embedded(p)}</body></html>\n'
    )


def embedded(p: Profile) -> str:
    """What the page shows, for a cell of a notebook."""
    programs = sorted(p._recording.programs.items(), key=lambda item: -_seconds_in(p, item[0]))
    first = programs[0][1] if programs else None
    series, at_peak = _memory(first) if first is not None else ([], "")
    data = json.dumps({"runs": _timeline(p), "memory": series}).replace("<", "\\u003c")
    parts = [
        f"<h1 style='font-size:1.2rem'>{1e3 * p.seconds:.1f} ms</h1>",
        _bar(p.stages),
        '<h2>Lines</h2><input type="search" placeholder="search lines and operations">',
        _table(p),
        "<h2>Source</h2>",
        _sources(p),
        "<h2>Timeline</h2>"
        + ('<svg class="timeline"></svg>' if p._recording.runs else "<p>No compiled program ran.</p>"),
    ]
    if first is not None:
        parts += [
            f"<h2>Memory of {html.escape(first.module.name)} while it runs</h2>",
            '<svg class="memory"></svg>',
            at_peak,
            "<h2>Programs</h2>",
            *[_tree(name, found.module) for (name, _), found in programs],
        ]
    return (
        f"<div class='gradix'><style>{_STYLE}</style>{''.join(parts)}"
        f'<script type="application/json">{data}</script><script>{_SCRIPT}</script></div>'
    )


def _seconds_in(p: Profile, program: tuple[str, int]) -> float:
    return sum([r.own for r in p._recording.runs if (r.program, r.number) == program])


def _bar(stages: dict[str, float]) -> str:
    whole = sum(stages.values()) or 1.0
    shown = {k: s for k, s in stages.items() if s > 0}
    bar = "".join(
        [
            f"<div style='width:{100 * s / whole:.3f}%;background:{_COLORS[k]}' title='{k}'></div>"
            for k, s in shown.items()
        ]
    )
    keys = "".join(
        [
            f"<span class='key'><i style='background:{_COLORS[k]}'></i>{k} {1e3 * s:.2f} ms</span>"
            for k, s in shown.items()
        ]
    )
    return f"<div class='bar'>{bar}</div><p>{keys}</p>"


def _table(p: Profile) -> str:
    heads = [("ms", 1), ("share", 1), ("calls", 1), ("moved", 1), ("Mflop", 1), ("Gflop/s", 1)]
    heads += [("of peak", 1), ("line", 0), ("source", 0), ("pass", 0)]
    top = machine_peak.measured()
    head = "".join([f"<th class='{'n' if n else ''}'>{name}</th>" for name, n in heads])
    rows = []
    for r in p.lines:
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
        heat = f"style='background:rgba(var(--heat),{0.55 * r.share:.3f})'"
        rows.append(
            f"<tr data-text='{html.escape(f'{place} {r.source} {r.phase}', quote=True)}'>{cells}"
            f"<td title='{html.escape(r.file, quote=True)}'>{html.escape(place)}</td>"
            f"<td class='code' {heat}>{html.escape(r.source[:120])}</td><td>{r.phase}</td></tr>"
        )
    told = (
        f"<p>This machine reaches {1e-9 * top.flops:.0f} Gflop/s in a product, and moves "
        f"{1e-9 * top.bytes:.1f} GB/s; <i>of peak</i> is the part of the one that a line is closer to, "
        "and more than 100 % where the caches serve it.</p>"
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{told}"


def _of_peak(top: machine_peak.Peak, r: ProfileRow) -> tuple[str, float]:
    share, limit = top.share(r.flops, r.bytes, r.seconds)
    return (f"{100 * share:.0f} % {limit}" if limit else "", share)


def _sources(p: Profile) -> str:
    """The files with costs: the lines around those, each with its time and heat."""
    cost: dict[str, dict[int, float]] = {}
    for r in p.lines:
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
                rows.append("    ⋯")
            before, share = n, lines.get(n, 0.0)
            told = f"{100 * share:5.1f} %" if n in lines else " " * 7
            rows.append(
                f"<span style='background:rgba(var(--heat),{0.65 * share:.3f})'>{told} {n:>5}  "
                f"{html.escape(text.rstrip())}</span>"
            )
        parts.append(
            f"<details open><summary>{html.escape(file)} ({100 * sum(lines.values()):.1f} %)</summary>"
            f"<pre>{chr(10).join(rows)}</pre></details>"
        )
    return "".join(parts) or "<p>No line of a file was seen.</p>"


def _timeline(p: Profile) -> list[list[Any]]:
    runs = sorted(p._recording.runs, key=lambda r: -r.seconds)[:_MOST_RUNS]
    return [
        [r.name, round(r.start, 9), round(r.seconds, 9), r.thread, p._told(r).get("line", "")]
        for r in sorted(runs, key=lambda r: (r.start, -r.seconds))
    ]


def _memory(found: Lined) -> tuple[list[int], str]:
    """The bytes of temporaries in the order of operations, and what is alive at the most."""
    module = found.module
    assignment = found.program.executable.memory_analysis().serialized_buffer_assignment_proto
    held, sizes = buffers(module, assignment)
    end = max([b.last for b in held], default=0) + 2
    changes = [0] * (end + 1)
    for b in held:
        if b.kind == "temporary":
            changes[b.first] += b.nbytes
            changes[min(b.last + 1, end)] -= b.nbytes
    series, now = [], 0
    for change in changes[:-1]:
        now += change
        series.append(now)
    step = max(len(series) // 1000, 1)
    series = [max(series[k : k + step]) for k in range(0, len(series), step)]
    rows = []
    for b, nbytes in sorted(peak(held, sizes).alive, key=lambda pair: -pair[1])[:12]:
        origin = module.origin(b.made_by)
        place = os.path.basename(str(origin.place)) if origin.place else ""
        rows.append(
            f"<tr><td class='n'>{shown_bytes(nbytes)}</td><td>{b.kind}</td>"
            f"<td class='code'>{html.escape(str(b.shape)[:60])}</td><td>{html.escape(place)}</td>"
            f"<td class='code'>{html.escape(origin.scope)}</td></tr>"
        )
    return series, f"<p>Alive at the most:</p><table><tbody>{''.join(rows)}</tbody></table>"


def _tree(name: str, module: Module) -> str:
    return (
        f"<details><summary>{html.escape(name)}, {len(module.instructions)} instructions</summary>"
        f"{_part(module, module.entry)}</details>"
    )


def _part(module: Module, part: Computation) -> str:
    """The operations of a part of a program; loops, branches and calls fold."""
    rows = []
    for i in part.instructions:
        if i.opcode in ("parameter", "constant", "tuple", "get-tuple-element"):
            continue
        origin = module.origin(i)
        place = os.path.basename(str(origin.place)) if origin.place else ""
        text = html.escape(f"{i.name} = {i.opcode} {str(i.shape)[:80]}  {place}  {origin.scope}")
        inside = "".join([_part(module, module.computations[n]) for n in i.called])
        searched = f"data-text='{html.escape(f'{i.name} {place} {origin.scope}', quote=True)}'"
        if inside and i.opcode in (*NESTING, "fusion"):
            rows.append(f"<details {searched}><summary><code>{text}</code></summary>{inside}</details>")
        else:
            rows.append(f"<div {searched}><code>{text}</code></div>")
    return "".join(rows)
