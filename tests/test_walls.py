"""The programs of docs/walls.md end on the reference implementation as the page says."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "walls.md"
WALL = re.compile(
    r"^### (.*?)\n.*?^```python\n(.*?)^```\n\n```text\n.*?^```\n\n```jax\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n"


def walls():
    """(title, program, end on JAX) of each section that tells how the program ends there."""
    sections = re.split(r"^(?=###? )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [found.groups() for s in sections if (found := WALL.match(s))]


def test_the_page_has_walls():
    assert len(walls()) >= 10


@pytest.mark.parity
@pytest.mark.parametrize("program, end", [w[1:] for w in walls()], ids=[w[0] for w in walls()])
def test_wall(program, end):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program.replace("gradix", "jax")], capture_output=True, text=True
    )
    error = re.search(r"^[\w.]*Error: .*$", done.stderr, re.MULTILINE)
    got = error[0] + "\n" if error else done.stdout
    assert doctest.OutputChecker().check_output(end, got, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), got
