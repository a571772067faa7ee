"""`python -m gradix.launch`: output, exit status, signals, wrong use, and processes on a Ray cluster."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from gradix import launch
from tests.devices.test_processes import PROGRAMS, _env

WAITS = """
import os, sys, time
sys.stdout.write("begun ")
sys.stdout.flush()
print("by", os.environ["GRADIX_PROCESS_ID"])
sys.stderr.write("no end of line")
sys.stderr.flush()
try:
    open(__file__ + ".begun" + os.environ["GRADIX_PROCESS_ID"], "w").close()
    time.sleep(60)
except KeyboardInterrupt:
    print(" interrupted")
"""


def _run(*arguments: str, timeout: int = 60):
    return subprocess.run(
        [sys.executable, "-m", "gradix.launch", *arguments], env=_env(), capture_output=True, text=True, timeout=timeout
    )


def _program(folder, text: str) -> str:
    (folder / "program.py").write_text(text)
    return str(folder / "program.py")


def _wait_for(files) -> None:
    """Until the files are there that processes make once they wait for a signal."""
    for file in files:
        end = time.monotonic() + 30
        while not os.path.exists(file):
            assert time.monotonic() < end, file
            time.sleep(0.01)


def test_one_failure_ends_all_and_gives_the_status(tmp_path):
    program = _program(
        tmp_path,
        "import os, sys, time\nrank = int(os.environ['GRADIX_PROCESS_ID'])\nprint('from', rank)\n"
        "sys.exit(7) if rank == 1 else time.sleep(60)\n",
    )
    start = time.monotonic()
    done = _run("-n", "3", program)
    assert done.returncode == 7 and time.monotonic() - start < 30
    assert (
        "[1] from 1" in done.stdout
        and "process 1 ended with status 7; the 2 processes still running are ended" in done.stderr
    )


def test_a_process_that_a_signal_ends(tmp_path):
    done = _run("-n", "1", _program(tmp_path, "import os\nos.kill(os.getpid(), 9)\n"))
    assert done.returncode == 128 + 9 and "process 0 ended by signal 9" in done.stderr


def test_output_comes_in_whole_lines_and_input_is_empty(tmp_path):
    text = "import sys\nfor i in range(200): print('x' * 300, i)\nsys.stderr.write('last ' + repr(sys.stdin.read()))\n"
    done = _run("-n", "3", _program(tmp_path, text))
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 3 * 201
    assert all(re.fullmatch(r"\[[012]\] (x{300} \d+|last '')", line) for line in lines)
    for rank in range(3):
        own = [line.split()[-1] for line in lines if line.startswith(f"[{rank}] x")]
        assert own == [str(i) for i in range(200)]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.slow)])
def test_signals_are_passed_on(name, tmp_path):
    program, number = _program(tmp_path, WAITS), getattr(signal, name)
    running = subprocess.Popen(
        [sys.executable, "-m", "gradix.launch", "-n", "2", program],
        env=_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen = [running.stdout.readline() for _ in range(2)]
    assert sorted(seen) == ["[0] begun by 0\n", "[1] begun by 1\n"]
    _wait_for(f"{program}.begun{rank}" for rank in range(2))
    running.send_signal(number)
    rest = running.communicate(timeout=30)[0]
    assert running.returncode == 128 + number
    assert rest.count("no end of line") == 2 and rest.count("interrupted") == (2 if name == "SIGINT" else 0)
    left = subprocess.run(["pgrep", "-f", program], capture_output=True, text=True, check=False).stdout
    assert not left


def test_a_second_signal_ends_what_does_not_answer(tmp_path):
    text = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\ntime.sleep(60)\n"
    running = subprocess.Popen(
        [sys.executable, "-m", "gradix.launch", "-n", "1", _program(tmp_path, text)],
        env=_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout.readline() == "[0] begun\n"
    start = time.monotonic()
    running.send_signal(signal.SIGINT)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 128 + signal.SIGINT and time.monotonic() - start < 4


def test_nobody_reads_the_output(tmp_path):
    text = "import time\nwhile True:\n    print('x')\n    time.sleep(0.001)\n"
    running = subprocess.Popen(
        [sys.executable, "-m", "gradix.launch", "-n", "2", _program(tmp_path, text)],
        env=_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=30) == 128 + 13


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", "0", "x.py"], "it must be a positive integer, got '0'"),
        (["x.py"], "-n/--num-processes"),
        (["-n", "2"], "program"),
    ],
)
def test_wrong_use(arguments, words):
    done = _run(*arguments)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    with pytest.raises(ValueError, match="num_processes must be positive"):
        launch.launch(["true"], 0)


def test_help_and_modules():
    done = _run("--help")
    assert done.returncode == 0 and "--ray" in done.stdout and "gradix.distributed.initialize()" in done.stdout
    done = _run("-n", "1", "-m", "platform", "--terse")
    assert done.returncode == 0 and done.stdout.startswith("[0] ")


def _has_ray() -> bool:
    return subprocess.run([sys.executable, "-c", "import ray"], capture_output=True, check=False).returncode == 0


def test_without_ray():
    if _has_ray():
        pytest.skip("Ray is installed")
    done = _run("-n", "1", "--ray", "x.py")
    assert (
        done.returncode == 2
        and done.stderr.strip().endswith("Install it: pip install ray")
        and "Traceback" not in done.stderr
    )


@pytest.mark.slow
def test_on_a_ray_cluster(tmp_path):
    if not _has_ray():
        pytest.skip("Ray is not installed")
    done = _run("-n", "2", "-d", "1", "--ray", str(PROGRAMS / "joins.py"), timeout=200)
    assert done.returncode == 0 and sorted(line for line in done.stdout.splitlines() if "sum" in line) == [
        "[0] sum 3",
        "[1] sum 3",
    ]
    fails = _program(
        tmp_path, "import os, sys, time\nsys.exit(7) if os.environ['GRADIX_PROCESS_ID'] == '1' else time.sleep(60)\n"
    )
    done = _run("-n", "2", "--ray", fails, timeout=200)
    assert done.returncode == 7 and "process 1 ended with status 7" in done.stderr
    running = subprocess.Popen(
        [sys.executable, "-m", "gradix.launch", "-n", "1", "--ray", _program(tmp_path, WAITS)],
        env=_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout.readline() == "[0] begun by 0\n"
    os.kill(running.pid, signal.SIGINT)
    assert "interrupted" in running.communicate(timeout=60)[0] and running.returncode == 128 + signal.SIGINT


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems have no signal for the death of a parent"
)
def test_processes_end_with_a_launcher_that_is_killed(tmp_path):
    text = 'import os, pathlib, sys, time\npathlib.Path(sys.argv[1], os.environ["GRADIX_PROCESS_ID"]).write_text(str(os.getpid()))\ntime.sleep(60)\n'
    with subprocess.Popen(
        [sys.executable, "-m", "gradix.launch", "-n", "2", _program(tmp_path, text), str(tmp_path)], env=_env()
    ) as launcher:
        files = [tmp_path / "0", tmp_path / "1"]
        _wait_for(files)
        while not all(f.read_text() for f in files):
            time.sleep(0.01)
        launcher.kill()
    until = time.monotonic() + 30
    while any(_is_running(int(f.read_text())) for f in files):
        assert time.monotonic() < until, "a process outlives its launcher"
        time.sleep(0.02)


def _is_running(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        launch.launch(["no-such-program"], 1)
