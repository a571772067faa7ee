"""How one platform's compiler is best asked: tables of rewrites of operations and choices of compile options.

What an operation means is in `_ops`, the same for every platform. Nothing here is needed for a program to be right, but
for the records of kind "correctness". `python -m gradix._platforms` lists all.
"""
from __future__ import annotations

from functools import cache

from gradix._platforms import cpu, cuda, tpu
from gradix._platforms.selection import check_names, selected

PLATFORMS = {"cpu": cpu, "cuda": cuda, "tpu": tpu}
_SAME = {"gpu": "cuda"}


def _table(platform: str):
    return PLATFORMS.get(_SAME.get(platform, platform))


@cache
def rewrites_of(platform: str, selection: str) -> dict:
    """The rewrites that the emitter is to consult, in order, by primitive."""
    found: dict = {}
    table = _table(platform)
    for rewrite in selected(table.REWRITES, selection) if table else ():
        for primitive in rewrite.primitives:
            found.setdefault(primitive, []).append(rewrite)
    return {p: tuple(rewrites) for p, rewrites in found.items()}


@cache
def _choices(platform: str, selection: str) -> tuple:
    table = _table(platform)
    return tuple(selected(table.CHOICES, selection)) if table else ()


def options_for(platform: str, selection: str, facts, cores: int) -> dict:
    """What to ask of the compiler for a program with these facts, as the keywords of `xla.options`."""
    return dict([c.option for c in _choices(platform, selection) if c.applies(facts, cores)])


def check_selection(text: str) -> None:
    """Refuse a value of `gradix_rewrites` that names what is not there."""
    check_names([r for t in PLATFORMS.values() for r in (*t.REWRITES, *t.CHOICES)], text)
