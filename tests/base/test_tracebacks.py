"""What an uncaught exception shows: the user's frames, and how to see the others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import gradix, gradix.numpy as jnp

def layer(w, x):
    return jnp.dot(w, x)

def loss(w):
    return gradix.vmap(lambda x: layer(w, x))(jnp.ones((3, 4))).sum()

if "chained" in sys.argv:
    try:
        gradix.jit(gradix.grad(loss))(jnp.ones(5))
    except TypeError as e:
        raise RuntimeError("no step") from e
if "own" in sys.argv:
    raise ValueError("mine")
gradix.jit(gradix.grad(loss))(jnp.ones(5))
"""


def dying(tmp_path, *arguments, launcher=(), **variables):
    """What a program that dies writes to stderr."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, *launcher, str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("launcher", [(), ("-m", "gradix")])
def test_only_the_users_frames_are_shown(tmp_path, launcher):
    shown = dying(tmp_path, launcher=launcher)
    files = [line.split('"')[1] for line in shown.splitlines() if line.startswith("  File")]
    assert [os.path.basename(f) for f in files] == ["program.py"] * 4 and "in layer" in shown
    assert "TypeError: dot: shapes" in shown and "JAX_TRACEBACK_FILTERING=off" in shown.splitlines()[-1]


def test_causes_are_shortened_too(tmp_path):
    shown = dying(tmp_path, "chained")
    assert "direct cause" in shown and "in layer" in shown and "RuntimeError: no step" in shown
    assert not [line for line in shown.splitlines() if line.startswith("  File") and "program.py" not in line]


def test_all_frames_on_request_and_no_note_where_nothing_is_left_out(tmp_path):
    shown = dying(tmp_path, JAX_TRACEBACK_FILTERING="off")
    assert os.path.join("_api", "jit", "jitted_function.py") in shown and "left out" not in shown
    removed = dying(tmp_path, JAX_TRACEBACK_FILTERING="remove_frames")
    assert removed.count("in layer") == 2 and removed.count("jitted_function.py") and "direct cause" in removed
    own = dying(tmp_path, "own")
    assert own.endswith("ValueError: mine\n") and "left out" not in own
