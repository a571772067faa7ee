"""Tables in colours, for `rich.print` and consoles of `rich`, which is an extra."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gradix._base.lazy import lazy_module

_box = lazy_module("rich.box")
_tables = lazy_module("rich.table")
_texts = lazy_module("rich.text")
# Styles of rows, by the least share that has them.
_HEAT = ((0.3, "bold red"), (0.1, "yellow"), (0.01, ""), (0.0, "dim"))


def table(
    title: str,
    head: Sequence[str],
    rows: Iterable[tuple[Sequence[str], float | None]],
    left: Sequence[str] = (),
    caption: str = "",
) -> Any:
    """A table of `rich`.

    Args:
        title, caption: what stands above and below it.
        head: the names of the columns.
        rows: the cells of each row, and its share of the whole, which colours it, or None.
        left: the columns whose cells begin at the left; all others end at the right.
    """
    made = _tables.Table(title=title, caption=caption, box=_box.SIMPLE, title_justify="left", caption_justify="left")
    for name in head:
        made.add_column(name, justify="left" if name in left else "right")
    for cells, share in rows:
        style = next((style for least, style in _HEAT if share is not None and share >= least), "")
        made.add_row(*[_texts.Text(cell) for cell in cells], style=style)  # brackets in sources are no styles
    return made
