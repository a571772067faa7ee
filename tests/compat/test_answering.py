"""`import jax` in processes to come: children of a program, and all programs of a virtual environment."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import gradix
from gradix.compat.install import JAX_VERSION

PATH = os.pathsep.join([str(Path(gradix.__file__).parents[1]), sysconfig.get_path("purelib")])

PROGRAM = """
import multiprocessing, subprocess, sys
import importlib.metadata
ASK = "import importlib.metadata as m; v = m.version('jax'); import jax.numpy, jax; print(jax.numpy.__name__, v, jax.__version__)"

def work(x):
    import jax.numpy as jnp
    import jax
    return jnp.__name__, float(jax.grad(jnp.sin)(x)), importlib.metadata.version("jax")

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(*pool.apply(work, (0.0,)))
    print(subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True).stdout.strip())
"""


def run(python, *arguments, **env):
    done = subprocess.run(
        [str(python), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={k: v for k, v in os.environ.items() if k != "GRADIX_AS_JAX"} | {"PYTHONPATH": PATH} | env,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


EXPECTED = f"gradix.numpy 1.0 {JAX_VERSION}\ngradix.numpy {JAX_VERSION} {JAX_VERSION}\n"


def test_children_of_a_program_answer_too(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert run(sys.executable, "-m", "gradix", str(program), TMPDIR=str(tmp_path)) == EXPECTED
    assert list(tmp_path.iterdir()) == [program]


def test_the_switch_of_a_virtual_environment(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    before = sorted(tmp_path.rglob("*"))
    assert "python -m gradix disable undoes it" in run(python, "-m", "gradix", "enable")
    assert run(python, str(program)) == EXPECTED
    loaded = "import sys; print([n for n in sys.modules if n.partition('.')[0] in ('gradix', 'numpy', 'jax')])"
    assert run(python, "-c", loaded).strip() == "[]"
    where = "import importlib.util as u; print('answers' in str(u.find_spec('jax')))"
    assert [run(python, "-c", where, GRADIX_AS_JAX=on).strip() for on in ("", "0")] == ["True", "False"]
    ours = "import gradix, sys; gradix.numpy.ones(2).sum(); print([n for n in sys.modules if n.partition('.')[0] == 'jax'])"
    assert run(python, "-c", ours).strip() == "[]"
    assert "disabled" in run(python, "-m", "gradix", "disable") and "nothing to disable" in run(
        python, "-m", "gradix", "disable"
    )
    assert sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts) == [
        p for p in before if "__pycache__" not in p.parts
    ]


def test_the_version_that_is_told_is_the_one_whose_interface_is_offered():
    from gradix.compat import answering

    (found,) = answering.ANSWERS.glob("*.dist-info")
    assert (
        found.name == f"jax-{JAX_VERSION}.dist-info"
        and f"\nVersion: {JAX_VERSION}\n" in (found / "METADATA").read_text()
    )


def test_outside_of_a_virtual_environment_nothing_is_changed(monkeypatch):
    from gradix.compat import answering

    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(answering, "_switch", lambda: pytest.fail("asked"))
    with pytest.raises(RuntimeError, match="is not in a virtual environment"):
        answering.enable()
