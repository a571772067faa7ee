"""Several processes that share their devices: jaxlib's coordination service, and Gloo between CPUs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from jaxlib import _jax

from gradix._base import config as _config
from gradix._base.lazy import lazy_module
from gradix._runtime import xla_client
from gradix._runtime.collective_calls import Told, calls, decide, mismatch

socket: Any = lazy_module("socket")
_options = _config.state


class Joined(NamedTuple):
    """What a process that has joined others holds."""

    client: Any
    service: Any
    watch: Watch
    shutdown_timeout: int


def join_processes(
    address: str,
    num_processes: int,
    process_id: int,
    *,
    bind_address: str | None,
    init_timeout: int,
    heartbeat: int,
    shutdown_timeout: int,
) -> Joined:
    """Join the others, once all are there; process 0 runs the service they meet at.

    Raises:
        RuntimeFailure: they are not, within `init_timeout` seconds.
    """
    service = None
    if process_id == 0:
        service = _jax.get_distributed_runtime_service(
            bind_address or f"[::]:{address.rpartition(':')[2]}",
            num_processes,
            heartbeat_timeout=heartbeat,
            shutdown_timeout=shutdown_timeout,
            cluster_register_timeout=init_timeout,
            recoverable=_options.jax_enable_recoverability,
        )
    client = _jax.get_distributed_runtime_client(
        address,
        process_id,
        init_timeout=init_timeout,
        heartbeat_timeout=heartbeat,
        shutdown_timeout=shutdown_timeout,
        use_compression=True,
        shutdown_on_destruction=False,
    )
    with _said_before_the_end(address, num_processes, process_id, init_timeout):
        client.connect()
    watch = Watch(client, process_id, num_processes, heartbeat)
    watch.start()
    collectives = _jax.make_gloo_tcp_collectives(
        distributed_client=client, hostname=_own_host(address)
    )
    xla_client.configure(
        distributed_client=client,
        node_id=process_id,
        num_nodes=num_processes,
        collectives=collectives,
    )
    return Joined(client, service, watch, shutdown_timeout)


@contextlib.contextmanager
def _said_before_the_end(address: str, count: int, rank: int, seconds: int) -> Iterator[None]:
    """Say whom this process waits for before XLA ends it, which it does with a trace of its own and no exception."""

    def say():
        print(
            f"gradix.distributed.initialize: process {rank} of {count} has waited for the others at "
            f"{address} and ends after {seconds} s. Are all of them started, with this address and "
            "number, and is the port of process 0 open? initialization_timeout= sets the time.",
            file=sys.stderr,
            flush=True,
        )

    timer = threading.Timer(0.9 * seconds, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _own_host(address: str) -> str | None:
    """The address from which this machine reaches the coordinator, where others reach it, too.

    The name of a host will not do: many resolve their own to an address of loopback.
    """
    host, _, port = address.rpartition(":")
    if host in ("127.0.0.1", "localhost", "[::1]"):
        return "127.0.0.1"
    try:
        family, kind, _, _, there = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as s:
            s.connect(there)  # sends nothing, but chooses the way
            own = s.getsockname()[0]
    except OSError:
        return None
    return None if own.startswith("127.") or own == "::1" else own


class Watch(threading.Thread):
    """Tells the others that this process lives, and ends it, saying which one is gone, when another no longer does."""

    def __init__(self, client, rank: int, count: int, timeout: float):
        super().__init__(daemon=True, name="gradix.distributed")
        # Before the service's own end
        self.client, self.rank, self.count, self.timeout = client, rank, count, 0.8 * timeout
        self.stopped = threading.Event()
        self.preemption: Any = None

    def run(self) -> None:
        seen = {i: (None, time.monotonic()) for i in range(self.count) if i != self.rank}
        beat, silent_since, said = 0, None, 0
        while not self.stopped.wait(
            min(self.timeout, _options.gradix_collective_timeout or self.timeout) / 8
        ):
            beat += 1
            try:
                self.client.key_value_set(
                    f"gradix/alive/{self.rank}", f"{beat} {calls.told()}", allow_overwrite=True
                )
                told = dict(self.client.key_value_dir_get("gradix/alive"))
                silent_since = None
            except Exception as e:  # the service is at process 0
                silent_since = silent_since or time.monotonic()
                if not self.stopped.is_set() and time.monotonic() - silent_since > self.timeout:
                    self._end([0], str(e))
                continue
            now = time.monotonic()
            for i, (before, since) in seen.items():
                value = told.get(f"gradix/alive/{i}")
                seen[i] = (value, now) if value != before else (before, since)
            gone = [
                i
                for i, (value, since) in seen.items()
                if now - since > self.timeout and value != _LEFT
            ]
            if gone and not self.stopped.is_set() and not _options.jax_enable_recoverability:
                self._end(gone, f"no sign for {self.timeout:.0f} s")
            others = {i: _told(value) for i, (value, _) in seen.items()}
            text, is_end = mismatch(self.rank, others), True
            if text is None:
                text, is_end = decide(self.rank, others, said, now)
            if text is not None:
                said = calls.last.number
                print(text, file=sys.stderr, flush=True)
            if is_end and not self.stopped.is_set():
                os._exit(1)

    def leave(self) -> None:
        """From here on the silence of this process is no loss."""
        self.stopped.set()
        with contextlib.suppress(Exception):
            self.client.key_value_set(f"gradix/alive/{self.rank}", _LEFT, allow_overwrite=True)

    def _end(self, gone: list[int], why: str) -> None:
        names = ", ".join(map(str, gone))
        print(
            f"gradix.distributed: process {self.rank} ends, because process {names} of {self.count} is lost "
            f"({why.splitlines()[0][:200]}). "
            "Look at its output for the reason.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)


_LEFT = "left"


def _told(value: str | None) -> Told | None:
    return None if value is None or value == _LEFT else Told.read(value.split(" ", 1)[1])


def reached_sync_point(joined: Joined, step: int) -> bool:
    """Whether this step is the one that all processes have agreed on once one of them is to be ended."""
    if joined.watch.preemption is None:
        manager = joined.watch.preemption = _jax.create_preemption_sync_manager()
        manager.initialize(joined.client)
    return joined.watch.preemption.reached_sync_point(step)


def leave_processes(joined: Joined) -> None:
    """Wait for the others to leave too, and end the service.

    Raises:
        RuntimeError: they have called other programs.
    """
    wrong = None
    # shutdown reports what is wrong with the service
    with contextlib.suppress(Exception):
        joined.client.key_value_set(
            f"gradix/left/{joined.watch.rank}", f"0 {calls.told()}", allow_overwrite=True
        )
        joined.client.wait_at_barrier("gradix/left", joined.shutdown_timeout * 1000)
        told = dict(joined.client.key_value_dir_get("gradix/left"))
        wrong = mismatch(
            joined.watch.rank, {int(k.rpartition("/")[2]): _told(v) for k, v in told.items()}
        )
    joined.watch.leave()
    if joined.watch.preemption is not None:
        joined.watch.preemption.shutdown()
    joined.client.shutdown()
    if joined.service is not None:
        joined.service.shutdown()
    if wrong is not None:
        raise RuntimeError(wrong)
