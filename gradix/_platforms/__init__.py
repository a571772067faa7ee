"""Tables of what each platform's compiler is best given: rewrites of operations, compile options.

What an operation means is in `_ops`, and is the same for every platform. Programs are right without
the records here, except for those of the kind "correctness". `python -m gradix._platforms` lists
all records.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from gradix._platforms import cpu, cuda, tpu
from gradix._platforms.records import Choice, Rewrite, Table
from gradix._platforms.selection import check_names, selected

TABLES = {"cpu": cpu.TABLE, "cuda": cuda.TABLE, "tpu": tpu.TABLE}
_SAME = {"gpu": "cuda", "rocm": "cuda"}


def _table(platform: str) -> Table | None:
    return TABLES.get(_SAME.get(platform, platform))


class RewritesByPrimitive(dict):
    """The rewrites of each primitive in order, looked up when the emitter first meets it."""

    def __init__(self, table: Table, selection: str, jaxlib: tuple[int, ...]):
        self._table, self._selection, self._jaxlib = table, selection, jaxlib

    def __missing__(self, primitive) -> tuple[Rewrite, ...]:
        records = selected(self._table.of(primitive), self._selection, self._jaxlib)
        found = self[primitive] = tuple(records)
        return found


@cache
def rewrites_of(
    platform: str, selection: str, jaxlib: tuple[int, ...] = ()
) -> Mapping[Any, tuple[Rewrite, ...]] | None:
    """The rewrites of each primitive, for the emitter; None where a platform has none.

    `jaxlib` is the version that compiles, without which no record that only later ones need is taken.
    """
    table = _table(platform)
    return RewritesByPrimitive(table, selection, jaxlib) if table and selection != "off" else None


@cache
def _choices(platform: str, selection: str, jaxlib: tuple[int, ...]) -> tuple[Choice, ...]:
    table = _table(platform)
    return tuple(selected(table.choices, selection, jaxlib)) if table else ()


def options_for(platform: str, selection: str, facts, cores: int, jaxlib: tuple[int, ...] = ()) -> dict:
    """The compile options for a program with these facts, as keywords of `xla.options`."""
    return dict([c.option for c in _choices(platform, selection, jaxlib) if c.applies(facts, cores)])


def quick_options_for(platform: str, facts) -> dict:
    """The options for the shortest compilation of a program with these facts, as `options_for`."""
    table = _table(platform)
    return table.quick(facts) if table and table.quick else {}


def factors_on_one_thread(platform: str, facts) -> bool:
    """Whether LAPACK should use one thread in a program with these facts."""
    table = _table(platform)
    return bool(table and table.one_thread and facts and table.one_thread(facts))


def may_take_long(platform: str, facts) -> bool:
    """Whether the calling thread should not run a program with these facts itself."""
    table = _table(platform)
    return bool(table and table.long and facts and table.long(facts))


def check_selection(text: str) -> None:
    """Refuse a value of `gradix_rewrites` that names an unknown record."""
    check_names([r for t in TABLES.values() for r in (*t.rewrites, *t.choices)], text)
