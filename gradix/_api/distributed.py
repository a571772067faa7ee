"""Joins other processes: initialize, shutdown, is_initialized."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from gradix._api.clusters import detected, table
from gradix._api.devices import give_up_devices
from gradix._base.ports import port_number
from gradix._runtime import xla


class GlobalState:
    """The processes this one has joined."""

    joined: Any = None
    num_processes: int | None = None
    process_id: int | None = None
    coordinator_address: str | None = None
    has_failed = False

    client = property(lambda self: self.joined.client if self.joined is not None else None)
    service = property(lambda self: self.joined.service if self.joined is not None else None)


global_state = GlobalState()


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join other processes, so that programs run on the devices of all of them.

    What is not given is looked for in the environment: in variables such as
    JAX_COORDINATOR_ADDRESS, and in those of SLURM, Open MPI and Kubernetes. If these do not say
    everything, this process stays alone, and a table of what was found is printed.

    Args:
        coordinator_address: the host and port at which process 0 listens.
        num_processes: how many processes there are.
        process_id: which of them this process is, from 0.
        local_device_ids: accepted for compatibility; CPUs have no devices to choose from.
        cluster_detection_method: the only source to look at: "environment", "slurm", "ompi", "k8s",
            "gke", "mpi4py" (which is looked at only when named here); or "deactivate".
        initialization_timeout: seconds to wait for the others.
        heartbeat_timeout_seconds: after how many seconds without a sign of a process the others
            end with an error.
        shutdown_timeout_seconds: seconds to wait for the others at the end.
        coordinator_bind_address: the address process 0 binds to, with or without a port. By
            default, `coordinator_address` itself if it is of the loopback network, where no other
            machine reaches it, and otherwise all addresses of process 0.
        slice_index, partition_index: accepted for compatibility.

    Raises:
        ValueError: some of address, number and id are given while others are neither given nor
            found, or they do not fit together, or a port is none.
        RuntimeError: it was called before, an array lies on a device already, or another program
            listens at the port. If the others do
            not come in time, the process ends with a message that names those it waited for.

    Example:
        >>> from gradix import distributed
        >>> distributed.initialize("localhost:1234", num_processes=2, process_id=0)   # doctest: +SKIP
        >>> distributed.initialize("localhost:1234", num_processes=2, process_id=2)
        Traceback (most recent call last):
            ...
        ValueError: process_id=2 must be at least 0 and less than num_processes=2.
    """
    state = global_state
    if state.num_processes is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    whole, found = detected(cluster_detection_method)
    given: Any = (coordinator_address, num_processes, process_id)
    if whole is not None:
        given = tuple([g if g is not None else w for g, w in zip(given, whole[1:4])])
    address, count, rank = given
    if address is None and count is None and rank is None:
        if any(f[1:4] != (None,) * 3 for f in found):
            print(
                "gradix.distributed: no source gives address, number and id of the processes; this process "
                "stays alone.\n" + table(found),
                file=sys.stderr,
            )
        state.num_processes, state.process_id = 1, 0
        return
    for name, value in (("coordinator_address", address), ("num_processes", count), ("process_id", rank)):
        if value is None:
            raise ValueError(
                f"{name} should be defined: it was neither given nor found in the environment.\n{table(found)}"
            )
    assert address is not None and count is not None and rank is not None
    if not 0 <= rank < count:
        raise ValueError(f"process_id={rank} must be at least 0 and less than num_processes={count}.")
    if ":" not in address:
        raise ValueError(f"coordinator_address needs a port, as {address}:1234; got {address!r}.")
    port = port_number(f"coordinator_address={address!r}", address.rpartition(":")[2])
    bind = coordinator_bind_address
    if bind is not None:
        host, colon, own = bind.rpartition(":")
        if not colon or bind.endswith("]"):
            host, own = bind, str(port)
        bind = f"{host}:{port_number(f'coordinator_bind_address={bind!r}', own)}"
    give_up_devices("distributed.initialize() must come before")
    start = time.monotonic()
    try:
        joined = xla.join_processes(
            address,
            count,
            rank,
            bind_address=bind,
            init_timeout=initialization_timeout,
            heartbeat=heartbeat_timeout_seconds,
            shutdown_timeout=shutdown_timeout_seconds,
        )
    except xla.RuntimeFailure as e:
        raise RuntimeError(
            f"distributed.initialize: process {rank} of {count} could not join the others at "
            f"{address}, after {time.monotonic() - start:.0f} s. Are all of them started, with this address "
            f"and number? {str(e).splitlines()[0]}"
        ) from None
    state.joined, state.num_processes, state.process_id, state.coordinator_address = (joined, count, rank, address)
    _watch_for_failure()
    atexit.register(_leave)


def _watch_for_failure() -> None:
    """Note an exception that ends the program, so that `_leave` does not wait for the others."""
    before = sys.excepthook

    def hook(kind, value, trace):
        global_state.has_failed = True
        before(kind, value, trace)

    sys.excepthook = hook


def _leave() -> None:
    if global_state.joined is None:
        return
    # end at once, without waiting for the others or for threads that talk to them
    if global_state.has_failed:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    try:
        shutdown()
    except RuntimeError as e:  # an exception at exit does not change the exit status
        print(e, file=sys.stderr, flush=True)
        os._exit(1)


def shutdown() -> None:
    """Leave the other processes, as soon as all of them do.

    Raises:
        RuntimeError: they have run other programs than this process.

    Example:
        >>> import gradix
        >>> gradix.distributed.shutdown()
    """
    joined, global_state.joined = global_state.joined, None
    global_state.num_processes = global_state.process_id = global_state.coordinator_address = None
    if joined is not None:
        xla.leave_processes(joined)


def is_initialized() -> bool:
    """Whether this process has joined others.

    Example:
        >>> import gradix
        >>> gradix.distributed.is_initialized()
        False
    """
    return global_state.joined is not None


def client() -> Any:
    """The connection to the other processes; None if there are none."""
    return global_state.client
