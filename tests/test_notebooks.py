"""Notebooks are made of the pages and examples that the tests run, and give what they show when a kernel runs them."""

import ast
import contextlib
import doctest
import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from docs import notebooks
from tests.test_docs import FLAGS, ROOT, blocks

QUICK = {"getting-started", "control-flow", "regression"}
NAMES = [p.stem for p in notebooks.pages()] + [Path(n).stem for n in notebooks.PROGRAMS]


def run(cell: dict, names: dict) -> str:
    """What a kernel prints and shows of a cell, and its error."""
    source = "".join(cell["source"])
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        try:
            exec(compile(tree, "example.py", "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last.value), "example.py", "eval"), names)
            if value is not None and not source.endswith(";"):
                print(repr(value))
        except Exception as error:
            return told.getvalue() + "".join(traceback.format_exception_only(error))
    return told.getvalue()


def shown(cell: dict) -> str:
    """The output that a notebook brings with it."""
    text = ""
    for output in cell["outputs"]:
        kind = output["output_type"]
        text += "".join(output["text"] if kind == "stream" else output["data"]["text/plain"]) if kind != "error" else ""
        if kind == "error":
            text += (
                "\n".join(line for line in output["traceback"] if not line.startswith(("Traceback", "    ..."))) + "\n"
            )
    return text


def problems(notebook: dict) -> list[str]:
    """The cells that give something else than they show."""
    names, found = {"__name__": "__main__"}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        got, wanted = run(cell, names), shown(cell)
        if cell["outputs"] and not doctest.OutputChecker().check_output(wanted, got, FLAGS):
            found.append(f"{''.join(cell['source'])}\nshows\n{wanted}\nbut gives\n{got}")
        elif not cell["outputs"] and "Error: " in got:
            found.append(f"{''.join(cell['source'])}\nends in\n{got}")
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    notebooks.write(folder)
    return folder


def test_there_is_one_for_each_page_under_learn_and_for_programs_of_one_file(written):
    assert {p.stem for p in written.glob("*.ipynb")} == set(NAMES)
    assert {"getting-started", "transformations", "random", "digits", "hmc", "lennard_jones", "order_book"} <= set(
        NAMES
    )


@pytest.mark.parametrize("page", notebooks.pages(), ids=lambda p: p.stem)
def test_a_notebook_has_the_code_of_its_page_in_order(page):
    wanted = []
    for block in blocks(page.read_text(encoding="utf-8")):
        session = block.code.startswith(">>>")
        examples = doctest.DocTestParser().get_examples(block.code) if session else []
        wanted.append("".join(e.source for e in examples) if session else block.code)
    cells = notebooks.of_page(page)["cells"]
    code = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert "".join(code.split()).replace(";", "") == "".join("".join(wanted).split()).replace(";", "")


@pytest.mark.parametrize("page", notebooks.pages(), ids=lambda p: p.stem)
def test_values_are_shown_only_where_a_kernel_shows_them(page):
    """A session shows the value of an expression in a block too; a kernel shows that of a cell's last line alone."""
    for cell in notebooks.of_page(page)["cells"]:
        source = "".join(cell["source"])
        printed = any(o["output_type"] == "stream" for o in cell.get("outputs", ()))
        in_block = printed and isinstance(ast.parse(source).body[-1], (ast.With, ast.For, ast.While, ast.If, ast.Try))
        assert not in_block or "print" in source, source
        assert "<doctest" not in shown({"outputs": cell.get("outputs", ())})  # the name of a file that no kernel has


@pytest.mark.parametrize("name", notebooks.PROGRAMS)
def test_programs_ask_whether_they_have_a_file(name):
    """A kernel does not define `__file__`."""
    tree = ast.parse((ROOT / "examples" / name).read_text(encoding="utf-8"))
    assert "__file__" not in {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def test_the_form_is_that_of_notebooks(written):
    for file in written.glob("*.ipynb"):
        notebook = json.loads(file.read_text(encoding="utf-8"))
        assert notebook["nbformat"] == 4 and len({c["id"] for c in notebook["cells"]}) == len(notebook["cells"])
        for cell in notebook["cells"]:
            assert "".join(cell["source"]).strip() and cell["cell_type"] in ("code", "markdown")
            assert (cell["cell_type"] == "code") == ("outputs" in cell) == ("execution_count" in cell)
            assert (
                "](" not in "".join(cell["source"])
                or cell["cell_type"] == "code"
                or "attachments" in cell
                or "://" in "".join(cell["source"])
            )
    nbformat = pytest.importorskip("nbformat")
    for file in written.glob("*.ipynb"):
        nbformat.validate(nbformat.read(file, as_version=4))


def test_cells_show_values_text_and_errors_as_a_kernel_does():
    value, text, error, both = [
        notebooks._code("1 + 1", "2\n"),
        notebooks._code("print(3)", "3\n"),
        notebooks._code("1 / 0", "ZeroDivisionError: division by zero\n", True),
        notebooks._code("x = 1", ""),
    ]
    assert [c["outputs"][0]["output_type"] for c in (value, text, error)] == ["execute_result", "stream", "error"]
    assert error["metadata"] == {"tags": ["raises-exception"]} and both["outputs"] == []
    assert problems({"cells": [value, text, error, both]}) == []
    assert len(problems({"cells": [notebooks._code("1 + 1", "3\n"), notebooks._code("1 / 0")]})) == 2


@pytest.mark.x32
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in NAMES])
def test_a_kernel_gives_what_the_notebook_shows(name, written, tmp_path):
    if name in ("digits", "hmc"):
        pytest.importorskip("sklearn")
    if name in ("digits", "hmc", "lennard_jones", "order_book"):
        pytest.importorskip("matplotlib")
    path = os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "examples"), os.environ.get("PYTHONPATH")]))
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONIOENCODING": "utf-8",
        "JAX_TRACEBACK_FILTERING": "off",
        "MPLBACKEND": "Agg",
    }
    command = [sys.executable, "-m", "tests.test_notebooks", str(written / f"{name}.ipynb")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    wrong = problems(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print("\n".join(wrong))
    sys.exit(bool(wrong))
