"""Summaries of pytrees, and how jitted functions and their stages show themselves in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from gradix._base.lazy import lazy_module
from gradix._base.tree import keystr, numbered, tree_flatten_with_path
from gradix._core import display
from gradix._core.scalar_types import dtype_name
from gradix._core.trace import Tracer

_rich = lazy_module("gradix._api.rich_tables")
_MOST = 20_000  # characters of a program that are shown
_ROWS = 20  # rows of a `Ragged` that are shown


class Summary:
    """The leaves of a pytree, by path; made by `gradix.tree.summary`.

    Attributes:
        rows: for each leaf its path, shape, dtype and bytes; leaves that are no arrays have their
            type in place of a dtype, and no bytes.
        nbytes: the bytes of all arrays.
        size: the number of elements of all arrays.
    """

    def __init__(self, tree: Any):
        self.rows: list[tuple[str, tuple | None, str, int]] = []
        self.size = 0
        for path, leaf in tree_flatten_with_path(tree)[0]:
            shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
            if shape is None or dtype is None:
                self.rows.append((keystr(path), None, type(leaf).__name__, 0))
                continue
            count = 1
            for n in shape:
                count *= n
            self.size += count
            nbytes = count * getattr(dtype, "itemsize", 8)
            self.rows.append((keystr(path), tuple(shape), dtype_name(dtype), nbytes))
        self.nbytes = sum([row[3] for row in self.rows])

    def _cells(self) -> list[tuple[str, str, str, str]]:
        return [
            (path or "(the leaf)", "" if shape is None else str(shape), dtype, f"{n / 1e6:.3f}")
            for path, shape, dtype, n in self.rows
        ]

    def _total(self) -> str:
        leaves = f"{len(self.rows)} {'leaf' if len(self.rows) == 1 else 'leaves'}"
        return f"{leaves}, {self.size:,} elements, {self.nbytes / 1e6:.3f} MB"

    def __str__(self) -> str:
        cells = [("path", "shape", "dtype", "MB"), *self._cells()]
        widths = [max([len(c[k]) for c in cells]) for k in range(4)]
        lines = [
            "  ".join([f"{c[k]:<{widths[k]}}" if k < 3 else f"{c[k]:>{widths[k]}}" for k in range(4)]) for c in cells
        ]
        return "\n".join([*lines, self._total()])

    __repr__ = __str__

    def __rich__(self):
        return _rich.table(
            "",
            ("path", "shape", "dtype", "MB"),
            [(cells, row[3] / max(self.nbytes, 1)) for cells, row in zip(self._cells(), self.rows)],
            left=("path", "shape", "dtype"),
            caption=self._total(),
        )

    def _repr_html_(self) -> str:
        head = ("path", "shape", "dtype", "MB")
        return display.frame(self._total(), display.rows(self._cells(), head))


def summary(tree: Any) -> Summary:
    """The leaves of a pytree with their shapes, dtypes and sizes, as a table.

    Args:
        tree: any pytree, such as the parameters of a model.

    Returns:
        A `Summary`: it prints as a table, shows one in notebooks, and has the `rows`, `nbytes` and
        `size`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.tree.summary({"w": jnp.ones((2, 3)), "b": jnp.zeros(3), "name": "dense"})
        path      shape   dtype          MB
        ['b']     (3,)    float32     0.000
        ['name']          str         0.000
        ['w']     (2, 3)  float32     0.000
        3 leaves, 9 elements, 0.000 MB
    """
    return Summary(tree)


def jitted(function) -> str:
    """A jitted function: how often it was called, traced and compiled, and why."""
    return stats(function.stats(), repr(function))


def stats(s, title: str = "stats of a jitted function") -> str:
    """How often a jitted function was called, traced and compiled, and why."""
    cells = [
        ("calls", s.calls),
        ("traces", s.traces),
        ("compilations", s.compiles),
        ("loaded from disk", s.loads),
        ("seconds", f"{s.seconds:.3f}"),
        *[("traced again", reason) for reason in s.reasons],
    ]
    return display.frame(title, display.rows(cells))


def structure(tree) -> str:
    """The structure of a pytree: its text, and the paths of its leaves."""
    paths = [keystr(path) or "(the leaf)" for path, _ in tree_flatten_with_path(numbered(tree))[0]]
    count = len(paths)
    more = [(f"… {count - _ROWS} more",)] * (count > _ROWS)
    title = f"structure of a pytree, {count} {'leaf' if count == 1 else 'leaves'}"
    return display.frame(title, display.rows([*[(path,) for path in paths[:_ROWS]], *more]), _folded("text", str(tree)))


def device(d) -> str:
    """A device: its kind, platform and process."""
    cells = [("platform", d.platform), ("kind", d.device_kind), ("id", d.id), ("process", d.process_index)]
    return display.frame(str(d), display.rows(cells))


def exported(e) -> str:
    """An exported function: its types, and where it can be called."""
    cells = [
        *[(f"argument {i}", str(aval)) for i, aval in enumerate(e.in_avals)],
        *[(f"result {i}", str(aval)) for i, aval in enumerate(e.out_avals)],
        ("platforms", ", ".join(e.platforms)),
        ("devices", e.nr_devices),
        ("module", display.size(len(e.mlir_module_serialized))),
    ]
    return display.frame(f"Exported {e.fun_name}", display.rows(cells))


def lowered(stage) -> str:
    """A lowered program: its text, folded."""
    return display.frame(f"Lowered {stage._traced.name}", _folded("StableHLO", stage.as_text()))


def compiled(stage) -> str:
    """A compiled program: memory, arithmetic, and its text, folded."""
    sizes, costs = stage.memory_analysis(), stage.cost_analysis()
    cells = [
        ("arguments", display.size(sizes.argument_size_in_bytes)),
        ("results", display.size(sizes.output_size_in_bytes)),
        ("temporaries", display.size(sizes.temp_size_in_bytes)),
        ("flops", f"{costs.get('flops', 0):,.0f}"),
        ("bytes read and written", display.size(costs.get("bytes accessed", 0))),
    ]
    title = f"Compiled {stage._traced.name}"
    return display.frame(title, display.rows(cells), _folded("HLO", stage.as_text()))


def ragged(x) -> str:
    """Rows of different lengths: each with its length, as a bar, and its first elements."""
    rows = "?" if isinstance(x.counts, Tracer) else len(x)
    title = f"Ragged {dtype_name(x.dtype)}[{rows}, at most {x.buffer.shape[1]}]"
    if isinstance(x.counts, Tracer) or isinstance(x.buffer, Tracer):
        return display.frame(title, f"<div>{escape(repr(x))}</div>")
    found = x.to_list()
    if found and isinstance(found[0], list):  # rows of rows
        return display.frame(title, f"<div>{escape(repr(x))}</div>")
    longest = max([len(r) for r in found], default=0)
    bars = []
    for i, row in enumerate(found[:_ROWS]):
        width = round(160 * len(row) / max(longest, 1))
        text = ", ".join([str(v) for v in row[:8].tolist()]) + (", …" if len(row) > 8 else "")
        bars.append(
            f"<tr><td>{i}</td><td>{len(row)}</td><td><div style='background:#3f8fbf;height:.7em;"
            f"width:{width}px'></div></td><td>{escape(text[:80])}</td></tr>"
        )
    if len(found) > _ROWS:
        bars.append(f"<tr><td>⋮</td><td colspan='3'>{len(found) - _ROWS:,} more rows</td></tr>")
    about = f" · {sum([len(r) for r in found]):,} elements"
    return display.frame(title, f"<span>{about}</span><table>{''.join(bars)}</table>")


def _folded(title: str, text: str) -> str:
    more = f"\n… {len(text) - _MOST:,} more characters" if len(text) > _MOST else ""
    return (
        f"<details><summary>{title}, {text.count(chr(10)):,} lines</summary>"
        f"<pre>{escape(text[:_MOST] + more)}</pre></details>"
    )
