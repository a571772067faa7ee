"""Lays out text in lines: documents made of text, breaks, indentation and groups.

A group is printed on one line if it fits into the rest of the line; otherwise each of its own
breaks becomes a new line. Only the group itself is measured, not the text after it.
"""

from __future__ import annotations


class Doc:
    """A document; `width` is its length on one line."""

    __slots__ = ("kind", "value", "indent", "width")

    def __init__(self, kind: str, value, width: int, indent: int = 0):
        self.kind, self.value, self.width, self.indent = kind, value, width, indent


def text(s: str) -> Doc:
    return Doc("text", s, len(s))


def brk(flat: str = " ") -> Doc:
    """A new line, or the text `flat` if its group stays on one line."""
    return Doc("break", flat, len(flat))


def note(s: str) -> Doc:
    """A remark, printed at the end of its line; all remarks begin in the same column."""
    return Doc("note", s, 0)


def cat(parts: list[Doc]) -> Doc:
    return Doc("cat", parts, sum([p.width for p in parts]))


def nest(indent: int, doc: Doc) -> Doc:
    """New lines in `doc` are indented by `indent` more."""
    return Doc("nest", doc, doc.width, indent)


def group(doc: Doc) -> Doc:
    return Doc("group", doc, doc.width)


def wrapped(parts: list[Doc]) -> Doc:
    """Words separated by blanks, with a new line wherever a word would not fit."""
    out: list[Doc] = []
    for i, p in enumerate(parts):
        out += [group(brk()), p] if i else [p]
    return cat(out)


def render(doc: Doc, width: int = 80) -> str:
    """The text of a document; each group is tried on the rest of a line of `width`."""
    lines, notes = [""], [None]
    stack = [(doc, 0, False)]
    while stack:
        d, indent, flat = stack.pop()
        kind = d.kind
        if kind == "text" or (kind == "break" and flat):
            lines[-1] += d.value
        elif kind == "cat":
            stack += [(p, indent, flat) for p in reversed(d.value)]
        elif kind == "nest":
            stack.append((d.value, indent + d.indent, flat))
        elif kind == "group":
            stack.append((d.value, indent, flat or len(lines[-1]) + d.width <= width))
        elif kind == "note":
            notes[-1] = d.value if not notes[-1] else f"{notes[-1]}; {d.value}"
        else:
            lines.append(" " * indent)
            notes.append(None)
    return _with_notes(lines, notes)


def _with_notes(lines: list[str], notes: list) -> str:
    column = max([len(s) for s, n in zip(lines, notes) if n is not None], default=0)
    return "\n".join([s if n is None else f"{s:<{column}} # {n}" for s, n in zip(lines, notes)])
