"""Docstrings in Google's form, as nodes of a page: text, lists of arguments, errors and examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from docutils import nodes

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example", "See also")
_HEADER = re.compile(rf"^({'|'.join(SECTIONS)}):$")
_ENTRY = re.compile(r"^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): ?(.*)$")
_CODE = re.compile(r"(``.+?``|`[^`]+?`)", re.DOTALL)
_BULLET = re.compile(r"^[-*] ")

# Makes the node of a piece of code in a text: a link where it names something.
Code = Callable[[str], nodes.Node]


class Entry(NamedTuple):
    """One argument, or one error, and what is said of it."""

    names: str
    text: str


def sections(text: str) -> list[tuple[str, str]]:
    """The parts of a docstring with their titles; the first, which has none, is the text before them.

    Example:
        >>> sections("The value.\\n\\nArgs:\\n    x: an array.")
        [('', 'The value.'), ('Args', 'x: an array.')]
    """
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if header := _HEADER.match(line):
            found.append((header[1], []))
        else:
            found[-1][1].append(line)
    return [(title, _dedent(lines)) for title, lines in found]


def entries(text: str) -> list[Entry]:
    """The arguments or errors that a section tells of.

    Example:
        >>> entries("x, y: arrays\\n    of one shape.\\nz: a number.")
        [Entry(names='x, y', text='arrays of one shape.'), Entry(names='z', text='a number.')]
    """
    found: list[list[str]] = []
    for line in text.splitlines():
        head = _ENTRY.match(line)
        if head:
            found.append([head[1], head[2]])
        elif found and line.strip():
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
        elif line.strip():
            found.append(["", line.strip()])
    return [Entry(*entry) for entry in found]


def inline(text: str, code: Code) -> list[nodes.Node]:
    """A text with its pieces in backticks as code."""
    made: list[nodes.Node] = []
    for part in _CODE.split(text):
        if part.startswith("`"):
            made.append(code(part.strip("`")))
        elif part:
            made.append(nodes.Text(part))
    return made


def blocks(text: str, code: Code) -> list[nodes.Node]:
    """Paragraphs, lists with bullets, and indented programs."""
    made: list[nodes.Node] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        if not block.strip():
            continue
        if lines[0].startswith("    "):
            made.append(program(_dedent(lines)))
        elif _BULLET.match(lines[0]):
            made.append(_bullets(lines, code))
        else:
            made += _paragraphs(lines, code)
    return made


def program(text: str) -> nodes.Node:
    """A block of Python, or of a session with its output."""
    block = nodes.literal_block(text, text)
    block["language"] = "pycon" if text.lstrip().startswith(">>>") else "python"
    return block


def definitions(found: list[Entry], types: dict[str, str], code: Code) -> nodes.definition_list:
    """A list of names, each with its type and what is said of it."""
    made = nodes.definition_list()
    for names, text in found:
        term = nodes.term()
        for i, name in enumerate(names.split(", ") if names else []):
            if i:
                term += nodes.Text(", ")
            term += nodes.literal(name, name)
            if kind := types.get(name.lstrip("*")):
                term += [nodes.Text(": "), nodes.emphasis(kind, kind, classes=["type"])]
        body = nodes.definition("", nodes.paragraph("", "", *inline(text, code)))
        made += nodes.definition_list_item("", term, body)
    return made


def _paragraphs(lines: list[str], code: Code) -> list[nodes.Node]:
    """A paragraph, and the list that may follow in the next line."""
    first = next((i for i, line in enumerate(lines) if i and _BULLET.match(line)), len(lines))
    text = " ".join(line.strip() for line in lines[:first])
    made: list[nodes.Node] = [nodes.paragraph("", "", *inline(text, code))]
    return made + ([_bullets(lines[first:], code)] if lines[first:] else [])


def _bullets(lines: list[str], code: Code) -> nodes.bullet_list:
    items: list[str] = []
    for line in lines:
        if _BULLET.match(line):
            items.append(line[2:])
        else:
            items[-1] += f" {line.strip()}"
    made = nodes.bullet_list()
    made += [nodes.list_item("", nodes.paragraph("", "", *inline(item, code))) for item in items]
    return made


def _dedent(lines: list[str]) -> str:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(indents, default=0)
    return "\n".join(line[cut:] for line in lines).strip("\n")
