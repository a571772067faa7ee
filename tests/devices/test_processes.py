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
from gradix._runtime.collective_calls import Call, RemoteCall, explanation, lost
from gradix.experimental.array_serialization import load, save

PROGRAMS = pathlib.Path(__file__).parent / "programs"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def _env(**more) -> dict:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "XLA_FLAGS"))}
    return {**env, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]), **more}


def _launch(n: int, *command: str, timeout: int = 120):
    return subprocess.run(
        [sys.executable, "-m", "gradix.launch", "-n", str(n), "-d", "2", *command],
        env=_env(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_several_processes(n, tmp_path):
    done = _launch(n, str(PROGRAMS / "together.py"), str(n), str(tmp_path / "saved"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert sorted([line for line in done.stdout.splitlines() if line.endswith("fine")]) == [
        f"[{i}] fine" for i in range(n)
    ]
    back = load(tmp_path / "saved")  # by one process alone
    np.testing.assert_array_equal(back["w"], np.arange(8.0 * n).reshape(2 * n, 4))


def _two(program: str, *arguments: str) -> list[subprocess.Popen]:
    """Two processes by hand, so that no launcher ends the one left."""
    port = launch._free_port()
    env = _env(GRADIX_COORDINATOR_ADDRESS=f"127.0.0.1:{port}", GRADIX_NUM_PROCESSES="2", JAX_NUM_CPU_DEVICES="1")
    return [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS / program), *arguments],
            env={**env, "GRADIX_PROCESS_ID": str(i)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for i in range(2)
    ]


def _pair(*arguments: str, killed: int):
    """One of two processes is killed: the exit status of the other, its output, and how long it lived on."""
    both = _two("waits.py", *arguments, str(killed))
    both[killed].communicate(timeout=60)
    assert both[killed].returncode == -signal.SIGKILL
    start = time.monotonic()
    text = both[1 - killed].communicate(timeout=60)[0]
    return both[1 - killed].returncode, text, time.monotonic() - start


@pytest.mark.parametrize(
    ("doing", "killed"),
    [
        ("computes", 1),
        pytest.param("sleeps", 1, marks=pytest.mark.slow),
        pytest.param("sleeps", 0, marks=pytest.mark.slow),
    ],
)
def test_a_lost_process_ends_the_others(doing, killed):
    status, text, seconds = _pair(doing, killed=killed)
    assert status != 0 and seconds < 30, text
    said = [
        "Connection closed by peer",
        "Connection reset by peer",
        f"process {killed} of 2 is lost",
        "another task died",
    ]
    assert any(words in text for words in said), text


@pytest.mark.parametrize(
    ("doing", "match"),
    [
        pytest.param(
            "sleeps",
            r"process 0 has waited .* in 'first', its call number 2 .*process 1 is missing: its last is number 1",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "differs",
            "processes 0 and 1 have called different programs: call number [23]"
            "|process 0 has lost another process in 'first', its call number [23] .*that of process 1 was number 1, 'first'",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_who_is_missing_in_a_collective(doing, match):
    both = _two("misses.py", doing)
    try:
        text = both[0].communicate(timeout=100)[0]
    finally:
        for p in both:
            p.kill()
            p.communicate()
    assert both[0].returncode != 0 and re.search(match, text), text


def test_what_is_told_of_a_connection_that_is_lost():
    told = lost(0, {1: RemoteCall.read(Call(6, "step", "aa", 0.0).message(True)), 2: None}, "Connection reset")
    assert "that of process 1 was number 6, 'step', which had not ended" in told and "(Connection reset)" in told
    assert "before: none" in lost(0, {}, "Connection reset")


def test_what_is_told_of_a_call_that_waits():
    mine = Call(7, "step", "aa", 0.0)
    told = {
        1: RemoteCall.read(Call(7, "eval", "bb", 0.0).message(True)),
        2: RemoteCall.read(Call(6, "step", "aa", 0.0).message(False)),
        3: None,
        4: RemoteCall.read(Call(7, "step", "aa", 0.0).message(True)),
    }
    text, never = explanation(0, mine, told, 61.0)
    assert (
        never
        and "process 1 is in another program: 'eval'" in text
        and "waited 61 s in 'step', its call number 7" in text
    )
    assert "process 2 is missing: its last is number 6, 'step', which has ended" in text
    assert "process 3 is missing: it has made none" in text
    assert "process 4" not in text
    text, never = explanation(0, mine, {4: told[4]}, 61.0)
    assert not never and "All others are in it" in text
    with pytest.raises(ValueError, match="number of seconds"):
        gradix.config.update("gradix_collective_timeout", -1)


def test_processes_agree_on_where_to_save_before_one_is_ended():
    both = _two("agrees.py", "asked")
    texts = [p.communicate(timeout=60)[0] for p in both]
    assert [p.returncode for p in both] == [0, 0], texts
    said = [re.search(r"saves at (\d+)", t) for t in texts]
    assert all(said) and said[0][1] == said[1][1] and int(said[0][1]) > 20, texts


@pytest.mark.slow
def test_live_devices_tell_of_a_lost_process():
    both = _two("agrees.py", "killed")
    text = both[0].communicate(timeout=60)[0]
    both[1].communicate(timeout=60)
    assert "The processes [1] were lost" in text and "[1]\nleft: [0]" in text, text


@pytest.mark.slow
def test_killed_twenty_times():
    for i in range(20):
        status, text, seconds = _pair("computes" if i % 2 else "sleeps", killed=1)
        assert status != 0 and seconds < 30, text


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_checkpoints_survive_a_kill_in_mid_write(times, tmp_path):
    chance = random.Random(5)
    for _ in range(times):
        writer = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "saves.py"), str(tmp_path)], env=_env(), text=True, stdout=subprocess.PIPE
        )
        last = int(writer.stdout.readline())
        time.sleep(chance.random() * 0.05)
        writer.kill()
        last = max([last, *map(int, writer.communicate()[0].split())])
        back = load(tmp_path)
        step = int(back["step"])
        assert step >= last and np.all(np.asarray(back["w"]) == step)


def test_damage_and_wrong_use_of_checkpoints(tmp_path):
    with pytest.raises(FileNotFoundError, match="no complete checkpoint"):
        load(tmp_path)
    save({"w": np.arange(4.0)}, tmp_path)
    with pytest.raises(ValueError, match="overwrite"):
        save({"w": np.arange(4.0)}, tmp_path, overwrite=False)
    with pytest.raises(TypeError, match="random keys"):
        save(gradix.random.key(0), tmp_path)
    save([np.float32(1), None, (np.arange(4),)], tmp_path)
    back = load(tmp_path)
    assert back[1] is None and back[2][0].tolist() == [0, 1, 2, 3] and type(back[2]) is tuple
    part = next(tmp_path.glob("*/*.bin"))
    part.write_bytes(
        b"\0" * len(part.read_bytes()) if part.read_bytes().strip(b"\0") else b"\1" * len(part.read_bytes())
    )
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path)


@pytest.mark.parametrize("port", ["99999", "0", "-1", "x", "", "1.5", "²"])
def test_what_is_no_port_is_refused(port):
    with pytest.raises(ValueError, match="from 1 to 65535"):
        gradix.distributed.initialize(f"127.0.0.1:{port}", 1, 0)
    with pytest.raises(ValueError, match="from 1 to 65535"):
        gradix.distributed.initialize("127.0.0.1:1234", 1, 0, coordinator_bind_address=f"127.0.0.1:{port}")
    with pytest.raises(ValueError, match="from 1 to 65535"):
        gradix.profiler.start_server(port)
    with pytest.raises(ValueError, match="from 1 to 65535"):
        launch.launch(["true"], 1, port=port)


TAKEN = """
import socket, sys
import gradix
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    s.listen()
    port = s.getsockname()[1]
    for start in (lambda: gradix.distributed.initialize(f"127.0.0.1:{port}", 1, 0), lambda: gradix.profiler.start_server(port, False)):
        try:
            start()
        except RuntimeError as e:
            print(str(e).replace(str(port), "PORT"))
"""
LISTENING = """
import os, sys
import gradix
gradix.distributed.initialize(f"127.0.0.1:{sys.argv[1]}", 1, 0, **eval(sys.argv[2]))
links = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{n}")]
own = {link[8:-1] for link in links if link.startswith("socket:")}
for kind in ("tcp", "tcp6"):
    for line in open(f"/proc/net/{kind}").readlines()[1:]:
        fields = line.split()
        host, port = fields[1].split(":")
        if fields[3] == "0A" and fields[9] in own and int(port, 16) == int(sys.argv[1]):
            print(host)
"""
ANY, LOOPBACK = {"0" * 8, "0" * 32}, {"0100007F", "0000000000000000FFFF00000100007F"}


def _alone(text: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments], env=_env(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_a_taken_port_is_named():
    first, second = _alone(TAKEN)
    assert first.startswith(
        "distributed.initialize: process 0 cannot listen at 127.0.0.1, port PORT: Address already in use."
    )
    assert second.startswith("start_server cannot listen at [::], port PORT: Address already in use.")


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="needs Linux's list of open ports")
@pytest.mark.parametrize(
    ("options", "hosts"),
    [
        ("{}", LOOPBACK),
        ("{'coordinator_bind_address': '127.0.0.1'}", LOOPBACK),
        ("{'coordinator_bind_address': '0.0.0.0'}", ANY),
    ],
)
def test_the_service_listens_where_it_is_told_to(options, hosts):
    found = _alone(LISTENING, str(launch._free_port()), options)
    assert found and set(found) <= hosts
