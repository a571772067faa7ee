"""`python -m gradix.launch -n 4 program.py [arguments]`: a program in several processes of this machine.

Each process finds the others with `gradix.distributed.initialize()`. Their output comes out line by
line, with the number of the process in front; when one fails, the others are ended, and the exit
status is that of the first that failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

__all__ = ["launch", "main"]
_GRACE = 5.0  # seconds between asking a process to end and ending it


def launch(
    command: Sequence[str],
    num_processes: int,
    *,
    devices: int | None = None,
    port: int | None = None,
    grace: float = _GRACE,
) -> int:
    """Run a command in several processes at once.

    Args:
        command: program and arguments, as for `subprocess`.
        num_processes: how many.
        devices: CPU devices of each; by default what the environment says.
        port: that process 0 listens at; by default a free one.
        grace: seconds that the others have to end after one has failed.

    Returns:
        0 if all succeed, else the exit status of the first that fails.

    Raises:
        ValueError: `num_processes` is not positive.
    """
    if num_processes < 1:
        raise ValueError(f"launch needs at least one process, got num_processes={num_processes}.")
    port = port or _free_port()
    running = [
        subprocess.Popen(
            list(command),
            env=_environment(i, num_processes, port, devices),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            bufsize=1,
        )
        for i in range(num_processes)
    ]
    readers = [
        threading.Thread(target=_forward, args=(i, p), daemon=True) for i, p in enumerate(running)
    ]
    for r in readers:
        r.start()
    try:
        status = _wait(running, grace)
    except KeyboardInterrupt:
        _end(running, grace)
        status = 128 + signal.SIGINT
    for r in readers:
        r.join(grace)
    return status


def _environment(rank: int, count: int, port: int, devices: int | None) -> dict[str, str]:
    env = {
        **os.environ,
        "GRADIX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "GRADIX_NUM_PROCESSES": str(count),
        "GRADIX_PROCESS_ID": str(rank),
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(count),
        "JAX_PROCESS_ID": str(rank),
        "PYTHONUNBUFFERED": "1",
    }
    return {**env, "JAX_NUM_CPU_DEVICES": str(devices)} if devices is not None else env


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _forward(rank: int, process) -> None:
    for line in process.stdout:
        sys.stdout.write(f"[{rank}] {line}" if line.endswith("\n") else f"[{rank}] {line}\n")
        sys.stdout.flush()


def _wait(running, grace: float) -> int:
    """Wait until all have ended, or one has failed; its status."""
    while True:
        codes = [p.poll() for p in running]
        failed = next((c for c in codes if c), None)
        if failed is not None:
            _end(running, grace)
            return failed if failed > 0 else 128 - failed
        if all(c == 0 for c in codes):
            return 0
        time.sleep(0.02)


def _end(running, grace: float) -> None:
    for p in running:
        if p.poll() is None:
            p.terminate()
    until = time.monotonic() + grace
    for p in running:
        try:
            p.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m gradix.launch",
        description="Run a Python program in several processes of this "
        "machine, which gradix.distributed.initialize() joins.",
    )
    parser.add_argument("-n", "--num-processes", type=int, required=True, help="how many processes")
    parser.add_argument(
        "-d", "--devices", type=int, default=None, help="CPU devices of each process"
    )
    parser.add_argument(
        "--port", type=int, default=None, help="the port they meet at; a free one by default"
    )
    parser.add_argument(
        "--jax",
        action="store_true",
        help="the program is written for JAX: run it as python -m gradix does",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    command = [
        sys.executable,
        *(["-m", "gradix"] if given.jax else []),
        *(["-m"] if given.module else []),
        given.program,
        *given.arguments,
    ]
    return launch(command, given.num_processes, devices=given.devices, port=given.port)


if __name__ == "__main__":
    sys.exit(main())
