"""Tracebacks in IPython, which shows exceptions by itself: no frame of this package is in them."""

import os
import pathlib
import subprocess
import sys
import traceback

import pytest

import gradix
import gradix.numpy as jnp
from gradix._base import tracebacks

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Shell:
    """What the shell of IPython has for those who show exceptions in another way."""

    custom_exceptions = ()

    def __init__(self):
        self.shown = []

    def set_custom_exc(self, kinds, handler):
        self.custom_exceptions, self.handler = kinds, handler

    def showtraceback(self, found, tb_offset=None, running_compiled_code=False):
        kind, error, whole = found
        self.shown += traceback.format_exception(kind, error, whole)


def refused():
    jnp.ones(3).reshape(2, 2)


def refused_again():
    try:
        refused()
    except TypeError as e:
        raise ValueError("mine") from e


@pytest.mark.parametrize("call", [refused, refused_again])
def test_a_shell_shows_the_users_frames_alone(call):
    shell = Shell()
    tracebacks.leave_out_in(shell)
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    error = caught.value
    whole = error.__traceback__
    shell.handler(shell, type(error), error, whole)
    text = "".join(shell.shown)
    assert "in refused" in text and str(pathlib.Path(gradix.__file__).parent) not in text
    assert error.__traceback__ is whole
    gradix.config.update("jax_traceback_filtering", "off")
    try:
        shell.handler(shell, type(error), error, whole)
    finally:
        gradix.config.update("jax_traceback_filtering", "auto")
    assert str(pathlib.Path(gradix.__file__).parent) in "".join(shell.shown)


def test_a_shell_keeps_the_way_that_it_has():
    shell = Shell()
    shell.set_custom_exc((KeyError,), None)
    tracebacks.leave_out_in(shell)
    assert shell.handler is None and shell.custom_exceptions == (KeyError,)
    tracebacks.leave_out_in(None)


CELLS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import gradix.numpy as jnp")
shell.run_cell("jnp.ones(3).reshape(2, 2)")
shell.run_cell("1/0")
"""


def test_ipython_shows_the_cell_alone(tmp_path):
    pytest.importorskip("IPython")
    done = subprocess.run(
        [sys.executable, "-c", CELLS],
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "total size must be unchanged" in done.stdout and "ZeroDivisionError" in done.stdout, done.stderr
    assert "numpy/methods.py" not in done.stdout
