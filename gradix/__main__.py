"""`python -m gradix program.py [arguments]`: run a program written for JAX on gradix."""

from __future__ import annotations

import code
import os
import runpy
import sys
from importlib.util import find_spec
from types import ModuleType

from gradix.compat import answering, check, doctor, install_as_jax
from gradix.compat.install import JAX_VERSION

_USAGE = """usage: python -m gradix program.py [arguments]
       python -m gradix -m module [arguments]
       python -m gradix -c code [arguments]
       python -m gradix [-]
       python -m gradix check path ...
       python -m gradix doctor
       python -m gradix enable | disable

Runs a Python program with gradix in place of jax; without one, an interactive session, or what comes on
standard input. `check` lists the names of JAX that files use and gradix lacks, without running them.
`doctor` reports what gradix finds on this machine. `enable` makes `import jax` give gradix in every program
of this virtual environment, and `disable` undoes it."""


def main(argv: list[str]) -> int:
    """Run the command of these arguments, and return the exit status."""
    first, rest = (argv[0], argv[1:]) if argv else ("-", [])
    if first in ("-h", "--help"):
        print(_USAGE)
        return 0
    if first in ("-m", "-c") and not rest:
        print(f"python -m gradix: {first} needs an argument\n{_USAGE}", file=sys.stderr)
        return 2
    if first in _COMMANDS and not os.path.exists(first):
        return _COMMANDS[first](rest)
    answering.reach_children()
    install_as_jax()
    if first == "-m":
        if _is_unknown(rest[0]):
            print(f"python -m gradix: no module named {rest[0]!r}", file=sys.stderr)
            return 1
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
            print(
                f"python -m gradix: can't open file {first!r}: no such file\n{_USAGE}",
                file=sys.stderr,
            )
            return 2
        sys.argv = argv
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")
    return 0


def command() -> int:
    """What the command `gradix` runs, which is `python -m gradix` by a shorter name."""
    return main(sys.argv[1:])


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


def _check(paths: list[str]) -> int:
    if not paths:
        print(f"python -m gradix: check needs a path\n{_USAGE}", file=sys.stderr)
        return 2
    try:
        found = check.check_paths(paths)
    except FileNotFoundError as e:
        print(f"python -m gradix: {e}", file=sys.stderr)
        return 2
    for use in found:
        print(use)
    certain = sum(not use.guarded for use in found)
    print(
        f"{certain} uses of names that gradix lacks, and {len(found) - certain} in code that expects it"
    )
    return 1 if certain else 0


def _doctor(_) -> int:
    for line in doctor.report():
        print(line)
    return 0


def _enable(_) -> int:
    try:
        switch = answering.enable()
    except RuntimeError as e:
        print(f"python -m gradix: {e}", file=sys.stderr)
        return 1
    print(
        f"import jax gives gradix in every program of {sys.prefix}, by {switch}\n"
        f"python -m gradix disable undoes it; {answering.OFF}=0 turns it off for one program"
    )
    return 0


def _disable(_) -> int:
    print(
        "disabled: import jax gives the installed jax"
        if answering.disable()
        else f"there is nothing to disable in {sys.prefix}"
    )
    return 0


_COMMANDS = {"check": _check, "doctor": _doctor, "enable": _enable, "disable": _disable}


if __name__ == "__main__":
    sys.exit(command())
