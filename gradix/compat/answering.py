"""Answering `import jax` in processes still to start: the folder `answers` on their path has a module `jax`.

`enable` puts the folder on the path of every program of this virtual environment, `reach_children`
on that of the processes a program starts. Nothing is looked at, and nothing of gradix is loaded,
before a program imports jax.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

# set to 0, it leaves a process as if nothing were enabled
OFF = "GRADIX_AS_JAX"
ANSWERS = Path(__file__).with_name("answers")


def _switch() -> Path:
    """The file that this environment's programs read when they start."""
    return Path(sysconfig.get_path("purelib")) / "gradix_as_jax.pth"


def is_enabled() -> bool:
    """Whether programs of this virtual environment get gradix for `import jax`."""
    return _switch().exists()


def enable() -> Path:
    """Make `import jax` give gradix in every program of this environment; no file of another package is touched.

    Returns:
        The one file that is written.

    Raises:
        RuntimeError: Python does not run in a virtual environment.
    """
    if sys.prefix == sys.base_prefix:
        raise RuntimeError(
            f"this Python, {sys.executable}, belongs to no virtual environment: all programs of the "
            "machine would be changed. Make one with python -m venv, or run single programs with "
            "python -m gradix program.py."
        )
    switch = _switch()
    switch.write_text(
        f'import os, sys; os.environ.get("{OFF}") == "0" or sys.path.insert(0, {str(ANSWERS)!r})\n'
    )
    return switch


def disable() -> bool:
    """Undo `enable`; returns whether there was something to undo."""
    was = is_enabled()
    _switch().unlink(missing_ok=True)
    return was


def reach_children() -> None:
    """Make the processes that this one starts answer as well, however they are started."""
    known = os.environ.get("PYTHONPATH", "")
    if str(ANSWERS) not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ANSWERS), known]))
    if str(ANSWERS) not in sys.path:
        sys.path.insert(1, str(ANSWERS))  # processes that are spawned get this list
