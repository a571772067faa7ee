"""Finds which processes take part, from the environment variables that launchers set."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from gradix._base.lazy import lazy_module

mpi: Any = lazy_module("mpi4py.MPI")
socket: Any = lazy_module("socket")


class Found(NamedTuple):
    """What one source says about the processes; None stands for what it does not say."""

    source: str
    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: tuple[int, ...] | None = None

    @property
    def is_whole(self) -> bool:
        return None not in (self.coordinator_address, self.num_processes, self.process_id)


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.lstrip("-").isdigit() else None


def _first(*names: str) -> str | None:
    return next((os.environ[n] for n in names if os.environ.get(n)), None)


def variables() -> Found:
    """The variables GRADIX_COORDINATOR_ADDRESS, …_NUM_PROCESSES, …_PROCESS_ID, or JAX_…."""
    address = _first("GRADIX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_ADDRESS", "COORDINATOR_ADDRESS")
    port = _first("JAX_COORDINATOR_PORT")
    if address is not None and ":" not in address and port is not None:
        address = f"{address}:{port}"
    count, rank = (_first("GRADIX_NUM_PROCESSES", "JAX_NUM_PROCESSES"), _first("GRADIX_PROCESS_ID", "JAX_PROCESS_ID"))
    ids = _first("GRADIX_LOCAL_DEVICE_IDS", "JAX_LOCAL_DEVICE_IDS")
    return Found(
        "environment",
        address,
        _asked_number("NUM_PROCESSES", count),
        _asked_number("PROCESS_ID", rank),
        tuple([int(i) for i in ids.split(",")]) if ids else None,
    )


def _asked_number(name: str, text: str | None) -> int | None:
    if text is not None and not text.strip().isdigit():
        raise ValueError(f"The environment variable GRADIX_{name}, or JAX_{name}, must be a number; got {text!r}.")
    return int(text) if text is not None else None


def slurm() -> Found:
    """A job step of SLURM; the port depends on the job's number, so jobs on one host differ."""
    job, nodes = (_number("SLURM_JOB_ID"), _first("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"))
    address = f"{first_host(nodes)}:{job % 4096 + 61440}" if nodes and job is not None else None
    local = _number("SLURM_LOCALID")
    return Found(
        "slurm", address, _number("SLURM_NTASKS"), _number("SLURM_PROCID"), None if local is None else (local,)
    )


def first_host(nodes: str) -> str:
    """The first of a list of hosts as SLURM writes it.

    Example:
        >>> first_host("gpu[007-010,12],login"), first_host("a1,a2")
        ('gpu007', 'a1')
    """
    found = re.match(r"([^\[,]+)(?:\[([0-9]+)[^\]]*\])?", nodes)
    assert found is not None, nodes
    return found[1] + (found[2] or "")


def open_mpi() -> Found:
    """A process that mpirun started; the address is that of mpirun's own server."""
    uri = _first("OMPI_MCA_orte_hnp_uri", "PMIX_SERVER_URI2", "PMIX_SERVER_URI3")
    hosts = re.findall(r"tcp[46]?://(?:\[)?([0-9a-fA-F:.]+?)[\],;:]", uri + ";") if uri else []
    port = None if uri is None else sum(map(ord, uri.split(";")[0])) % 4096 + 61440
    local = _number("OMPI_COMM_WORLD_LOCAL_RANK")
    return Found(
        "ompi",
        f"{hosts[0].split(',')[0]}:{port}" if hosts else None,
        _number("OMPI_COMM_WORLD_SIZE"),
        _number("OMPI_COMM_WORLD_RANK"),
        None if local is None else (local,),
    )


def kubernetes() -> Found:
    """A pod of an indexed job of a JobSet; its first pod is found by name."""
    name, job = _first("JOBSET_NAME"), _first("REPLICATED_JOB_NAME")
    address = f"{name}-{job}-0-0.{name}:8476" if name and job else None
    return Found(
        "k8s", address, _number("JOBSET_NUM_PROCESSES") or _number("NUM_PROCESSES"), _number("JOB_COMPLETION_INDEX")
    )


def gke() -> Found:
    """A worker of a Google node pool, whose environment holds the names of all workers."""
    hosts = _first("TPU_WORKER_HOSTNAMES")
    names = hosts.split(",") if hosts else []
    return Found("gke", f"{names[0]}:8476" if names else None, len(names) or None, _number("TPU_WORKER_ID"))


def mpi4py() -> Found:
    """What MPI says through mpi4py, which starts MPI; so it is used only where it is named."""
    world = mpi.COMM_WORLD
    address = None
    if world.Get_rank() == 0:
        with socket.socket() as s:
            s.bind(("", 0))
            address = f"{socket.gethostname()}:{s.getsockname()[1]}"
    address = world.bcast(address, root=0)
    local = world.Split_type(mpi.COMM_TYPE_SHARED).Get_rank()
    return Found("mpi4py", address, world.Get_size(), world.Get_rank(), (local,))


SOURCES = {"environment": variables, "slurm": slurm, "ompi": open_mpi, "k8s": kubernetes, "gke": gke}
BY_NAME = {"mpi4py": mpi4py}


def detected(method: str | None) -> tuple[Found | None, list[Found]]:
    """The first source that says everything, and what each source says.

    Raises:
        ValueError: there is no such method.
    """
    known = {**SOURCES, **BY_NAME}
    if method is not None and method not in known and method != "deactivate":
        raise ValueError(
            f"cluster_detection_method={method!r} is not known; there are {', '.join(known)} and 'deactivate'."
        )
    names = [] if method == "deactivate" else [method] if method is not None else list(SOURCES)
    found = [known[n]() for n in names]
    return next((f for f in found if f.is_whole), None), found


def table(found: list[Found]) -> str:
    """What each source says, as lines of text."""
    rows: list[tuple[Any, ...]] = [("source", "coordinator_address", "num_processes", "process_id")]
    rows += [tuple(["-" if v is None else v for v in f[:4]]) for f in found]
    widths = [max(len(str(r[i])) for r in rows) for i in range(4)]
    return "\n".join(["  " + "  ".join([str(v).ljust(w) for v, w in zip(r, widths)]).rstrip() for r in rows])
