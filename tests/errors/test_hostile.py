"""Public functions called with what they do not take: none crashes, hangs, or raises an error without a text.

The calls are drawn at random, from a seed, and made in processes of their own.
"""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAWN = pathlib.Path(__file__).with_name("hostile_calls.py")


def calls(seed: int, count: int) -> None:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(DRAWN), str(seed), str(count)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0, f"the process ended with {done.returncode} in {last}:\n{done.stdout[-3000:]}"
    faults = [line for line in done.stdout.splitlines() if line.startswith("FAULT")]
    assert not faults, "\n".join(faults)
    assert last == ["done"]


def test_no_call_crashes_or_fails_without_a_text():
    calls(0, 120)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_no_call_of_many_crashes_or_fails_without_a_text(seed):
    calls(seed, 700)
