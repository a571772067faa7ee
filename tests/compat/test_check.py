"""`python -m gradix check` and `doctor`."""

import importlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from gradix.compat import commands, doctor
from gradix.compat.check import check_paths, check_source, why_missing
from gradix.compat.fixing import fixed_source

ROOT = Path(__file__).resolve().parents[2]


def found(source):
    return [(m.line, m.name, m.guarded) for m in check_source(source)]


@pytest.mark.parametrize(
    "source, expected",
    [
        ("import jax\njax.numpy.nope()", [(2, "jax.numpy.nope", False)]),
        ("import jax.numpy as jnp\nx = jnp.sin(jnp.linalg.nope(1))", [(2, "jax.numpy.linalg.nope", False)]),
        ("from jax import numpy as np, nope\nnp.nope", [(1, "jax.nope", False), (2, "jax.numpy.nope", False)]),
        ("from jax.numpy import sin, nope as n\nn.more\nsin.more", [(1, "jax.numpy.nope", False)]),
        ("import jax._src.nope", [(1, "jax._src.nope", False)]),
        ("from jax._src.core import ShapedArray, nope", [(1, "jax._src.core.nope", False)]),
        (
            "import jax\njax._src.xla_bridge._backends\njax._src.xla_bridge.nope",
            [(3, "jax._src.xla_bridge.nope", False)],
        ),
        ("from jax.experimental import nowhere", [(1, "jax.experimental.nowhere", False)]),
        ("from jax.nope import a, b", [(1, "jax.nope", False)]),
        ("import jax\n@jax.nope\ndef f(x=jax.nah): pass", [(2, "jax.nope", False), (3, "jax.nah", False)]),
        (
            "try:\n  from jax import nope\nexcept ImportError:\n  from jax import nah",
            [(2, "jax.nope", True), (4, "jax.nah", False)],
        ),
        ("try:\n  from jax import nope\nexcept ValueError: pass", [(2, "jax.nope", False)]),
        ("import jax\nif hasattr(jax, 'nope'):\n  jax.nope", [(3, "jax.nope", True)]),
    ],
)
def test_lacking_names_are_found(source, expected):
    assert found(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "import jax, jax.numpy as jnp\njnp.sin(jax.__version__)\njax.Array.whatever",
        "import jax\ndef f(jax): return jax.nope\ng = lambda jax: jax.nope",
        "import jax\njax = object()\njax.nope",
        "from .jax import nope\nimport jaxopt\njaxopt.nope",
        "import jax.scipy.special as s\nfrom jax import *\ns.erf",
    ],
)
def test_what_is_there_or_not_jax_is_left_alone(source):
    assert found(source) == []


@pytest.mark.parametrize(
    "source, instead",
    [
        ("import jax\njax.tree_map(f, x)", "jax.tree.map"),
        ("from jax import linear_util as lu", "jax.extend.linear_util"),
        ("import jax\njax.lib.xla_bridge.get_backend()", "jax.devices, jax.extend.backend"),
        ("from jax.core import get_aval", "jax.typeof"),
        ("from jax.core import jaxpr_as_fun", "jax.extend.core.jaxpr_as_fun"),
        ("from jax.experimental.maps import xmap", "jax.shard_map, jax.sharding.Mesh"),
        ("from jax.interpreters.xla import DeviceArray", "jax.Array"),
    ],
)
def test_names_that_jax_has_removed_are_told_apart(source, instead):
    (m,) = check_source(source)
    assert m.why == f"JAX has removed it too; write {instead}"


def test_the_version_of_jaxlib_is_no_finding():
    assert found("import jax\nfrom jax import lib\njax.lib.__version__") == []


@pytest.mark.parity
def test_removed_names_are_indeed_gone_from_jax():
    jax = pytest.importorskip("jax")
    text = (ROOT / "gradix/compat/removed.py").read_text()
    names = re.findall(r'^    "([A-Za-z_.]+)": ', text, re.M)
    assert len(names) > 50
    for name in names:
        there = jax
        with pytest.raises((AttributeError, ImportError)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, part in enumerate(name.split(".")):
                there = (
                    getattr(there, part)
                    if hasattr(there, part)
                    else importlib.import_module(".".join(["jax", *name.split(".")[: i + 1]]))
                )


def test_a_text_that_is_no_python_is_one_finding():
    (m,) = check_source("def f(:")
    assert m.name == "syntax" and m.line == 1


def test_folders_are_searched_and_nothing_runs(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text("raise SystemExit(9)\nimport jax\njax.nope\n")
    (m,) = check_paths([tmp_path])
    assert str(m) == f"{tmp_path}/deep/a.py:3: jax.nope: gradix has no nope"
    with pytest.raises(FileNotFoundError, match="absent"):
        check_paths([tmp_path / "absent"])


def test_internals_and_our_own_modules_are_no_names_of_jax():
    assert "internal" in why_missing("jax._core") and "internal" in why_missing("jax.compat")


def test_doctor_reports_and_detects_a_wrong_result(monkeypatch):
    text = "\n".join(doctor.report())
    assert "jaxlib" in text and "its result is correct" in text
    monkeypatch.setattr(doctor.gradix, "jit", lambda f: lambda x: f(x) + 1)
    with pytest.raises(RuntimeError, match="NumPy gives 1134.0"):
        list(doctor.report())


@pytest.mark.parametrize(
    "arguments, code, text",
    [
        (("check",), 2, "needs a path"),
        (("check", "absent.py"), 2, "no such file"),
        (("check", "gradix/compat/install.py"), 0, "0 uses"),
    ],
)
def test_the_command_line(arguments, code, text):
    done = subprocess.run(
        [sys.executable, "-m", "gradix", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == code and text in done.stdout + done.stderr


def test_the_version_of_jax_is_answered_while_installed():
    code = (
        "import gradix, importlib.metadata as m; before = len(list(m.distributions())); gradix.install_as_jax();"
        "print(m.version('jax'), len(list(m.distributions())) == before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=300, check=True
    )
    assert done.stdout == "0.10.2 True\n"


def test_a_suite_written_for_jax_runs_under_the_plug_in(tmp_path):
    (tmp_path / "test_one.py").write_text(
        "import jax, jax.numpy as jnp\ndef test_one():\n    assert jax.jit(jnp.sin)(0.0) == 0 and jnp.__name__ == 'gradix.numpy'\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "gradix.pytest",
            "-p",
            "no:cacheprovider",
            "-c",
            "/dev/null",
            f"--rootdir={tmp_path}",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


# -- check --fix -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "before, after",
    [
        (
            "import jax\nx = jax.tree_map(f, 'é'); y = jax.tree_leaves(x)\n",
            "import jax\nx = jax.tree.map(f, 'é'); y = jax.tree.leaves(x)\n",
        ),
        ("import jax.numpy as jnp\njnp.in1d(\n  a, b)\n", "import jax.numpy as jnp\njnp.isin(\n  a, b)\n"),
        (
            "from jax import tree_map, jit, tree_leaves as tl  # why\n",
            "from jax import jit\nfrom jax.tree import map as tree_map, leaves as tl  # why\n",
        ),
        (
            "if True:\n    from jax.experimental.stax import (\n        Dense,\n        Relu as R,\n    )\n",
            "if True:\n    from jax.example_libraries.stax import Dense, Relu as R\n",
        ),
        ("from jax.experimental.stax import *\n", "from jax.example_libraries.stax import *\n"),
        ("import jax.linear_util as lu, os\n", "import jax.extend.linear_util as lu, os\n"),
        ("import jax\ndef f(x: jax.core.Jaxpr): pass\n", "import jax\ndef f(x: jax.extend.core.Jaxpr): pass\n"),
    ],
)
def test_names_that_jax_removed_are_replaced(before, after):
    assert fixed_source(before.encode()).decode() == after
    assert fixed_source(after.encode()).decode() == after and not check_source(after)


@pytest.mark.parametrize(
    "source",
    [
        "import jax\njax.ops.index_update(x, 0, 1)\njax.nope\n",  # no single name stands for it
        "from jax.experimental.maps import xmap\n",
        "import jax\nif hasattr(jax, 'tree_map'):\n    jax.tree_map(f, x)\n",  # the code expects that it may be missing
        "try:\n    from jax import linear_util\nexcept ImportError:\n    pass\n",
        "import os; from jax import jit, tree_map\n",  # two statements in one line
        "def f(jax):\n    jax.tree_map\n",
        "import jax\njax.tree_map(\n",
    ],
)
def test_what_cannot_be_replaced_stays(source):
    assert fixed_source(source.encode()).decode() == source


def test_the_command_fixes_files(tmp_path, capsys):
    (tmp_path / "a.py").write_text(
        "import jax\njax.tree_map\njax.nope\nif hasattr(jax, 'tree_map'):\n    jax.tree_map\n"
    )
    (tmp_path / "b.py").write_bytes("# -*- coding: latin-1 -*-\nimport jax\njax.tree_map('é')\n".encode("latin-1"))
    assert commands.act(["check", "--fix", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert (
        re.search(r"a.py:2: jax.tree_map: .*\(replaced\)\n", out)
        and out.count("(replaced)") == 1
        and out.endswith("2 uses of names that gradix lacks, and 1 in code that expects it\n")
    )
    assert (tmp_path / "a.py").read_text().startswith("import jax\njax.tree.map\njax.nope\n")
