"""What the suite promises of itself."""

import importlib.util
import itertools
import os
import random
import re
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from tests import strict
from tests.conftest import covering

ROOT = Path(__file__).parents[1]
RNG, STATE, OWN = np.random.default_rng(0), np.random.RandomState(0), random.Random(0)


@pytest.mark.parametrize("again", range(2))
def test_the_numbers_a_test_draws_depend_on_its_name_alone(request, again):
    seed = zlib.crc32(request.node.nodeid.encode())
    assert RNG.random(9).tolist() == np.random.default_rng(seed).random(9).tolist()
    fresh = np.random.RandomState(seed).random_sample(9).tolist()
    assert STATE.random_sample(9).tolist() == np.random.random_sample(9).tolist() == fresh
    fresh = random.Random(seed).random()
    assert OWN.random() == random.random() == fresh


@pytest.mark.parametrize("where", [{}, {"CI": "true"}], ids=["here", "CI"])
def test_drawn_programs_are_the_same_in_every_quick_run(where):
    """Also under continuous integration, whose variable changes the defaults of hypothesis."""
    program = textwrap.dedent("""
        import hypothesis, tests.conftest
        for name in "quick", "full":
            profile = hypothesis.settings.get_profile(name)
            print(name, profile.derandomize, profile.deadline, profile.database is None)
    """)
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")} | where
    ran = subprocess.run([sys.executable, "-c", program], env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    quick, full = ran.stdout.splitlines()
    assert quick == "quick True None True" and full.startswith("full False None")


class Drawn:
    """A test with parameters, as `covering` sees it."""

    def __init__(self, **params):
        self.callspec = SimpleNamespace(params=params)

    def iter_markers(self, name):
        assert name == "parametrize"
        return [pytest.mark.parametrize("shape, axis", []).mark, pytest.mark.parametrize("kind", []).mark]


def test_a_sample_meets_every_row_and_every_pair_of_rows():
    shapes, kinds = [((3, 4), 0), ((3, 4), 1), ((5,), 0)], ["a", "b"]
    tests = [Drawn(shape=shape, axis=axis, kind=kind) for (shape, axis), kind in itertools.product(shapes, kinds)]
    chosen = covering(tests, 1)
    assert len(chosen) == 3 and chosen == covering(tests, 1)
    assert {(t.callspec.params["shape"], t.callspec.params["axis"]) for t in chosen} == set(shapes)
    assert {t.callspec.params["kind"] for t in chosen} == set(kinds)
    assert set(covering(tests, 2)) == set(tests)


# -- which Pythons and packages --------------------------------------------------------------------------------------


def _script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _python(path, *answer, status=0):
    """What stands for a Python, and answers so to a question for its version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {' '.join(map(str, answer))}\nexit {status}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with Pythons on its path and from pyenv, of which some are none to take."""
    _python(tmp_path / "bin/python3", 3, 11, 9, True, True)
    _python(tmp_path / "bin/python3.99", status=127)  # a shim of a version that is not chosen
    _python(tmp_path / "bin/python3-config", 3, 98, 0, True, True)
    _python(tmp_path / "venv/bin/python3", 3, 97, 0, True, False)
    for number, final in (("3.12.1", True), ("3.13.0", True), ("3.13.2", True), ("3.96.0", False)):
        _python(tmp_path / f"pyenv/versions/{number}/bin/python3", *number.split("."), final, True)
    monkeypatch.setenv(
        "PATH", os.pathsep.join(str(tmp_path / f"{name}bin") for name in ("", "venv/")) + os.pathsep + "/bin"
    )
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_newer_pythons_are_found(machine):
    newest = _script("newest")
    found = {
        n: p for n, p in newest.newer((3, 11)).items() if machine in p.parents
    }  # the machine may have its own in /bin
    assert {n: p.relative_to(machine).as_posix() for n, p in found.items()} == {
        (3, 12): "pyenv/versions/3.12.1/bin/python3",
        (3, 13): "pyenv/versions/3.13.2/bin/python3",
    }
    assert newest.newer((3, 99)) == {}


def test_without_a_newer_python_a_line_says_so(machine, monkeypatch, capsys):
    newest, tried = _script("newest"), []
    monkeypatch.setattr(newest, "newer", lambda than: {(3, 12): Path("a"), (3, 13): Path("b")})
    for made, said, pythons in (
        (lambda p: p == Path("a"), "3.13: a package", "ba"),
        (lambda p: False, "No Python newer than", "ba"),
        (lambda p: True, "", "b"),
    ):
        monkeypatch.setattr(newest, "make", lambda p, folder, extras, made=made: tried.append(str(p)) or made(p))
        newest.main(machine / "made", "test")
        assert said in (text := capsys.readouterr().out) and bool(said) is bool(text) and "".join(tried) == pythons
        tried.clear()
    (machine / "made").mkdir()
    (machine / "made/stamp").touch()
    newest.main(machine / "made", "test")  # is there already
    assert not tried and not capsys.readouterr().out


def test_private_names_that_nothing_uses_are_found(tmp_path):
    pytest.importorskip("vulture")
    dead_code = _script("dead_code")
    for name, text in {
        "face.py": "from ._parts import shown, DEAD_TOO as DEAD_TOO\ndef public(): pass\ndef _private(): pass\n",
        "_parts.py": "import math\nDEAD, ALIVE = 1, 2\nDEAD_TOO: int = 3\ndef shown(a, unread=None): return ALIVE\n"
        "class Record:\n    field = 1\n    def method(self): pass\n"
        "@rule.defjvp\ndef _rule(): pass\ndef exponential_of_two(): pass\n",
        "__init__.py": "def also_public(): pass\ndef __dir__(): pass\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert sorted(dead_code.unused(tmp_path)) == [
        "_parts.py:1: unused import math",
        "_parts.py:2: unused variable DEAD",
        "_parts.py:5: unused class Record",
        "face.py:3: unused function _private",
    ]


def test_each_bound_is_documented():
    done = subprocess.run([sys.executable, ROOT / ".ci/oldest.py"], capture_output=True, text=True, check=True)
    table = (ROOT / "docs/design/dependencies.md").read_text("utf-8").partition("### Tested versions")[2]
    for line in done.stdout.splitlines():
        name, least = re.match(r"([\w-]+)==([\d.]+)\.\*", line).groups()
        (tested,) = re.findall(rf"\| `{name}` \|([^|]*)\|", table)
        assert re.search(rf" {re.escape(least)}\b", tested), line
    least, below = re.search(r"jaxlib>=([\d.]+),<([\d.]+)", (ROOT / "pyproject.toml").read_text("utf-8")).groups()
    newest = re.search(r"\| `jaxlib` \| [\d.]+ \| (\d+)\.(\d+)", table)
    assert below == f"{newest[1]}.{int(newest[2]) + 1}" and f"≥ {least}, < {below}" in (
        ROOT / "docs/design/dependencies.md"
    ).read_text("utf-8")


def test_what_a_test_mixes_is_told_from_what_the_library_mixes():
    scope = {}
    text = "def doubled(x):\n    return x + x.astype(int)\ndef table(x):\n    return x + jnp.ones((2, 3))\n"
    exec(compile("import gradix.numpy as jnp\n" + text, strict.LIBRARY + "/numpy/of_the_library.py", "exec"), scope)
    for name, value in (strict.STRICT | strict.FRAMES).items():
        gradix.config.update(name, value)
    row, whole = jnp.ones(3), jnp.arange(3)
    calls = {
        "ranks": (lambda: row + jnp.ones((2, 3)), True),
        "dtypes": (lambda: jnp.multiply(row, whole), True),
        "a number": (lambda: whole * 2.5, True),
        "inside of a function of the test": (lambda: gradix.grad(lambda x: (x * whole).sum())(row), True),
        "dtypes inside of the library": (lambda: scope["doubled"](row), False),
        "ranks inside of the library": (lambda: gradix.jit(scope["table"])(row), False),
    }
    for case, (call, is_of_the_test) in calls.items():
        with pytest.raises(ValueError) as caught:
            call()
        assert strict.is_of_the_options(caught.value), case
        assert strict.mixes(strict.operands(strict.call_of_a_test(caught.value))) == is_of_the_test, case
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0
    assert not strict.is_of_the_options(caught.value)
