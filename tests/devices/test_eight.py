"""Eight CPU devices in one process: the tests in `eight`, in a process that has them."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]


def run_with_eight(*args: str, timeout: int = 600) -> subprocess.CompletedProcess:
    env = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "GRADIX_TEST_EIGHT": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    env.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *args],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def _passes(*args: str) -> None:
    done = run_with_eight(str(HERE / "eight"), *args)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_on_eight_devices():
    _passes("-m", "not slow")


@pytest.mark.slow
def test_generated_programs_on_eight_devices():
    _passes("-m", "slow")
