"""The commands of `python -m gradix`, each with its options; `--help` explains and does nothing."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from gradix._api.costs.lines import shown_bytes
from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._runtime import disk_cache
from gradix._version import __version__
from gradix.compat import answering, check, doctor, fixing
from gradix.compat.programs import COMMANDS, PROGRAM, failed, run

_checked = lazy_module("gradix._api.jit.checked")
_explain = lazy_module("gradix._api.jit.explain")
_launch = lazy_module("gradix.launch")
_profile = lazy_module("gradix._api.costs.profile")

_ABOUT = f"""Run a Python program with gradix in place of jax.

  {PROGRAM} program.py [arguments]
  {PROGRAM} -m module [arguments]
  {PROGRAM} -c code [arguments]
  {PROGRAM} [-]                 an interactive session, or what comes on standard input

A command, of those below, is taken as a file where there is one of its name."""


def parser() -> argparse.ArgumentParser:
    """The parser of the commands and their options."""
    top = argparse.ArgumentParser(PROGRAM, description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"gradix {__version__}")
    commands = top.add_subparsers(title="commands", metavar="command", required=True)

    def add(name: str, act: Callable, about: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        made.set_defaults(act=act)
        return made

    programs = [
        add("run", _run, "run a program with gradix in place of jax"),
        add("explain", _explained, "run a program, and tell what is traced and compiled, and why"),
        add("profile", _profiled, "run a program, and tell what each of its lines costs"),
    ]
    about = 'what jitted functions check for, such as "nan,index"; they raise where it happens'
    programs[0].add_argument("--check", metavar="KINDS", help=about)
    programs[2].add_argument("--memory", action="store_true", help="tell what is in memory, too, by line")
    programs[2].add_argument("--most", type=int, default=20, metavar="N", help="lines to print")
    programs[2].add_argument("--html", metavar="FILE", help="write the page of the profile")
    programs[2].add_argument("--perfetto", metavar="FILE", help="write a timeline for ui.perfetto.dev")
    for made in programs:
        made.add_argument("-m", dest="module", action="store_true", help="run a module")
        made.add_argument("program", help="a file, or with -m a module")
        made.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    about = "list the names of JAX that files use and gradix lacks, without running them"
    checking = add("check", _check, about)
    checking.add_argument("paths", nargs="*", help="files and folders")
    checking.add_argument("--fix", action="store_true", help="write what replaces names that JAX has removed")
    add("doctor", _doctor, "report what gradix finds on this machine, and whether it works")
    about = "tell of the compiled programs on disk, or delete them"
    add("cache", _cache, about).add_argument("what", choices=("info", "clear"))
    about = "list the options, with their values and where these come from"
    add("config", _config, about).add_argument("names", nargs="*", help="the options; by default all")
    about = "make `import jax` give gradix in every program of this virtual environment"
    add("enable", _enable, about)
    add("disable", _disable, "undo `enable`")
    about = "run a program in several processes; the same as python -m gradix.launch"
    made = commands.add_parser("launch", help=about, add_help=False)
    made.add_argument("arguments", nargs=argparse.REMAINDER)
    made.set_defaults(act=lambda given: _launch.main(given.arguments))
    return top


def act(argv: list[str]) -> int:
    """Do what the command of these arguments says, and return the exit status."""
    if argv[:1] == ["launch"]:  # argparse would take --help for its own
        return _launch.main(argv[1:])
    given = parser().parse_args(argv)
    try:
        status = given.act(given)
        sys.stdout.flush()
    except BrokenPipeError:
        if hasattr(given, "program"):  # it is the program's own
            raise
        # the reader, such as `head`, has what it wanted; Python would fail again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _program(given: argparse.Namespace) -> list[str]:
    return [*(["-m"] if given.module else []), given.program, *given.arguments]


def _run(given: argparse.Namespace) -> int:
    if given.check:
        try:
            _checked.names_of(given.check)
        except ValueError as e:
            return failed(str(e), 2)
        config.config.update("gradix_check", given.check)
    return run(_program(given))


def _explained(given: argparse.Namespace) -> int:
    with _explain.explain():
        return run(_program(given))


def _profiled(given: argparse.Namespace) -> int:
    with _profile.profile() as p:
        try:
            status = run(_program(given))
        except SystemExit as end:  # the program's own end, after which its profile is shown
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    if not p.lines and status:  # no program ran
        return status
    print(_profile.table(p, given.most))
    if given.memory:
        for name, table in p.memory().items():
            print(f"\nmemory of {name}: {table}")
    if given.html:
        p.save(given.html)
    if given.perfetto:
        p.perfetto(given.perfetto)
    return status


def _check(given: argparse.Namespace) -> int:
    if not given.paths:
        return failed(f"check needs a path; see {PROGRAM} check --help for the usage", 2)
    gone = []
    try:
        if given.fix:
            gone, found = fixing.fix(list(check.files_of(given.paths)))
        else:
            found = check.check_paths(given.paths)
    except FileNotFoundError as e:
        return failed(str(e), 2)
    for use in gone:
        print(f"{use} (replaced)")
    for use in found:
        print(use)
    certain = sum(not use.guarded for use in found)
    print(f"{certain} uses of names that gradix lacks, and {len(found) - certain} in code that expects it")
    return 1 if certain else 0


def _doctor(_: argparse.Namespace) -> int:
    for line in doctor.report():
        print(line)
    return 0


def _cache(given: argparse.Namespace) -> int:
    entries = disk_cache.current()
    if entries is None:
        print("the disk cache is off")
        return 0
    files = [p for p in Path(entries.path).glob("*.xla") if p.is_file()]
    nbytes = sum([p.stat().st_size for p in files])
    if given.what == "clear":
        for path in files:
            path.unlink(missing_ok=True)
        print(f"deleted {len(files)} programs, {shown_bytes(nbytes)}, from {entries.path}")
    else:
        print(f"{len(files)} programs, {shown_bytes(nbytes)} of at most {shown_bytes(disk_cache.limit())}")
        print(f"in {entries.path}")
    return 0


def _config(given: argparse.Namespace) -> int:
    known = config.config.values
    unknown = [name for name in given.names if name not in known]
    if unknown:
        return failed(f"there is no option {unknown[0]!r}; {PROGRAM} config lists all", 2)
    rows = [(n, repr(v), config.origin(n)) for n, v in sorted(known.items())]
    rows = [row for row in rows if not given.names or row[0] in given.names]
    widths = [max([len(row[k]) for row in rows]) for k in range(2)]
    for name, value, origin in rows:
        print(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    return 0


def _enable(_: argparse.Namespace) -> int:
    try:
        switch = answering.enable()
    except RuntimeError as e:
        return failed(str(e), 1)
    print(
        f"import jax gives gradix in every program of {sys.prefix}, by {switch}\n"
        f"{PROGRAM} disable undoes it; {answering.OFF}=0 turns it off for one program"
    )
    return 0


def _disable(_: argparse.Namespace) -> int:
    print(
        "disabled: import jax gives the installed jax"
        if answering.disable()
        else f"there is nothing to disable in {sys.prefix}"
    )
    return 0


def is_command(argv: list[str]) -> bool:
    """Whether arguments name a command, or ask for help, rather than a program."""
    first = argv[0] if argv else ""
    return first in ("-h", "--help", "--version") or first in COMMANDS and not os.path.exists(first)
