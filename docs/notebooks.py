"""Notebooks of the pages under "Learn" and of the examples, made of the same sources that the tests run.

    python -m docs.notebooks [folder]

A page's session (`>>>`) becomes a cell for each output, which the notebook shows as it stands on the page; a program becomes
one cell. Of an example, each part becomes a cell below its heading, and the last cell runs it with `--quick`.
"""

from __future__ import annotations

import ast
import base64
import doctest
import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
# Programs of one file, with what they are given; the others need processes or neighbours of theirs.
PROGRAMS = {
    "regression.py": (),
    "counter.py": (),
    "digits.py": ("--quick",),
    "hmc.py": ("--quick",),
    "lennard_jones.py": ("--quick",),
    "order_book.py": ("--quick",),
}
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]*)\)")
_ERROR = re.compile(r"^(?:Traceback|[\w.]+(?:Error|Exception|Exit|Interrupt)\b)")
_PART = re.compile(r"^# --- (.*?) -+$", re.MULTILINE)

Cell = dict[str, Any]


def pages() -> list[Path]:
    """The pages that the map names under "Learn", in its order."""
    learn = (DOCS / "index.md").read_text(encoding="utf-8").partition("\n## Learn\n")[2]
    named = re.findall(r"^- \[.*?\]\(([\w-]+\.md)\)", learn.partition("\n## ")[0], re.MULTILINE)
    return [DOCS / name for name in named]


def of_page(path: Path) -> dict[str, Any]:
    """The notebook of a page."""
    text = path.read_text(encoding="utf-8")
    cells: list[Cell] = []
    last = 0
    fences = list(_FENCED.finditer(text))
    for i, fence in enumerate(fences):
        if fence[1] != "python" or fence.start() < last:
            continue
        cells += _prose(text[last : fence.start()])
        last = fence.end()
        if fence[2].startswith(">>>"):
            cells += _session(fence[2])
            continue
        shown = fences[i + 1] if i + 1 < len(fences) else None
        if shown is not None and shown[1] == "text" and not text[fence.end() : shown.start()].strip():
            cells.append(_code(_quiet(fence[2]), shown[2], _raises(shown[2])))
            last = shown.end()
        else:
            cells.append(_code(_quiet(fence[2])))
    return _notebook([*cells, *_prose(text[last:])])


def of_program(path: Path, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
    """The notebook of an example."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    start = tree.body[0].end_lineno or 0
    title, _, rest = (ast.get_docstring(tree) or "").partition("\n")
    body = "".join(lines[start : tree.body[-1].lineno - 1])
    cells = _prose(f"# {path.stem}\n\n{title}\n{rest}")
    beside = "|".join(p.stem for p in EXAMPLES.glob("*.py"))
    if re.search(rf"^(?:from|import) (?:{beside})\b", body, re.MULTILINE):
        cells += [_code('import sys\n\nsys.path.append("examples")  # in a clone, for what it draws')]
    first, *parts = _PART.split(body)
    cells.append(_code(first))
    for heading, code in zip(parts[::2], parts[1::2]):
        cells += [*_prose(f"## {heading}"), _code(code)]
    given = [path.name, *arguments]
    return _notebook([*cells, _code(f"import sys\n\nsys.argv = {given!r}\nmain()")])


def write(folder: Path) -> list[Path]:
    """Write all notebooks into a folder."""
    made = {path.stem: of_page(path) for path in pages()}
    made |= {Path(n).stem: of_program(EXAMPLES / n, given) for n, given in PROGRAMS.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, notebook in made.items():
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        (folder / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
    return [folder / f"{name}.ipynb" for name in made]


def _notebook(cells: list[Cell]) -> dict[str, Any]:
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _prose(text: str) -> list[Cell]:
    """A cell of Markdown. Links to pages lead nowhere outside of the site, so their words alone stay; pictures go along."""
    attachments: dict[str, dict[str, str]] = {}

    def link(match: re.Match) -> str:
        image, shown, target = match.groups()
        if "://" in target:
            return match[0]
        if not image:
            return shown
        file = DOCS / target
        kind = "image/svg+xml" if file.suffix == ".svg" else f"image/{file.suffix[1:]}"
        attachments[file.name] = {kind: base64.b64encode(file.read_bytes()).decode()}
        return f"![{shown}](attachment:{file.name})"

    made = _LINK.sub(link, text).strip()
    if not made:
        return []
    cell: Cell = {"cell_type": "markdown", "metadata": {}, "source": made.splitlines(keepends=True)}
    return [cell | {"attachments": attachments} if attachments else cell]


def _session(block: str) -> list[Cell]:
    """A cell for each output of a session: the statements since the last one, and the output."""
    made, waiting = [], ""
    for example in doctest.DocTestParser().get_examples(block):
        # A block of lines is set off from what follows it.
        waiting += "\n" if waiting.count("\n") > 1 and waiting.splitlines()[-1][:1] == " " else ""
        waiting += example.source
        if example.want:
            made.append(_code(waiting, example.want, example.exc_msg is not None))
            waiting = ""
    return made + ([_code(waiting)] if waiting else [])


def _quiet(program: str) -> str:
    """A program with a semicolon where a kernel would show the value of its last line, which the page does not."""
    return f"{program.rstrip()};" if _ends_in_value(program) else program


def _raises(shown: str) -> bool:
    """Whether what a program shows ends in an error."""
    return any(_ERROR.match(line) for line in shown.splitlines())


def _code(source: str, shown: str = "", raises: bool = False) -> Cell:
    """A cell of code with its output, as text that was printed, as a value or as an error."""
    source = source.strip("\n")
    cell: Cell = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": ["raises-exception"]} if raises else {},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }
    text = shown.splitlines(keepends=True)
    if raises:
        name, _, message = shown.strip().splitlines()[-1].partition(": ")
        traceback = shown.rstrip("\n").splitlines()
        output = {"output_type": "error", "ename": name, "evalue": message, "traceback": traceback}
        cell["outputs"].append(output)
    elif shown and _ends_in_value(source):
        output = {"output_type": "execute_result", "metadata": {}, "execution_count": None}
        cell["outputs"].append(output | {"data": {"text/plain": text}})
    elif shown:
        cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": text})
    return cell


def _ends_in_value(source: str) -> bool:
    """Whether a kernel shows the value of the last line: it is an expression, and no call of `print`."""
    if source.rstrip().endswith(";"):
        return False
    last = ast.parse(source).body[-1]
    if not isinstance(last, ast.Expr):
        return False
    call = last.value.func if isinstance(last.value, ast.Call) else None
    return not (isinstance(call, ast.Name) and call.id == "print")


if __name__ == "__main__":
    for made in write(Path(sys.argv[1] if len(sys.argv) > 1 else "build/notebooks")):
        print(made)
