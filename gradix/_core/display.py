"""How arrays, programs, meshes and shardings show themselves in notebooks, as HTML."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np

from gradix._base.source import located
from gradix._core.array import ArrayImpl
from gradix._core.dtypes import is_extended
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from gradix._core.mesh import Mesh

_BINS = 24
_MOST = 1 << 22  # larger arrays are described by a part of their elements
_HUES = 47  # degrees between the colours of two devices
_STYLE = (
    "font:13px/1.45 ui-monospace,monospace;border:1px solid #8884;border-radius:5px;"
    "padding:.4rem .7rem;display:inline-block;max-width:60rem;overflow-x:auto"
)


def frame(title: str, *parts: str) -> str:
    """A box with a title, which is text, and parts, which are HTML."""
    return f'<div style="{_STYLE}"><b>{escape(title)}</b>{"".join(parts)}</div>'


def rows(cells: Iterable[Iterable[Any]], head: Iterable[str] = ()) -> str:
    """A table of texts."""
    tops = "".join([f'<th style="text-align:left">{escape(str(c))}</th>' for c in head])
    body = "".join(["<tr>" + "".join([f"<td>{escape(str(c))}</td>" for c in row]) + "</tr>" for row in cells])
    return f'<table style="border-spacing:.8em 0;margin-left:-.8em">{tops and f"<tr>{tops}</tr>"}{body}</table>'


def size(nbytes: float) -> str:
    """A number of bytes in the unit that suits it."""
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} GiB"


# -- arrays ----------------------------------------------------------------------------------------


def array(x) -> str:
    """An array: its type, bytes and devices, a summary of its numbers, and its values."""
    title = f"Array {x.aval.str_short()}"
    if type(x) is not ArrayImpl:
        return frame(title, f"<div>{escape(str(x))}</div>")
    if x._host is None and x._buffer is None:
        return frame(title, "<div>deleted, or without a value</div>")
    place = x.aval.place
    about = f" · {size(x.aval.size * getattr(x.aval.dtype, 'itemsize', 8))}"
    about += " · weakly typed" if x.aval.weak_type else ""
    parts = [f"<span>{escape(about)}</span>"]
    if place is not None:
        parts.append(_devices(place.sharding, x.aval.shape))
    if place is None or place.is_readable:
        if not is_extended(x.aval.dtype) and x.aval.size:
            parts.append(_numbers(np.asarray(x.host)))
        parts.append(f"<pre style='margin:.3rem 0 0'>{escape(_shortened(repr(x)))}</pre>")
    return frame(title, *parts)


def _numbers(host: np.ndarray) -> str:
    """The least and largest number, how many are no numbers, and a histogram."""
    told, flat = "", host.reshape(-1)
    if flat.size > _MOST:
        step = -(-flat.size // _MOST)
        flat, told = flat[::step], f"of every {step}th element: "
    if flat.dtype == bool:
        return f"<div>{told}{int(flat.sum())} of {flat.size} true</div>"
    if flat.dtype.kind == "c":
        flat, told = np.abs(flat), f"{told}absolute values: "
    values = flat.astype(np.float64)
    finite = values[np.isfinite(values)]
    nans, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    if finite.size:
        told += f"min {finite.min():.6g} · mean {finite.mean():.6g} · max {finite.max():.6g}"
    for count, what in ((nans, "NaN"), (infinite, "infinite")):
        told += f" · <b style='color:#d3502f'>{count} {what}</b>" if count else ""
    return f"<div>{told}</div>{_histogram(finite) if finite.size > 1 else ''}"


def _histogram(values: np.ndarray) -> str:
    low, high = float(values.min()), float(values.max())
    if not low < high or not np.isfinite(high - low):
        return ""
    counts = np.histogram(values, _BINS, (low, high))[0]
    bars = "".join(
        [
            f'<rect x="{8 * k}" width="7" y="{34 - 32 * c / counts.max():.1f}" height="{32 * c / counts.max():.1f}"/>'
            for k, c in enumerate(counts)
        ]
    )
    return f'<svg width="{8 * _BINS}" height="34" style="fill:#3f8fbf;display:block">{bars}</svg>'


def _shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > 12:
        lines = [*lines[:6], "⋮", *lines[-5:]]
    return "\n".join([line[:160] for line in lines])


# -- meshes and shardings --------------------------------------------------------------------------


def _colored(cells: list[tuple[str, int]], width: int) -> str:
    """A grid of cells, each a text and the number of its colour, so many in a row."""
    boxes = "".join(
        [
            f'<div style="background:hsl({_HUES * n % 360} 60% 72%);color:#111;padding:.1rem .5rem">'
            f"{escape(text)}</div>"
            for text, n in cells
        ]
    )
    return (
        f'<div style="display:inline-grid;grid-template-columns:repeat({max(width, 1)},auto);gap:2px;'
        f'margin:.3rem 0">{boxes}</div>'
    )


def _devices(sharding, shape: tuple) -> str:
    """Which devices hold which part of an array, its last axis from left to right."""
    try:
        held: dict[tuple, list] = {}
        for device, index in sharding.devices_indices_map(tuple(shape)).items():
            part = tuple([s.indices(n)[:2] for s, n in zip(index, shape)])
            held.setdefault(part, []).append(device.id)
    except Exception:  # such as shardings over the devices of other processes
        return f"<div>{escape(str(sharding))}</div>"
    parts = sorted(held)
    width = len({part[-1] for part in parts}) if shape else 1
    cells = [(", ".join(map(str, held[part])), held[part][0]) for part in parts]
    return f"<div>{escape(str(sharding))}</div>{_colored(cells, width)}"


def mesh(m) -> str:
    """A mesh: its axes, and its devices as a grid."""
    axes = ", ".join([f"{name}={n}" for name, n in m.shape.items()])
    if not isinstance(m, Mesh):
        return frame(f"{type(m).__name__} {axes}")
    devices = np.asarray(m.devices)
    cells = [(str(getattr(d, "id", d)), getattr(d, "id", 0)) for d in devices.reshape(-1)]
    return frame(f"{type(m).__name__} {axes}", "<br>", _colored(cells, (devices.shape or (1,))[-1]))


def sharding(s) -> str:
    """A sharding: its text, and that of its mesh as a grid."""
    inner = getattr(s, "mesh", None)
    return frame(str(s), f"<br>{mesh(inner)}" if inner is not None else "")


def spec(s) -> str:
    """A spec: the mesh axes over which each axis of an array is divided."""
    cells = [
        (f"axis {i}", "whole" if p is None else ", ".join(map(str, p)) if isinstance(p, tuple) else str(p))
        for i, p in enumerate(s.partitions)
    ]
    sums = [(what, ", ".join(map(str, axes))) for what in ("unreduced", "reduced") if (axes := getattr(s, what))]
    return frame(str(s), rows([*cells, *sums]))


# -- programs --------------------------------------------------------------------------------------


def jaxpr(program: Jaxpr | ClosedJaxpr) -> str:
    """A program: an equation in each line with its place on hover; inner programs fold."""
    inner = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    count = len(inner.eqns)
    title = f"jaxpr of {inner.debug_info.name or 'a function'}, {count} equation{'s' * (count != 1)}"
    return frame(title, _program(inner, _Names()))


class _Names:
    """Names of variables: letters in the order in which they are met."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.letters = (
            "".join(t) for n in itertools.count(1) for t in itertools.product(string.ascii_lowercase, repeat=n)
        )

    def __call__(self, v) -> str:
        if type(v) is Literal:
            return str(v.val)
        if v not in self.names:
            self.names[v] = next(self.letters)
        return self.names[v]


def _program(p: Jaxpr, name: _Names) -> str:
    typed = [f"{name(v)}:{v.aval.str_short(short_dtypes=True)}" for v in (*p.constvars, *p.invars)]
    lines = [f"<div>λ {escape(' '.join(typed))}</div>"]
    for eqn in p.eqns:
        outs = " ".join([f"{name(v)}:{v.aval.str_short(short_dtypes=True)}" for v in eqn.outvars])
        plain, inside = [], []
        for key, value in eqn.params.items():
            programs = value if isinstance(value, (tuple, list)) else (value,)
            if programs and all(isinstance(x, (Jaxpr, ClosedJaxpr)) for x in programs):
                inside += [(key, x.jaxpr if isinstance(x, ClosedJaxpr) else x) for x in programs]
            elif value is not None and value != () and value is not False:
                plain.append(f"{key}={value}"[:80])
        text = f"{outs} = <b>{escape(eqn.primitive.name)}</b>"
        text += f"<span style='opacity:.65'>[{escape(' '.join(plain))}]</span>" if plain else ""
        text += " " + escape(" ".join([name(v) for v in eqn.invars]))
        place = located(eqn.source.file, eqn.source.line) if eqn.source is not None else ""
        told = f'title="{escape(place, quote=True)}"'
        if inside:
            folded = "".join([f"<div>{escape(key)}</div>{_program(x, _Names())}" for key, x in inside])
            lines.append(f"<details {told}><summary>{text}</summary>{folded}</details>")
        else:
            lines.append(f"<div {told}>{text}</div>")
    lines.append(f"<div>return {escape(' '.join([name(v) for v in p.outvars]))}</div>")
    return f'<div style="margin-left:1em">{"".join(lines)}</div>'
