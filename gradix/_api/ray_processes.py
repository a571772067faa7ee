"""Processes of a program on the machines of a Ray cluster, for `gradix.launch`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradix._base.lazy import lazy_module

ray: Any = lazy_module("ray")
_groups: Any = lazy_module("ray.util.placement_group")
_strategies: Any = lazy_module("ray.util.scheduling_strategies")

_WAIT = 60.0  # seconds that the cluster has to make room
_CARRIED = ("GRADIX_", "JAX_", "XLA_", "PYTHONPATH")  # variables of the caller that programs get
# Ray's workers block interrupts, and processes that they start would inherit that.
_ANEW = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "signal.pthread_sigmask(signal.SIG_SETMASK, []); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


class Host:
    """An actor on a machine of the cluster, which starts one process when the address is known."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None
        self.ending: int | None = None

    def address(self) -> str:
        """The address of this machine, with a free port."""
        with socket.socket() as s:
            s.bind(("", 0))
            return f"{ray.util.get_node_ip_address()}:{s.getsockname()[1]}"

    def lines(self, command: Sequence[str], env: Mapping[str, str], folder: str) -> Iterator[str | int]:
        """Run a command, and yield its lines of output, and at last its exit status."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ANEW, *command],
            env={**os.environ, **env},
            cwd=folder if os.path.isdir(folder) else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        )
        if self.ending is not None:  # the signal came before the process was started
            self.signal(self.ending)
        assert self.process.stdout is not None
        for line in self.process.stdout:  # noqa: UP028  (Ray sends into its generators)
            yield line
        yield self.process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the process and those it has started."""
        self.ending = number
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, number)


class RayProcess:
    """A process of the cluster, with the methods that `launch` uses for local processes."""

    __slots__ = ("actor", "parts", "status")

    def __init__(self, actor: Any, command: Sequence[str], env: Mapping[str, str]):
        self.actor = actor
        self.status: int | None = None
        self.parts = actor.lines.options(num_returns="streaming").remote(list(command), dict(env), os.getcwd())

    def lines(self) -> Iterator[str]:
        """Lines of output, until the process has ended."""
        try:
            for part in self.parts:
                value = ray.get(part)
                if isinstance(value, int):
                    self.status = value
                    return
                yield value
        except ray.exceptions.RayError as e:
            yield from f"Ray has lost this process: {e}\n".splitlines(True)
        if self.status is None:
            self.status = 1

    def poll(self) -> int | None:
        """The exit status, as `subprocess` gives it; None while the process runs."""
        return self.status

    def send(self, number: int) -> None:
        """Send a signal; `close` ends processes that ignore it."""
        self.actor.signal.remote(number)

    def close(self) -> None:
        """End the actor."""
        ray.kill(self.actor)


class RayCluster:
    """A cluster with room for some processes, spread over its machines.

    Args:
        num_processes: the number of processes.
        cpus: the number of processors for each process.
        gpus: the number of GPUs for each process, which sees no others.

    Raises:
        ModuleNotFoundError: Ray is not installed.
        RuntimeError: the cluster has no room for the processes.
    """

    __slots__ = ("actors", "group", "is_ours")

    def __init__(self, num_processes: int, cpus: float, gpus: float):
        self.is_ours = not ray.is_initialized()
        if self.is_ours:
            ray.init(log_to_driver=False, include_dashboard=False)
        needs = {"CPU": cpus, **({"GPU": gpus} if gpus else {})}
        self.group = _groups.placement_group([needs] * num_processes, strategy="SPREAD")
        try:
            ray.get(self.group.ready(), timeout=_WAIT)
        except ray.exceptions.GetTimeoutError:
            has = {k: ray.cluster_resources().get(k, 0) for k in needs}
            self.close()
            raise RuntimeError(
                f"the Ray cluster had no room for {num_processes} processes of {needs} within "
                f"{_WAIT:.0f} s; it has {has} in all. Ask for fewer, or for less of each (cpus=, gpus=)."
            ) from None
        start = ray.remote(Host).options
        self.actors = [
            start(
                num_cpus=cpus,
                num_gpus=gpus,
                max_concurrency=2,  # so that a signal comes through while the process runs
                scheduling_strategy=_strategies.PlacementGroupSchedulingStrategy(self.group, i),
            ).remote()
            for i in range(num_processes)
        ]

    def address(self) -> str:
        """The host and port at which process 0 can listen."""
        return ray.get(self.actors[0].address.remote())

    def start(self, rank: int, command: Sequence[str], env: Mapping[str, str]) -> RayProcess:
        """Start process number `rank`, with the variables `env` and those of this program."""
        carried = {k: v for k, v in os.environ.items() if k.startswith(_CARRIED)}
        return RayProcess(self.actors[rank], command, {**carried, **env})

    def close(self) -> None:
        """Free the room for the processes, and leave the cluster if this object joined it."""
        _groups.remove_placement_group(self.group)
        if self.is_ours:
            ray.shutdown()
