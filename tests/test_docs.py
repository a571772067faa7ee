"""The pages of the documentation run: each block of Python in order, one process per page; and links lead somewhere.

A block that begins with `>>>` is a doctest. Another is a program: a block of ```text right after it shows what it
prints and, if it ends in an error, the error; without one it prints what it likes and ends well.
"""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]+)?\)")


class Block(NamedTuple):
    code: str
    shown: str | None
    line: int


# Pages about a library, whose blocks run where it is installed.
LIBRARIES = {"haiku": "haiku", "orbax": "orbax.checkpoint", "tfp": "tensorflow_probability", "diffrax": "diffrax"}


def is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:
        return False


def blocks(text: str) -> list[Block]:
    """The blocks of Python in a page, each with the output shown right after it."""
    fenced = list(FENCED.finditer(text))
    found = []
    for i, block in enumerate(fenced):
        if block[1] != "python":
            continue
        after = fenced[i + 1] if i + 1 < len(fenced) else None
        close = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
        found.append(Block(block[2], after[2] if close else None, text[: block.start(2)].count("\n") + 1))
    return found


def run_doctest(block: Block, page: str, names: dict) -> str:
    test = doctest.DocTestParser().get_doctest(block.code, names, page, page, block.line - 1)
    test.globs = names
    report = io.StringIO()
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.write, clear_globs=False)
    return report.getvalue()


def run_program(block: Block, page: str, names: dict) -> str:
    """What is wrong with the block, or nothing. Messages name its lines as those of `example.py`."""
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(block.code, "example.py", "exec"), names)
        except Exception as e:
            error = "".join(traceback.format_exception_only(e))
            if block.shown is None:
                return f"{page}:{block.line} ends in an error:\n{traceback.format_exc()}"
    got = printed.getvalue() + error
    if block.shown is None or doctest.OutputChecker().check_output(block.shown, got, FLAGS):
        return ""
    return f"{page}:{block.line} shows\n{block.shown}\nbut gives\n{got}"


def run_page(path: Path) -> str:
    """All that is wrong with the blocks of a page."""
    names = {"__name__": "__main__"}
    page = path.relative_to(ROOT).as_posix()
    found = blocks(path.read_text(encoding="utf-8"))
    reports = [(run_doctest if b.code.startswith(">>>") else run_program)(b, page, names) for b in found]
    return "\n".join(filter(None, reports))


@pytest.mark.x32
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_page_runs(page, tmp_path):
    if not blocks(page.read_text(encoding="utf-8")):
        return
    if page.parent.name == "libraries" and not is_installed(LIBRARIES.get(page.stem, page.stem)):
        pytest.skip(f"{page.stem} is not installed")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONIOENCODING": "utf-8",
        "JAX_TRACEBACK_FILTERING": "off",
    }  # the pages leave out the note of it
    # As a module: run as a script, its folder would be searched first, and tests/numpy hide numpy.
    warnings = "default" if page.parent.name == "libraries" else "error"  # a library's own are not ours to judge
    command = [sys.executable, "-W", warnings, "-m", "tests.test_docs", str(page)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for target, heading in LINK.findall(text):
        if "://" in target:
            continue
        found = (page.parent / target).resolve()
        assert found.exists(), f"{page.name}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", FENCED.sub("", found.read_text(encoding="utf-8")), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading[1:] in anchors, f"{page.name}: {target}{heading}"


_ROW = re.compile(r"^\| ([^|]+) \| ([\d.]+ s) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)


@pytest.mark.parametrize("page", sorted((DOCS / "libraries").glob("*.md")), ids=lambda page: page.stem)
def test_times_of_a_library_are_those_that_were_measured(page):
    """The rows of a library's page stand in the table of all, and index.md leads to the page."""
    measured = (DOCS / "ecosystem.md").read_text(encoding="utf-8")
    rows = _ROW.findall(page.read_text(encoding="utf-8"))
    assert rows
    for program, *times in rows:
        assert f"| {program} | the same values | {' | '.join(times)} |" in measured, program
    assert f"libraries/{page.name}" in (DOCS / "index.md").read_text(encoding="utf-8")


_FILE = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:py|md|txt))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_are_there(page):
    """Files are named from the repository's root, the package, or the page's folder."""
    folders = ROOT, ROOT / "gradix", page.parent
    missing = [
        name
        for name in _FILE.findall(page.read_text(encoding="utf-8"))
        if not any((folder / name).exists() for folder in folders)
    ]
    assert not missing, missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_says_what_it_is(page):
    """An output in a block without a language would be compared with nothing."""
    languages = [block[1] for block in FENCED.finditer(page.read_text(encoding="utf-8"))]
    assert set(languages) <= {"python", "text", "console", "jax", "cpp"} | (
        {"py"} if page.stem == "six-faults" else set()
    )


def test_the_map_names_every_page():
    named = set()
    for page in (DOCS / "index.md", DOCS / "design/decisions/README.md"):  # which maps its own folder
        named |= {(page.parent / target).resolve() for target, _ in LINK.findall(page.read_text(encoding="utf-8"))}
    assert {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if p.resolve() not in named} == {"index.md"}


def test_what_is_wrong_is_reported():
    page = (
        "```python\nx = 1\nprint(x)\n```\n\n```text\n2\n```\n\n```python\n>>> x + 1\n3\n\n```\n\n```python\nx[0]\n```\n"
    )
    first, second, third = blocks(page)
    names = {}
    assert "shows\n2\n\nbut gives\n1" in run_program(first, "p.md", names)
    assert "p.md" in run_doctest(second, "p.md", names)
    assert "line 11" in run_doctest(second, "p.md", names)
    assert "TypeError" in run_program(third, "p.md", names)
    assert not run_program(Block("print(3)\n1 / 0", "3\nZeroDivisionError: ...\n", 1), "p.md", names)


if __name__ == "__main__":
    sys.exit(run_page(Path(sys.argv[1])) or 0)
