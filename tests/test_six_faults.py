"""The programs with faults of docs/six-faults.md: each command finds the fault and prints what the page shows."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "six-faults.md").read_text(encoding="utf-8")
PROGRAMS = {name: code for code, name in re.findall(r"```py\n(# (\w+\.py)\n.*?)```", PAGE, re.DOTALL)}
COMMANDS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.x32
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param(*found, id=found[0].split()[-1], marks=[] if "index" in found[0] else [pytest.mark.slow])
        for found in COMMANDS
    ],
)
def test_the_command_finds_the_fault(command, shown, tmp_path):
    for name, code in PROGRAMS.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    python, *arguments = shlex.split(command)
    assert python == "python" and arguments[-1] in PROGRAMS
    root = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(shown, done.stdout, flags), done.stdout


def test_each_program_has_a_command():
    assert len(COMMANDS) == 6 and {command.split()[-1] for command, _ in COMMANDS} == set(PROGRAMS)
