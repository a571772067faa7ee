"""Answering `import jax` in processes that are still to start: a folder on their path, which holds a module `jax` of three lines.

`enable` puts the folder on the path of every program of this virtual environment, `reach_children` on that of the processes a program
starts. Nothing is looked at, and nothing of gradix is loaded, before a program imports jax.
"""
from __future__ import annotations

import atexit
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from gradix.compat.install import JAX_VERSION

OFF = "GRADIX_AS_JAX"                       # set to 0, it leaves a process as if nothing were enabled
_NAME = "gradix_as_jax"

_MODULE = '''"""Gradix answers `import jax` here; `python -m gradix disable` undoes it."""
import sys

try:
    import gradix
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(f"gradix is to answer for jax here, but is not installed; remove {__file__} to undo it", name="jax") from e
del sys.modules[__name__]
gradix.install_as_jax()
'''


def _write(folder: Path) -> None:
    records = folder / f"jax-{JAX_VERSION}.dist-info"
    records.mkdir(parents=True)
    (folder / "jax.py").write_text(_MODULE)
    (records / "METADATA").write_text(f"Metadata-Version: 2.1\nName: jax\nVersion: {JAX_VERSION}\nSummary: gradix, in place of JAX\n")


def site_packages() -> Path:
    """The folder of this environment that its programs start from."""
    return Path(sysconfig.get_path("purelib"))


def is_enabled() -> bool:
    """Whether programs of this virtual environment get gradix for `import jax`."""
    return (site_packages() / f"{_NAME}.pth").exists()


def enable() -> Path:
    """Make `import jax` give gradix in every program of this virtual environment; no file of another package is touched.

    Returns:
        The file that does it.

    Raises:
        RuntimeError: Python does not run in a virtual environment.
    """
    if sys.prefix == sys.base_prefix:
        raise RuntimeError(f"this Python, {sys.executable}, belongs to no virtual environment: all programs of the machine would be "
                           "changed. Make one with python -m venv, or run single programs with python -m gradix program.py.")
    disable()
    folder, switch = site_packages() / _NAME, site_packages() / f"{_NAME}.pth"
    _write(folder)
    switch.write_text(f'import os, sys; os.environ.get("{OFF}") == "0" or sys.path.insert(0, {str(folder)!r})\n')
    return switch


def disable() -> bool:
    """Undo `enable`; returns whether there was something to undo."""
    was = is_enabled()
    (site_packages() / f"{_NAME}.pth").unlink(missing_ok=True)
    shutil.rmtree(site_packages() / _NAME, ignore_errors=True)
    return was


def reach_children() -> None:
    """Make the processes that this one starts answer as well, however they are started."""
    if os.environ.get(OFF) == "1":                      # one above this process did it already
        return
    folder = Path(tempfile.mkdtemp(prefix=f"{_NAME}-"))
    atexit.register(_remove, folder, os.getpid())
    _write(folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ[OFF] = "1"
    sys.path.insert(1, str(folder))                     # processes that are spawned get this list


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:                          # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)
