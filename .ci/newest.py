"""Make a virtual environment of the newest Python on this machine, with the newest packages that are allowed.

    python .ci/newest.py FOLDER EXTRAS

Nothing is made if no Python here is newer than the one that runs this, or if jaxlib has no wheel for those that are;
a line says so, and the exit status is 0. An environment that is there already is kept while `pyproject.toml` is older.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NO_WHEEL = "No matching distribution found"
PROBE = (
    "import ensurepip, sys, venv; "
    "print(*sys.version_info[:3], sys.version_info.releaselevel == 'final', sys.prefix == sys.base_prefix)"
)


def executables() -> Iterator[Path]:
    """What may be a Python: by name on PATH, and the versions that pyenv has installed."""
    for folder in map(Path, os.environ.get("PATH", "").split(os.pathsep)):
        yield from folder.glob("python3*")
    roots = {os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")}
    if pyenv := shutil.which("pyenv"):
        roots.add(str(Path(pyenv).resolve().parent.parent))
    for root in filter(None, roots):
        yield from Path(root).glob("versions/*/bin/python3")


def version(python: Path) -> tuple[int, ...] | None:
    """The version of a released Python that can make environments and is none itself; None of anything else."""
    try:
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    *number, final, own = done.stdout.split() or ["", ""]
    return tuple(map(int, number)) if done.returncode == 0 and final == own == "True" else None


def newer(than: tuple[int, int]) -> dict[tuple[int, int], Path]:
    """The Pythons of later minor versions, the latest first; of each the latest patch."""
    found: dict[tuple[int, ...], Path] = {}
    for path in dict.fromkeys(p.resolve() for p in executables() if os.access(p, os.X_OK) and "config" not in p.name):
        number = version(path)
        if number is not None and number[:2] > than:
            found.setdefault(number, path)
    return {number[:2]: found[number] for number in sorted(found)}


def make(python: Path, folder: Path, extras: str) -> bool:
    """Whether the environment could be made; False if a package has no version for this Python.

    Raises:
        SystemExit: the installation failed for another reason.
    """
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install += ["--only-binary=:all:", "-e", f"{ROOT}[{extras}]"]
    done = subprocess.run([folder / "bin/python", *install], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        (folder / "stamp").touch()
        return True
    shutil.rmtree(folder)
    if NO_WHEEL in done.stderr:
        return False
    sys.exit(done.stderr + f"{python} could not be given the packages of the suite.")


def main(folder: Path, extras: str) -> None:
    """Make the environment, or say why there is none."""
    stamp = folder / "stamp"
    if stamp.exists() and stamp.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime:
        return
    pythons = newer(sys.version_info[:2])
    for number in sorted(pythons, reverse=True):
        if make(pythons[number], folder, extras):
            return
        print(f"Python {number[0]}.{number[1]}: a package of the suite has no version for it yet.")
    shutil.rmtree(folder, ignore_errors=True)
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    print(f"No Python newer than {own} to run the suite on: it runs on this one alone.")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2])
