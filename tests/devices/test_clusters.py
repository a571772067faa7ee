"""How processes find each other: arguments, and what launchers put in the environment."""

import os
import subprocess
import sys
import types

import pytest

import gradix
from gradix import launch
from gradix._api import clusters
from gradix._runtime import xla_distributed
from tests.devices.test_processes import PROGRAMS, _env

ENVIRONMENTS = [
    (
        {
            "SLURM_JOB_ID": "5000",
            "SLURM_STEP_NODELIST": "node[003-006,9]",
            "SLURM_NTASKS": "8",
            "SLURM_PROCID": "2",
            "SLURM_LOCALID": "0",
        },
        ("node003:62344", 8, 2),
    ),
    (
        {
            "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
            "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        },
        ("10.96.0.1", 4, 1),
    ),
    ({"JAX_COORDINATOR_ADDRESS": "a:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, ("a:1", 2, 1)),
    ({"TPU_WORKER_HOSTNAMES": "h0,h1", "TPU_WORKER_ID": "1"}, ("h0:8476", 2, 1)),
    (
        {"JOBSET_NAME": "train", "REPLICATED_JOB_NAME": "w", "JOB_COMPLETION_INDEX": "3", "NUM_PROCESSES": "4"},
        ("train-w-0-0.train:8476", 4, 3),
    ),
    ({"SLURM_JOB_ID": "5000", "SLURM_PROCID": "2"}, None),
]


OWN = (
    "SLURM",
    "OMPI",
    "PMIX",
    "JAX_COORD",
    "JAX_NUM_P",
    "JAX_PROC",
    "GRADIX_C",
    "GRADIX_NUM",
    "GRADIX_PROC",
    "TPU_WORKER",
    "JOBSET",
)


@pytest.mark.parametrize(("env", "expected"), ENVIRONMENTS)
def test_processes_are_found_in_the_environment(env, expected, monkeypatch):
    for name in [n for n in os.environ if n.startswith(OWN)]:
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    whole, found = clusters.detected(None)
    if expected is None:
        assert whole is None and "5000" not in clusters.table(found) and "slurm" in clusters.table(found)
    else:
        assert whole is not None and whole.coordinator_address.startswith(expected[0]) and whole[2:4] == expected[1:]
    with pytest.raises(ValueError, match="not known"):
        clusters.detected("carrier pigeon")


def _joined(arguments, environments):
    """Two processes over loopback, of which each has an environment, and what they print."""
    clean = {k: v for k, v in _env(JAX_NUM_CPU_DEVICES="1").items() if not k.startswith(OWN)}
    both = [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS / "joins.py"), *a],
            env={**clean, **e},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for a, e in zip(arguments, environments)
    ]
    texts = [p.communicate(timeout=90)[0] for p in both]
    assert [p.returncode for p in both] == [0, 0] and all("sum 3" in t for t in texts), texts


def test_processes_join_by_arguments():
    address = f"127.0.0.1:{launch._free_port()}"
    _joined([(address, "0"), (address, "1")], [{}, {}])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["slurm", "ompi", "gke", "jax"])
def test_processes_join_by_environment(kind):
    both = {
        "slurm": lambda i, p: {
            "SLURM_JOB_ID": str(p),
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_NTASKS": "2",
            "SLURM_PROCID": str(i),
            "SLURM_LOCALID": str(i),
        },
        "ompi": lambda i, p: {
            "OMPI_MCA_orte_hnp_uri": f"{p}.0;tcp://127.0.0.1:34911",
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_RANK": str(i),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(i),
        },
        "gke": lambda i, p: {"TPU_WORKER_HOSTNAMES": "localhost,localhost", "TPU_WORKER_ID": str(i)},
        "jax": lambda i, p: {
            "JAX_COORDINATOR_ADDRESS": f"localhost:{p}",
            "JAX_NUM_PROCESSES": "2",
            "JAX_PROCESS_ID": str(i),
        },
    }[kind]
    port = launch._free_port()
    _joined([(), ()], [both(i, port) for i in range(2)])


def test_what_mpi_tells_through_mpi4py(monkeypatch):
    class World:
        Get_rank, Get_size = staticmethod(lambda: 1), staticmethod(lambda: 4)
        bcast = staticmethod(lambda value, root: "host0:4321")
        Split_type = staticmethod(lambda kind: types.SimpleNamespace(Get_rank=lambda: 0))

    monkeypatch.setattr(clusters, "mpi", types.SimpleNamespace(COMM_WORLD=World(), COMM_TYPE_SHARED=1))
    assert clusters.detected("mpi4py")[0] == ("mpi4py", "host0:4321", 4, 1, (0,))
    assert "mpi4py" not in [f.source for f in clusters.detected(None)[1]]


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("127.0.0.1:1", "127.0.0.1"),
        ("localhost:1", "127.0.0.1"),
        ("[::1]:1", "127.0.0.1"),
        ("no.such.host.invalid:1", None),
    ],
)
def test_the_address_that_others_reach_this_machine_at(address, own):
    assert xla_distributed._own_host(address) == own


def test_what_is_found_in_part_leaves_one_process_and_says_so():
    code = "import gradix; gradix.distributed.initialize(); print(gradix.process_count(), gradix.distributed.is_initialized())"
    env = {
        k: v
        for k, v in _env(SLURM_JOB_ID="7", SLURM_PROCID="1").items()
        if not k.startswith(("GRADIX_P", "GRADIX_C", "GRADIX_N"))
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert (
        done.returncode == 0
        and done.stdout.split() == ["1", "False"]
        and "slurm" in done.stderr
        and "stays alone" in done.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"coordinator_address": "a:1"}, "num_processes should be defined"),
        ({"num_processes": 2}, "coordinator_address should be defined"),
        ({"coordinator_address": "a:1", "num_processes": 2, "process_id": 2}, "less than num_processes"),
        ({"coordinator_address": "a", "num_processes": 2, "process_id": 0}, "needs a port"),
    ],
)
def test_wrong_arguments(arguments, match):
    with pytest.raises(ValueError, match=match):
        gradix.distributed.initialize(**arguments, cluster_detection_method="deactivate")


@pytest.mark.parametrize("rank", [0, 1])
def test_others_that_do_not_come(rank):
    code = f"import gradix; gradix.distributed.initialize('127.0.0.1:{launch._free_port()}', 2, {rank}, initialization_timeout=2)"
    done = subprocess.run([sys.executable, "-c", code], env=_env(), capture_output=True, text=True, timeout=90)
    assert done.returncode != 0 and f"process {rank} of 2 is waiting for the others at 127.0.0.1" in done.stderr


def test_a_variable_that_is_no_number(monkeypatch):
    monkeypatch.setenv("GRADIX_NUM_PROCESSES", "two")
    with pytest.raises(ValueError, match="GRADIX_NUM_PROCESSES, or JAX_NUM_PROCESSES, must be a number; got 'two'"):
        clusters.variables()
