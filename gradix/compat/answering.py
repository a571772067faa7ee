"""Makes `import jax` give gradix in later processes: the folder `answers` has a module `jax`.

`enable` puts the folder on the path of every program of this virtual environment, `reach_children`
on that of the processes that a program starts. Nothing of gradix is loaded before a program imports
jax.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

# Set to 0, this environment variable turns the effect of `enable` off in a process.
OFF = "GRADIX_AS_JAX"
ANSWERS = Path(__file__).with_name("answers")


def _switch() -> Path:
    """The file that the programs of this virtual environment read when they start."""
    return Path(sysconfig.get_path("purelib")) / "gradix_as_jax.pth"


def is_enabled() -> bool:
    """Whether programs of this virtual environment get gradix for `import jax`."""
    return _switch().exists()


def enable() -> Path:
    """Make `import jax` give gradix in every program of this virtual environment.

    No file of another package is changed.

    Returns:
        The path of the one file that is written.

    Raises:
        RuntimeError: Python does not run in a virtual environment.
    """
    if sys.prefix == sys.base_prefix:
        raise RuntimeError(
            f"this Python, {sys.executable}, is not in a virtual environment, so all programs of this "
            "machine would be changed. Make an environment with python -m venv, or run single programs "
            "with python -m gradix program.py."
        )
    switch = _switch()
    switch.write_text(f'import os, sys; os.environ.get("{OFF}") == "0" or sys.path.insert(0, {str(ANSWERS)!r})\n')
    return switch


def disable() -> bool:
    """Undo `enable`, and return whether it was enabled."""
    was = is_enabled()
    _switch().unlink(missing_ok=True)
    return was


def reach_children() -> None:
    """Make `import jax` give gradix in the processes that this one starts, in whatever way."""
    known = os.environ.get("PYTHONPATH", "")
    if str(ANSWERS) not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ANSWERS), known]))
    if str(ANSWERS) not in sys.path:
        sys.path.insert(1, str(ANSWERS))  # Processes that multiprocessing spawns get this list.
