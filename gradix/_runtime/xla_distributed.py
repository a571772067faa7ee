"""Several processes joined by jaxlib's coordination service, with Gloo between their CPUs."""

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
from gradix._base.ports import check_free
from gradix._runtime import xla_client
from gradix._runtime.collective_calls import RemoteCall, calls, decide, mismatch

socket: Any = lazy_module("socket")
_options = _config.state


class Joined(NamedTuple):
    """The client, service and watching thread of a process that has joined others."""

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
    """Wait for all processes and join them; process 0 runs the coordination service.

    Args:
        address: the address and port of the service.
        num_processes, process_id: the number of processes, and the number of this one.
        bind_address: the address and port at which process 0 serves. By default that of `address`
            if it is of the loopback network, else all of its addresses.
        init_timeout: the seconds to wait for the other processes.
        heartbeat: the seconds without a sign of life after which a process counts as lost.
        shutdown_timeout: the seconds to wait for the other processes at the end.

    Raises:
        RuntimeError: process 0 cannot serve at its address.
        RuntimeFailure: some processes did not come within `init_timeout` seconds.
    """
    service = None
    host, _, port = address.rpartition(":")
    if process_id == 0:
        served = bind_address or (address if host in _LOOPBACK else f"[::]:{port}")
        # the service itself does not say what is wrong, and later use of it may end the process
        check_free("distributed.initialize: process 0", *_split(served))
        service = _jax.get_distributed_runtime_service(
            served,
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
    with _printing_before_timeout(address, num_processes, process_id, init_timeout):
        client.connect()
    watch = Watch(client, process_id, num_processes, heartbeat)
    watch.start()
    collectives = _jax.make_gloo_tcp_collectives(distributed_client=client, hostname=_own_host(address))
    xla_client.configure(
        distributed_client=client, node_id=process_id, num_nodes=num_processes, collectives=collectives
    )
    return Joined(client, service, watch, shutdown_timeout)


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


@contextlib.contextmanager
def _printing_before_timeout(address: str, count: int, rank: int, seconds: int) -> Iterator[None]:
    """Print what is awaited shortly before XLA's timeout, which ends the process at once."""

    def report():
        print(
            f"gradix.distributed.initialize: process {rank} of {count} is waiting for the others at "
            f"{address} and will end after {seconds} s. Check that all of them are started with this "
            "address and number of processes, and that the port of process 0 is open. Pass "
            "initialization_timeout= for a longer time.",
            file=sys.stderr,
            flush=True,
        )

    timer = threading.Timer(0.9 * seconds, report)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _own_host(address: str) -> str | None:
    """The address of this machine in the network of the coordinator; None if it is not found.

    It is not looked up by the machine's name, which often resolves to a loopback address.
    """
    host, _, port = address.rpartition(":")
    if host in _LOOPBACK:
        return "127.0.0.1"
    try:
        family, kind, _, _, there = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as s:
            s.connect(there)  # This sends nothing, but selects the network interface.
            own = s.getsockname()[0]
    except OSError:
        return None
    return None if own.startswith("127.") or own == "::1" else own


class Watch(threading.Thread):
    """A thread that sends signs of life, and ends this process if another one is lost."""

    def __init__(self, client, rank: int, count: int, timeout: float):
        super().__init__(daemon=True, name="gradix.distributed")
        # The timeout is shorter than the service's own, which ends processes without a message.
        self.client, self.rank, self.count, self.timeout = client, rank, count, 0.8 * timeout
        self.stopped = threading.Event()
        self.preemption: Any = None
        calls.ask = self.ask

    def run(self) -> None:
        seen = {i: (None, time.monotonic()) for i in range(self.count) if i != self.rank}
        beat, silent_since, reported = 0, None, 0
        while not self.stopped.wait(min(self.timeout, _options.gradix_collective_timeout or self.timeout) / 8):
            beat += 1
            try:
                self.client.key_value_set(
                    f"gradix/alive/{self.rank}", f"{beat} {calls.message()}", allow_overwrite=True
                )
                signs = dict(self.client.key_value_dir_get("gradix/alive"))
                silent_since = None
            except Exception as e:  # Process 0, which runs the service, does not answer.
                silent_since = silent_since or time.monotonic()
                if not self.stopped.is_set() and time.monotonic() - silent_since > self.timeout:
                    self._end([0], str(e))
                continue
            now = time.monotonic()
            for i, (before, since) in seen.items():
                value = signs.get(f"gradix/alive/{i}")
                seen[i] = (value, now) if value != before else (before, since)
            gone = [i for i, (value, since) in seen.items() if now - since > self.timeout and value != _LEFT]
            if gone and not self.stopped.is_set() and not _options.jax_enable_recoverability:
                self._end(gone, f"no sign of life for {self.timeout:.0f} s")
            others = {i: _remote_call(value) for i, (value, _) in seen.items()}
            text, is_end = mismatch(self.rank, others), True
            if text is None:
                text, is_end = decide(self.rank, others, reported, now)
            if text is not None:
                reported = calls.last.number
                print(text, file=sys.stderr, flush=True)
            if is_end and not self.stopped.is_set():
                os._exit(1)

    def ask(self) -> tuple[int, dict[int, RemoteCall | None]]:
        """The rank of this process, and the last calls of the others as far as they have told them."""
        try:
            signs = dict(self.client.key_value_dir_get("gradix/alive"))
        except Exception:  # process 0, which runs the service, does not answer
            return self.rank, {}
        others = {int(key.rpartition("/")[2]): _remote_call(value) for key, value in signs.items()}
        return self.rank, {i: other for i, other in others.items() if i != self.rank}

    def leave(self) -> None:
        """Tell the other processes that this one ends as intended and is not lost."""
        self.stopped.set()
        with contextlib.suppress(Exception):
            self.client.key_value_set(f"gradix/alive/{self.rank}", _LEFT, allow_overwrite=True)

    def _end(self, gone: list[int], why: str) -> None:
        names = ", ".join(map(str, gone))
        print(
            f"gradix.distributed: process {self.rank} ends, because process {names} of {self.count} is lost "
            f"({why.splitlines()[0][:200]}). Its output may tell the reason.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)


_LEFT = "left"


def _remote_call(value: str | None) -> RemoteCall | None:
    return None if value is None or value == _LEFT else RemoteCall.read(value.split(" ", 1)[1])


def reached_sync_point(joined: Joined, step: int) -> bool:
    """Whether all processes have agreed to save at this step, because one of them will be ended."""
    if joined.watch.preemption is None:
        manager = joined.watch.preemption = _jax.create_preemption_sync_manager()
        manager.initialize(joined.client)
    return joined.watch.preemption.reached_sync_point(step)


def leave_processes(joined: Joined) -> None:
    """Wait until the other processes leave too, and end the coordination service.

    Raises:
        RuntimeError: the processes have called different programs.
    """
    wrong = None
    # Errors of the service are raised by `shutdown` below.
    with contextlib.suppress(Exception):
        joined.client.key_value_set(f"gradix/left/{joined.watch.rank}", f"0 {calls.message()}", allow_overwrite=True)
        joined.client.wait_at_barrier("gradix/left", joined.shutdown_timeout * 1000)
        last = dict(joined.client.key_value_dir_get("gradix/left"))
        wrong = mismatch(joined.watch.rank, {int(k.rpartition("/")[2]): _remote_call(v) for k, v in last.items()})
    joined.watch.leave()
    if joined.watch.preemption is not None:
        joined.watch.preemption.shutdown()
    joined.client.shutdown()
    if joined.service is not None:
        joined.service.shutdown()
    if wrong is not None:
        raise RuntimeError(wrong)
