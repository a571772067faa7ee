"""Processes that join over loopback, the launcher, and checkpoints that survive a kill."""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import gradix
from gradix import launch
from gradix._api import clusters
from gradix._runtime.collective_calls import Call, Told, explanation
from gradix.experimental.array_serialization import load, save

PROGRAMS = pathlib.Path(__file__).parent / "programs"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def _env(**more) -> dict:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "XLA_FLAGS"))}
    return {**env, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]), **more}


def _launch(n: int, *command: str, timeout: int = 120):
    return subprocess.run([sys.executable, "-m", "gradix.launch", "-n", str(n), "-d", "2", *command], env=_env(), capture_output=True,
                          text=True, timeout=timeout)


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_several_processes(n, tmp_path):
    done = _launch(n, str(PROGRAMS / "together.py"), str(n), str(tmp_path / "saved"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert sorted([line for line in done.stdout.splitlines() if line.endswith("fine")]) == [f"[{i}] fine" for i in range(n)]
    back = load(tmp_path / "saved")                         # by one process alone
    np.testing.assert_array_equal(back["w"], np.arange(8.0 * n).reshape(2 * n, 4))


def test_the_launcher_ends_all_and_gives_one_status(tmp_path):
    program = tmp_path / "fails.py"
    program.write_text("import os, sys, time\nrank = int(os.environ['GRADIX_PROCESS_ID'])\nprint('from', rank)\n"
                       "sys.exit(7) if rank == 1 else time.sleep(60)\n")
    start = time.monotonic()
    done = _launch(3, str(program))
    assert done.returncode == 7 and time.monotonic() - start < 20
    assert "[1] from 1" in done.stdout
    with pytest.raises(ValueError, match="at least one process"):
        launch.launch(["true"], 0)


def _pair(*arguments: str, killed: int):
    """Two processes by hand, so that no launcher ends the one left; its exit status, output, and how long it lived on."""
    port = launch._free_port()
    env = _env(GRADIX_COORDINATOR_ADDRESS=f"127.0.0.1:{port}", GRADIX_NUM_PROCESSES="2", JAX_NUM_CPU_DEVICES="1")
    command = [sys.executable, str(PROGRAMS / "waits.py"), *arguments, str(killed)]
    both = [subprocess.Popen(command, env={**env, "GRADIX_PROCESS_ID": str(i)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True) for i in range(2)]
    both[killed].communicate(timeout=60)
    assert both[killed].returncode == -signal.SIGKILL
    start = time.monotonic()
    text = both[1 - killed].communicate(timeout=60)[0]
    return both[1 - killed].returncode, text, time.monotonic() - start


@pytest.mark.parametrize(("doing", "killed"), [("computes", 1), pytest.param("sleeps", 1, marks=pytest.mark.slow),
                                               pytest.param("sleeps", 0, marks=pytest.mark.slow)])
def test_a_lost_process_ends_the_others(doing, killed):
    status, text, seconds = _pair(doing, killed=killed)
    assert status != 0 and seconds < 30, text
    said = ["Connection closed by peer", "Connection reset by peer", f"process {killed} of 2 is lost", "another task died"]
    assert any(words in text for words in said), text


@pytest.mark.parametrize(("doing", "match"), [
    pytest.param("sleeps", r"process 0 has waited .* in 'first', its call number 2 .*process 1 is missing: its last is number 1",
                 marks=pytest.mark.slow),
    pytest.param("differs", "processes 0 and 1 have called different programs: call number [23]", marks=pytest.mark.slow)])
def test_who_is_missing_in_a_collective(doing, match):
    port = launch._free_port()
    env = _env(GRADIX_COORDINATOR_ADDRESS=f"127.0.0.1:{port}", GRADIX_NUM_PROCESSES="2", JAX_NUM_CPU_DEVICES="1")
    both = [subprocess.Popen([sys.executable, str(PROGRAMS / "misses.py"), doing], env={**env, "GRADIX_PROCESS_ID": str(i)},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in range(2)]
    try:
        text = both[0].communicate(timeout=100)[0]
    finally:
        for p in both:
            p.kill()
            p.communicate()
    assert both[0].returncode != 0 and re.search(match, text), text


def test_what_is_told_of_a_call_that_waits():
    mine = Call(7, "step", "aa", 0.0)
    told = {1: Told.read(Call(7, "eval", "bb", 0.0).told(True)), 2: Told.read(Call(6, "step", "aa", 0.0).told(False)), 3: None,
            4: Told.read(Call(7, "step", "aa", 0.0).told(True))}
    text, never = explanation(0, mine, told, 61.0)
    assert never and "process 1 is in another program: 'eval'" in text and "waited 61 s in 'step', its call number 7" in text
    assert "process 2 is missing: its last is number 6, 'step', which has ended" in text
    assert "process 3 is missing: it has made none" in text
    assert "process 4" not in text
    text, never = explanation(0, mine, {4: told[4]}, 61.0)
    assert not never and "All others are in it" in text
    with pytest.raises(ValueError, match="number of seconds"):
        gradix.config.update("gradix_collective_timeout", -1)


@pytest.mark.slow
def test_killed_twenty_times():
    for i in range(20):
        status, text, seconds = _pair("computes" if i % 2 else "sleeps", killed=1)
        assert status != 0 and seconds < 30, text


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_checkpoints_survive_a_kill_in_mid_write(times, tmp_path):
    chance = random.Random(5)
    for _ in range(times):
        writer = subprocess.Popen([sys.executable, str(PROGRAMS / "saves.py"), str(tmp_path)], env=_env(), text=True,
                                  stdout=subprocess.PIPE)
        last = int(writer.stdout.readline())
        time.sleep(chance.random() * 0.05)
        writer.kill()
        last = max([last, *map(int, writer.communicate()[0].split())])
        back = load(tmp_path)
        step = int(back["step"])
        assert step >= last and np.all(np.asarray(back["w"]) == step)


def test_damage_and_wrong_use_of_checkpoints(tmp_path):
    with pytest.raises(FileNotFoundError, match="no whole checkpoint"):
        load(tmp_path)
    save({"w": np.arange(4.0)}, tmp_path)
    with pytest.raises(FileExistsError, match="overwrite"):
        save({"w": np.arange(4.0)}, tmp_path, overwrite=False)
    with pytest.raises(TypeError, match="random keys"):
        save(gradix.random.key(0), tmp_path)
    save([np.float32(1), None, (np.arange(4),)], tmp_path)
    back = load(tmp_path)
    assert back[1] is None and back[2][0].tolist() == [0, 1, 2, 3] and type(back[2]) is tuple
    part = next(tmp_path.glob("*/*.bin"))
    part.write_bytes(b"\0" * len(part.read_bytes()) if part.read_bytes().strip(b"\0") else b"\1" * len(part.read_bytes()))
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path)


ENVIRONMENTS = [
    ({"SLURM_JOB_ID": "5000", "SLURM_STEP_NODELIST": "node[003-006,9]", "SLURM_NTASKS": "8", "SLURM_PROCID": "2", "SLURM_LOCALID": "0"},
     ("node003:62344", 8, 2)),
    ({"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1",
      "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, ("10.96.0.1", 4, 1)),
    ({"JAX_COORDINATOR_ADDRESS": "a:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, ("a:1", 2, 1)),
    ({"TPU_WORKER_HOSTNAMES": "h0,h1", "TPU_WORKER_ID": "1"}, ("h0:8476", 2, 1)),
    ({"JOBSET_NAME": "train", "REPLICATED_JOB_NAME": "w", "JOB_COMPLETION_INDEX": "3", "NUM_PROCESSES": "4"},
     ("train-w-0-0.train:8476", 4, 3)),
    ({"SLURM_JOB_ID": "5000", "SLURM_PROCID": "2"}, None),
]


@pytest.mark.parametrize(("env", "expected"), ENVIRONMENTS)
def test_processes_are_found_in_the_environment(env, expected, monkeypatch):
    for name in [n for n in os.environ if n.startswith(("SLURM", "OMPI", "JAX_COORD", "JAX_NUM_P", "JAX_PROC", "GRADIX_"))]:
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


def test_what_is_found_in_part_leaves_one_process_and_says_so():
    code = "import gradix; gradix.distributed.initialize(); print(gradix.process_count(), gradix.distributed.is_initialized())"
    env = {k: v for k, v in _env(SLURM_JOB_ID="7", SLURM_PROCID="1").items() if not k.startswith("GRADIX_P")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.split() == ["1", "False"] and "slurm" in done.stderr and "stays alone" in done.stderr


@pytest.mark.parametrize(("arguments", "match"), [
    ({"coordinator_address": "a:1"}, "num_processes should be defined"), ({"num_processes": 2}, "coordinator_address should be defined"),
    ({"coordinator_address": "a:1", "num_processes": 2, "process_id": 2}, "less than num_processes"),
    ({"coordinator_address": "a", "num_processes": 2, "process_id": 0}, "needs a port"),
])
def test_wrong_arguments(arguments, match):
    with pytest.raises(ValueError, match=match):
        gradix.distributed.initialize(**arguments, cluster_detection_method="deactivate")
