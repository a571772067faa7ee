"""`python -m gradix._platforms`: print the rewrites and choices of every platform, in order."""

import sys

from gradix._platforms import TABLES

_HEADS = ("name", "kind", "for", "seen on jaxlib", "evidence")


def rows(platform: str) -> list[tuple[str, ...]]:
    """One row per record of a platform: name, kind, what it is for, versions, evidence."""
    table = TABLES[platform]
    found: list[tuple[str, ...]] = [
        (r.name, r.kind, _shown([p.name for p in r.primitives]), ", ".join(r.seen_on), r.evidence)
        for r in table.rewrites
    ]
    return found + [
        (c.name, c.kind, f"compiling: {c.option[0]}", ", ".join(c.seen_on), c.evidence) for c in table.choices
    ]


def _shown(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def listing() -> str:
    parts = []
    for platform in TABLES:
        lines = [_HEADS, *rows(platform)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADS))]
        parts.append(
            "\n".join(
                [
                    f"{platform}: {len(lines) - 1}",
                    *["  " + "  ".join([cell.ljust(w) for cell, w in zip(line, widths)]).rstrip() for line in lines],
                ]
            )
        )
    return "\n\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("usage: python -m gradix._platforms")
    print(listing())
