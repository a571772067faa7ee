"""Running a Python program with gradix in place of jax: a file, a module, code, standard input."""

from __future__ import annotations

import code
import os
import runpy
import sys
from importlib.util import find_spec
from types import ModuleType

from gradix._base import elsewhere as _elsewhere
from gradix.compat import answering, install_as_jax
from gradix.compat.install import JAX_VERSION

COMMANDS = ("run", "explain", "profile", "check", "doctor", "cache", "config", "enable", "disable", "launch")
PROGRAM = "python -m gradix"


def run(argv: list[str]) -> int:
    """Run the program that these arguments name, and return the exit status.

    Args:
        argv: a file, "-m" and a module, "-c" and code, or "-" for standard input, then the
            program's arguments.
    """
    first, rest = (argv[0], argv[1:]) if argv else ("-", [])
    if first in ("-m", "-c") and not rest:
        return failed(f"{first} needs an argument; see {PROGRAM} --help for the usage", 2)
    answering.reach_children()
    install_as_jax()
    if first == "-m":
        if _is_unknown(rest[0]):
            return failed(f"no module named {rest[0]!r}", 1)
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), _main_module())
    elif first == "-":
        sys.argv = argv or [""]
        if sys.stdin.isatty():
            _interact()
        else:
            exec(compile(sys.stdin.read(), "<stdin>", "exec"), _main_module())
    else:
        if not os.path.exists(first):
            near = _elsewhere.close_to(first, COMMANDS)
            what = f"can't open file {first!r}: no such file"
            return failed(f"{what}; see {PROGRAM} --help for the usage{near}", 2)
        sys.argv = argv
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")
    return 0


def failed(message: str, status: int) -> int:
    """Write a message of this command to standard error, and return the exit status."""
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return status


def _is_unknown(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:
        return True


def _main_module() -> dict:
    """The namespace of a new module `__main__`, in which code that is not a file runs."""
    module = sys.modules["__main__"] = ModuleType("__main__")
    return vars(module)


def _interact() -> None:
    """An interactive session, as Python's own, in which `import jax` gives gradix."""
    version = f"Python {sys.version.split()[0]}, with gradix in place of jax {JAX_VERSION}"
    code.interact(f"{version}; leave it with exit().", local=_main_module(), exitmsg="")
