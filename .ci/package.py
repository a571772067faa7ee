"""Build the package, and install it where a user would: in empty environments of every Python on this machine.

    python .ci/package.py [--sample] [--python PATH ...]

Makes the archive of sources and the wheel in `dist`, checks both, and installs the wheel, with the oldest and with the
newest packages it allows, into an environment without anything else for each Python from 3.11 on. There the first program
runs in five ways: as it is, without HOME, with a home that nothing can be written to, as another user, and without a network;
where the machine does not allow one of these, a line says so. With `--sample`, some of the tests run from the unpacked
archive as well. It prints a table, and ends with an error if anything in it failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import newest

ROOT = Path(__file__).resolve().parent.parent
# What a user tries first: a gradient, a compiled function, a program for JAX, and types that checkers find.
FIRST = """
import gradix, gradix.numpy as jnp
assert "site-packages" in gradix.__file__, gradix.__file__
assert float(gradix.grad(lambda x: jnp.sin(x) ** 2)(0.0)) == 0.0
f = gradix.jit(lambda x: jnp.dot(x, x))
assert float(f(jnp.arange(4.0))) == 14.0 and float(f(jnp.arange(4.0))) == 14.0
gradix.install_as_jax()
import jax
assert jax.vmap(jax.numpy.sum)(jnp.ones((2, 3))).tolist() == [3.0, 3.0]
"""
SAMPLE = (
    "tests/base",
    "tests/core/test_pretty.py",
    "tests/test_docs.py",
    "tests/test_layers.py",
    "tests/transforms/test_grad.py",
)
IN_THE_WHEEL = ("gradix/py.typed", "gradix/__init__.py", "gradix/_api/costs/web/charts.min.js")
IN_THE_SOURCES = (
    "conftest.py",
    "Makefile",
    "tests/test_docs.py",
    "docs/index.md",
    "benchmarks/case.py",
    ".ci/oldest.py",
    "pyproject.toml",
)


def build(folder: Path) -> tuple[Path, Path]:
    """Make the archive and, from it, the wheel; check what is in them."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir()], check=True)
    (wheel,), (sources,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    inside = zipfile.ZipFile(wheel).namelist()
    foreign = [n for n in inside if not n.startswith(("gradix/", "gradix-"))]
    with tarfile.open(sources) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    lacking = [n for n in IN_THE_WHEEL if n not in inside] + [n for n in IN_THE_SOURCES if n not in packed]
    if foreign or lacking:
        sys.exit(f"the wheel holds what it should not: {foreign}; these are missing: {lacking}")
    return wheel, sources


def pythons() -> list[Path]:
    """Each Python of this machine from 3.11 on, one of each minor version."""
    return [path for _, path in sorted(newest.newer((3, 10)).items())]


def install(python: Path, folder: Path, wheel: Path, packages: str) -> str:
    """Make an empty environment with the wheel in it; what pip says if it cannot."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    command = [
        folder / "bin/python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary=:all:",
    ]
    if packages == "oldest":
        constraints = folder / "oldest.txt"
        oldest = subprocess.run([sys.executable, ROOT / ".ci/oldest.py"], capture_output=True, text=True, check=True)
        constraints.write_text(oldest.stdout, encoding="utf-8")
        command += ["--constraint", constraints]
    done = subprocess.run([*command, wheel], capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def first_program(python: Path, folder: Path) -> dict[str, str]:
    """How the first program ends in each of the ways: "ok", "not here" where the machine does not allow it, or the error."""
    home = folder / "home"
    home.mkdir()
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GRADIX", "JAX", "XDG"))} | {
        "HOME": str(home)
    }
    command = [str(python), "-W", "error", "-c", FIRST]
    readonly = folder / "readonly"
    readonly.mkdir(mode=0o555)
    as_other: list[str] | None = None
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root and shutil.which("setpriv"):
        as_other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if as_other and _ends([*as_other, str(python), "-c", ""], plain) != "ok":
        as_other = None  # This Python lies in a folder, or needs a library, that only root reaches.
    offline = ["unshare", "--net"] if is_root and shutil.which("unshare") else None
    ways: dict[str, Callable[[], str]] = {
        "as it is": lambda: _ends(command, plain),
        "without HOME": lambda: _ends(command, {k: v for k, v in plain.items() if k != "HOME"}),
        # Root can write anywhere, so the home is one that nobody can make files in, and the user another.
        "read-only home": lambda: (
            _ends([*(as_other or []), *command], plain | {"HOME": str(readonly)})
            if as_other or not is_root
            else "not here"
        ),
        "another user": lambda: (
            _ends([*as_other, *command], plain | {"HOME": "/nonexistent"}) if as_other else "not here"
        ),
        "offline": lambda: _ends([*offline, *command], plain) if offline else "not here",
    }
    return {way: run() for way, run in ways.items()}


def _ends(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 0:
        return "ok" if not done.stderr.strip() else f"prints {done.stderr.strip().splitlines()[-1]}"
    last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    return "not here" if "Operation not permitted" in last[0] and command[0] == "unshare" else last[0]


def sample(python: Path, sources: Path, folder: Path) -> str:
    """Some of the tests, from the unpacked archive with the packages of the wheel's environment."""
    needed = ["hypothesis", "mpmath", "pytest", "pytest-xdist"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed], check=True)
    with tarfile.open(sources) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    done = subprocess.run(
        [python, "-m", "pytest", "-m", "not slow", *SAMPLE], cwd=unpacked, capture_output=True, text=True, check=False
    )
    closing = (done.stdout.strip().splitlines() or [""])[-1]
    return "ok" if done.returncode == 0 else f"{closing}\n{done.stdout[-3000:]}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="store_true", help="run some of the tests from the unpacked archive too")
    parser.add_argument(
        "--python", action="append", type=Path, help="a Python to install for; all of this machine by default"
    )
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder of the archive and the wheel")
    options = parser.parse_args(arguments)
    wheel, sources = build(options.dist)
    print(f"built {wheel.name} and {sources.name}")
    failed = False
    for python in options.python or pythons():
        for packages in ("oldest", "newest"):
            # Other users have to reach the environment, so it cannot lie in a folder of root alone.
            with tempfile.TemporaryDirectory() as made:
                os.chmod(made, 0o755)
                folder = Path(made)
                title = f"Python {'.'.join(map(str, newest.version(python) or ()))}, {packages} packages"
                if refused := install(python, folder / "venv", wheel, packages):
                    # The oldest jaxlib has no wheel for a Python that is newer than it.
                    print(f"{title}: not installed: {refused}", flush=True)
                    failed |= packages == "newest"
                    continue
                inside = folder / "venv/bin/python"
                outcome = first_program(inside, folder)
                outcome["the command"] = _ends([str(folder / "venv/bin/gradix"), "-c", "import jax"], dict(os.environ))
                if options.sample and packages == "newest":
                    outcome["the tests' sample"] = sample(inside, sources, folder / "sources")
                failed |= any(o not in ("ok", "not here") for o in outcome.values())
                print(f"{title}: " + ", ".join(f"{way}: {o}" for way, o in outcome.items()), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
