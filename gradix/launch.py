"""`python -m gradix.launch -n 4 program.py [arguments]` runs a program in several processes.

Each process joins the others by `gradix.distributed.initialize()`. Their output is printed line by
line after the number of the process. When a process fails, the others are ended, and the exit
status is that of the process that failed first. The processes run on this machine, or with `--ray`
on the machines of a Ray cluster. On Linux, those of this machine end with the launcher, even if it
is killed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradix._api.ray_processes import RayCluster
from gradix._base.listing import own_names as _own_names
from gradix._base.ports import port_number

__all__ = ["launch", "main"]
_GRACE = 5.0  # the seconds between asking a process to end and killing it
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_PIPE = 13  # the number of SIGPIPE
_PASSED_ON = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


def launch(
    command: Sequence[str],
    num_processes: int,
    *,
    devices: int | None = None,
    port: int | None = None,
    grace: float = _GRACE,
    ray: bool = False,
    cpus: float = 1,
    gpus: float = 0,
) -> int:
    """Run a command in several processes at once.

    The processes have no standard input. Signals to interrupt, terminate or hang up are passed on
    to them; a second signal kills them.

    Args:
        command: the program and its arguments, as for `subprocess`.
        num_processes: the number of processes.
        devices: the number of CPU devices of each process; by default as the environment says.
        port: the port at which process 0 listens; by default a free one.
        grace: the seconds that the other processes have to end after one has failed.
        ray: whether to run the processes on the Ray cluster that `ray.init()` finds. They are
            spread over its machines, which must have this Python with Gradix at the same path.
        cpus, gpus: the resources of the Ray cluster that each process occupies.

    Returns:
        0 if all processes succeed, else the exit status of the first that fails. It is 128 plus the
        number of the signal for a process that a signal ends.

    Raises:
        ValueError: `num_processes` is not positive, or the port is none.
        FileNotFoundError: there is no such program.
        ModuleNotFoundError: `ray` is True, and Ray is not installed.
        RuntimeError: the Ray cluster has not enough resources for the processes.

    Example:
        >>> import sys
        >>> from gradix.launch import launch
        >>> launch([sys.executable, "-c", "import sys; sys.exit(3)"], num_processes=1)
        3
    """
    if num_processes < 1:
        raise ValueError(f"launch: num_processes must be positive, got {num_processes}.")
    if port is not None:
        port = port_number("launch", port)
    where = RayCluster(num_processes, cpus, gpus) if ray else _ThisMachine()
    running: list[Any] = []
    with contextlib.closing(where), _signals_passed_on(running) as received:
        address = where.address() if port is None else _with_port(where.address(), port)
        for i in range(num_processes):
            running.append(where.start(i, command, _variables(i, num_processes, address, devices)))
        readers = [threading.Thread(target=_forward, args=(i, p, received), daemon=True) for i, p in enumerate(running)]
        for r in readers:
            r.start()
        try:
            status = _wait(running, grace, received)
            for r in readers:
                r.join(grace)
        finally:
            _end(running, 0.0)
    return status


def _variables(rank: int, count: int, address: str, devices: int | None) -> dict[str, str]:
    """The environment variables that `distributed.initialize` reads."""
    env = {"PYTHONUNBUFFERED": "1"}
    for prefix in ("GRADIX", "JAX"):
        env[f"{prefix}_COORDINATOR_ADDRESS"] = address
        env[f"{prefix}_NUM_PROCESSES"] = str(count)
        env[f"{prefix}_PROCESS_ID"] = str(rank)
    return {**env, "JAX_NUM_CPU_DEVICES": str(devices)} if devices is not None else env


def _with_port(address: str, port: int) -> str:
    return f"{address.rpartition(':')[0]}:{port}"


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class _ThisMachine:
    """The place where processes run unless a cluster is requested."""

    def address(self) -> str:
        return f"127.0.0.1:{_free_port()}"

    def start(self, rank: int, command: Sequence[str], env: Mapping[str, str]) -> _Process:
        return _Process(command, {**os.environ, **env})

    def close(self) -> None:
        pass


# A kill of the launcher that it cannot pass on kills its processes too (PR_SET_PDEATHSIG is 1).
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); os.execvp(sys.argv[2], sys.argv[2:])"
)


def _tied(command: Sequence[str]) -> list[str]:
    """The command, so that on Linux it is killed when the thread that starts it has ended."""
    if not sys.platform.startswith("linux"):
        return list(command)
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"launch: there is no program {command[0]!r}.")
    return [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *command]


class _Process:
    """A process of this machine, and the processes that it starts, which end with it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]):
        group: dict[str, Any] = {"process_group": 0} if hasattr(os, "killpg") else {}
        self.popen = subprocess.Popen(
            _tied(command),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            bufsize=1,
            **group,
        )
        self.poll = self.popen.poll

    def lines(self) -> Iterator[str]:
        assert self.popen.stdout is not None
        with self.popen.stdout as output:
            yield from output

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.popen.pid, number)
            else:
                self.popen.send_signal(number)

    def close(self) -> None:
        self.popen.wait()


def _forward(rank: int, process: Any, received: list[int]) -> None:
    for line in process.lines():
        try:
            sys.stdout.write(f"[{rank}] {line}" if line.endswith("\n") else f"[{rank}] {line}\n")
            sys.stdout.flush()
        except BrokenPipeError:  # The reader of the output has ended.
            # The buffered output is discarded, because Python would fail to flush it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            received.append(_PIPE)
            return


@contextlib.contextmanager
def _signals_passed_on(running: list) -> Iterator[list[int]]:
    """The list of signals received in the block, each of which is passed on to the processes.

    Only the main thread receives signals.
    """
    received: list[int] = []

    def pass_on(number, frame):
        received.append(number)
        for p in running:
            p.send(number if len(received) == 1 else _KILL)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {n: signal.signal(n, pass_on) for n in _PASSED_ON}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(running: list, grace: float, received: list[int]) -> int:
    """Wait until all processes succeed, one fails, or a signal is received; the exit status."""
    while True:
        if received:
            _end(running, grace, signal.SIGTERM if received[0] == _PIPE else None)
            return 128 + received[0]
        codes = [p.poll() for p in running]
        rank = next((i for i, c in enumerate(codes) if c), None)
        if rank is not None:
            _report_failure(rank, codes)
            _end(running, grace, signal.SIGTERM)
            return codes[rank] if codes[rank] > 0 else 128 - codes[rank]
        if all(c == 0 for c in codes):
            return 0
        time.sleep(0.02)


def _report_failure(rank: int, codes: list) -> None:
    status = codes[rank]
    how = f"with status {status}"
    if status < 0:
        how = f"by signal {-status} ({signal.strsignal(-status)})"
    others = sum(c is None for c in codes)
    end = f"; the {others} processes still running are ended" if others else ""
    print(f"gradix.launch: process {rank} ended {how}{end}.", file=sys.stderr, flush=True)


def _end(running: list, grace: float, number: int | None = None) -> None:
    """End the processes by a signal, and kill those that have not ended after `grace` seconds."""
    for p in running:
        if number is not None and p.poll() is None:
            p.send(number)
    until = time.monotonic() + grace
    while time.monotonic() < until and any(p.poll() is None for p in running):
        time.sleep(0.02)
    for p in running:
        if p.poll() is None:
            p.send(_KILL)
        p.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments, and return the exit status.

    Example:
        >>> import pathlib, tempfile
        >>> from gradix.launch import main
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     program = pathlib.Path(folder, "program.py")
        ...     _ = program.write_text("raise SystemExit(3)")
        ...     main(["-n", "1", str(program)])
        3
    """
    parser = argparse.ArgumentParser(
        prog="python -m gradix.launch",
        description="Run a Python program in several processes, which gradix.distributed.initialize() "
        "joins. Each line of output begins with the number of the process. When a process fails, the "
        "others are ended, and the exit status is that of the process that failed first.",
    )
    add = parser.add_argument
    add("-n", "--num-processes", type=_positive, required=True, metavar="N", help="their number")
    add("-d", "--devices", type=_positive, metavar="D", help="CPU devices of each process")
    add("--port", type=_port, help="the port of process 0; a free one by default")
    add("--ray", action="store_true", help="run on the Ray cluster that ray.init() finds")
    add("--cpus", type=float, default=1, help="processors of the Ray cluster for each process")
    add("--gpus", type=float, default=0, help="GPUs of the Ray cluster for each process")
    add("--jax", action="store_true", help="run a program for JAX, as python -m gradix does")
    add("-m", dest="module", action="store_true", help="run a module")
    add("program", help="a file, or with -m a module")
    add("arguments", nargs=argparse.REMAINDER, help="the arguments of the program")
    given = parser.parse_args(argv)
    command = [
        sys.executable,
        *(["-m", "gradix"] if given.jax else []),
        *(["-m"] if given.module else []),
        given.program,
        *given.arguments,
    ]
    try:
        return launch(
            command,
            given.num_processes,
            devices=given.devices,
            port=given.port,
            ray=given.ray,
            cpus=given.cpus,
            gpus=given.gpus,
        )
    except (ModuleNotFoundError, RuntimeError) as e:
        print(f"gradix.launch: {e}", file=sys.stderr)
        return 2


def _port(text: str) -> int:
    try:
        return port_number("--port", text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"it must be a positive integer, got {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())


__dir__ = _own_names(__name__)
