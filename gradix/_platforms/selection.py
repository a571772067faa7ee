"""The option `gradix_rewrites`: it selects all records, a kind, none, and single ones by name."""

from __future__ import annotations

from gradix._platforms.records import CORRECTNESS

SETS = ("all", "correctness", "off")


def split(text: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """`(set, added, left out)` of a selection such as "all,-column_sums" or "off,+cube_root".

    Raises:
        ValueError: `text` is not of that form.
    """
    first, *rest = [part.strip() for part in str(text).split(",")]
    if first[:1] in ("-", "+"):
        first, rest = "all", [first, *rest]
    if first not in SETS or not all(part[:1] in ("-", "+") and part[1:] for part in rest):
        raise ValueError(
            f"gradix_rewrites is one of {', '.join(map(repr, SETS))}, and names to leave out or add, "
            f"such as 'all,-column_sums' or 'off,+cube_root'; got {text!r}. python -m gradix._platforms "
            "lists the names."
        )
    return (first, frozenset([p[1:] for p in rest if p[0] == "+"]), frozenset([p[1:] for p in rest if p[0] == "-"]))


def selected(records, text: str, jaxlib: tuple[int, ...] = ()) -> list:
    """The records of a table that a selection takes and this version of jaxlib needs, or that it names."""
    base, added, dropped = split(text)
    kinds = {"all": None, "correctness": CORRECTNESS, "off": ""}[base]
    return [
        r
        for r in records
        if r.name in added or (kinds is None or r.kind == kinds) and r.name not in dropped and jaxlib >= r.since
    ]


def check_names(records, text: str) -> None:
    """Refuse a selection that names a record there is not.

    Raises:
        ValueError: a name is unknown.
    """
    _, added, dropped = split(text)
    unknown = sorted((added | dropped) - {r.name for r in records})
    if unknown:
        raise ValueError(
            f"gradix_rewrites names {', '.join(map(repr, unknown))}, which no platform has. "
            "python -m gradix._platforms lists the names."
        )
