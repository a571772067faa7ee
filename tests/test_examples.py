"""The examples run as a newcomer runs them, and every benchmark case runs once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import cases  # noqa: F401  (registers the cases)
from benchmarks.case import CASES, Case, target
from benchmarks.report import Comparison, markdown, plain

ROOT = Path(__file__).resolve().parent.parent
# The programs print numbers of float32.
pytestmark = pytest.mark.x32


def run(*arguments, folder, status=0):
    """Output of a Python program run in a folder, with the repository on its path."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "MPLCONFIGDIR": str(folder)}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_counter_shows_what_jit_does_with_state(tmp_path):
    out = run("-W", "error", ROOT / "examples/counter.py", folder=tmp_path)
    assert "[1, 1, 1]" in out
    assert out.count("[1, 2, 3]") == 2
    assert "[ 1 11 21 31 41]" in out
    assert "Try next" in out


@pytest.fixture(scope="module")
def digits_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    out = run("-W", "error", ROOT / "examples/serving/export_model.py", "digits.gdx", folder=folder)
    assert "of 450 unseen digits read right" in out
    return folder / "digits.gdx"


SERVED = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from server import App, Journal, Reader
from sklearn.datasets import load_digits
pixels, labels = load_digits(return_X_y=True)
body = json.dumps({"images": (pixels[:100] / 16).tolist()}).encode()

async def ask(app, method, path, body=b""):
    sent = []
    async def receive():
        return {"type": "http.request", "body": body}
    async def send(message):
        sent.append(message)
    await app({"type": "http", "method": method, "path": path}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])

async def main():
    reader = Reader(sys.argv[2])
    first = App(reader, Journal("jobs.sqlite"), hold=True)
    status, answer = await ask(first, "POST", "/digits", body)
    right = sum(a == b for a, b in zip(answer["digits"], labels))
    assert status == 200 and right > 90 and len(answer["chances"]) == 100, (status, right)
    assert [(await ask(first, *r))[0] for r in (("POST", "/digits", b"{}"), ("GET", "/jobs/9"), ("GET", "/no"))] == [400, 404, 404]
    jobs = [(await ask(first, "POST", "/jobs", body))[1]["job"] for _ in range(3)]
    assert [(await ask(first, "GET", f"/jobs/{j}"))[0] for j in jobs] == [202] * 3
    again = App(reader, Journal("jobs.sqlite"))
    worker = asyncio.create_task(again.work())
    for _ in range(100):
        await asyncio.sleep(0.01)
    assert all([(await ask(again, "GET", f"/jobs/{j}")) == (200, answer) for j in jobs])
    worker.cancel()
    assert not [m for m in sys.modules if m.startswith(("gradix.nn", "gradix.random"))]

asyncio.run(main())
"""


def test_an_exported_model_is_served(digits_file):
    run("-W", "error", "-c", SERVED, ROOT / "examples/serving", digits_file, folder=digits_file.parent)


@pytest.mark.slow
def test_a_killed_server_answers_what_it_accepted(digits_file):
    pytest.importorskip("uvicorn")
    out = run(ROOT / "examples/serving/measure.py", digits_file, "--seconds", "0.2", folder=digits_file.parent)
    assert "killed: 40 jobs accepted, 0 answered before, 40 after the restart" in out


def test_regression_finds_the_least_squares_line(tmp_path):
    lines = run("-W", "error", ROOT / "examples/regression.py", folder=tmp_path).splitlines()
    last = next(line for line in lines if line.startswith("step      200"))
    exact = next(line for line in lines if line.startswith("least squares"))
    assert last.split("y = ")[1].split("   ")[0] == exact.split("y = ")[1].split("   ")[0]
    assert any("Try next" in line for line in lines)


def test_digits_are_read(tmp_path):
    out = run(ROOT / "examples/digits.py", "--quick", "--out", tmp_path / "read.png", folder=tmp_path)
    assert out.count("of the test digits") == 3
    assert (tmp_path / "read.png").read_bytes().startswith(b"\x89PNG")
    suggested = [line.split(":", 1) for line in out.splitlines() if line.startswith("  line ")]
    source = (ROOT / "examples/digits.py").read_text(encoding="utf-8").splitlines()
    assert len(suggested) == 3
    for place, change in suggested:
        assert source[int(place.split()[1]) - 1].split(" =")[0] == change.split()[0]


def test_chains_agree_on_the_posterior(tmp_path):
    out = run("-W", "error", ROOT / "examples/hmc.py", "--quick", "--out", tmp_path / "hmc.png", folder=tmp_path)
    rows = {line.split()[0]: line.split() for line in out.splitlines() if "±" in line}
    assert len(rows) == 10 and rows["bmi"][-1] == rows["s5"][-1] == "100.0%" and rows["sex"][-1] == "0.0%"
    assert all(abs(float(rows[name][1]) - float(rows[name][4])) < 0.03 for name in ("bmi", "bp", "sex"))
    assert (tmp_path / "hmc.png").read_bytes().startswith(b"\x89PNG")


def test_energy_holds_and_forces_tell_the_atom(tmp_path):
    out = run(
        "-W", "error", ROOT / "examples/lennard_jones.py", "--quick", "--out", tmp_path / "fluid.png", folder=tmp_path
    )
    assert float(out.split("stays within ")[1].split("%")[0]) < 1.5
    depth, size = [float(out.split(f"{name} ")[1].split()[0].strip(",")) for name in ("depth", "size")]
    assert abs(depth - 1) < 0.03 and abs(size - 1) < 0.01
    assert (tmp_path / "fluid.png").read_bytes().startswith(b"\x89PNG")


def test_lists_of_neighbours_have_the_forces_of_all_pairs(tmp_path):
    out = run(
        "-W", "error", ROOT / "examples/neighbours.py", "--quick", "--out", tmp_path / "pairs.png", folder=tmp_path
    )
    assert float(out.split("all pairs by ")[1].split()[0]) < 1e-4
    pairs = [int(line.split()[2]) for line in out.splitlines() if " pairs   energy" in line]
    assert len(set(pairs)) > 6 and "lists of different lengths: 1\n" in out
    assert (tmp_path / "pairs.png").read_bytes().startswith(b"\x89PNG")


def test_groups_tell_the_offsets_of_sensors(tmp_path):
    out = run("-W", "error", ROOT / "examples/group_by.py", "--out", tmp_path / "groups.png", folder=tmp_path)
    assert float(out.split("difference from least squares: ")[1].split()[0]) < 0.06
    assert "numbers of events: 1\n" in out and (tmp_path / "groups.png").read_bytes().startswith(b"\x89PNG")


def test_sentences_of_their_own_lengths_are_answered(tmp_path):
    out = run(
        "-W", "error", ROOT / "examples/sentences.py", "--quick", "--out", tmp_path / "letters.png", folder=tmp_path
    )
    assert float(out.split("step  120: ")[1].split("%")[0]) > 90 and "programs traced: 1\n" in out
    assert float(out.split("at most ")[1].split()[0]) < 1e-3
    assert (tmp_path / "letters.png").read_bytes().startswith(b"\x89PNG")


def test_books_trade_as_the_plain_engine_does(tmp_path):
    out = run(
        "-W", "error", ROOT / "examples/order_book.py", "--quick", "--out", tmp_path / "books.png", folder=tmp_path
    )
    assert "ten of them make the same trades as plain Python" in out
    spreads = [float(line.split()[-1]) for line in out.splitlines() if "market orders: spread" in line]
    assert len(spreads) == 5 and spreads[0] < spreads[-1]
    assert (tmp_path / "books.png").read_bytes().startswith(b"\x89PNG")


def test_parallel_digits_gives_one_devices_losses(tmp_path):
    out = run(
        "-W",
        "error",
        ROOT / "examples/parallel_digits.py",
        "--steps",
        "6",
        "--out",
        tmp_path / "parts.png",
        folder=tmp_path,
    )
    assert out.count("from one device's") == 4 and "8 devices in 1 process" in out
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "devices"), [(2, 4), (4, 2), (2, 1), (4, 1)])
def test_parallel_digits_in_several_processes(processes, devices, tmp_path):
    launcher = "-m", "gradix.launch", "-n", processes, "-d", devices
    out = run(*launcher, ROOT / "examples/parallel_digits.py", "--steps", "4", folder=tmp_path)
    assert out.count("from one device's") == 4 and f"{processes * devices} devices in {processes} processes" in out


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--steps",)])
def test_collectives_are_measured(arguments, tmp_path):
    out = run("-m", "benchmarks.collectives", *arguments, folder=tmp_path)
    assert "psum" in out or "| pipeline |" in out


@pytest.mark.slow
def test_calls_and_the_time_of_the_compiler_in_them_are_measured(tmp_path):
    out = json.loads(run("-m", "benchmarks.calls", "gradix", folder=tmp_path).splitlines()[-1])
    assert set(out) == {"sum of all", "psum of rows"} and all(len(t) == 2 and min(t) > 0 for t in out.values())


def in_the_fast_suite(case):
    if case.group in ("special", "densities", "samplers"):  # a million numbers, and a program for each function
        return case.name in ("boxcox", "norm.logpdf", "random normal")
    return case.group != "scaling" or " 100 arrays" in case.name or " 50 functions" in case.name


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case.group}-{case.name}", marks=() if in_the_fast_suite(case) else pytest.mark.slow)
        for case in CASES.values()
    ],
)
def test_benchmark_case_runs(case):
    x = target("gradix")
    call = case.make(x)
    result = call(case.fresh(x)()) if case.fresh else call()
    if result is not None:
        x.block(result)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, id=c.name, marks=() if in_the_fast_suite(c) else pytest.mark.slow)
        for c in CASES.values()
        if c.numpy
    ],
)
def test_benchmark_case_runs_on_numpy(case):
    case.numpy(target("numpy"))()


def test_benchmark_cases_run_on_torch():
    pytest.importorskip("torch")
    failures = {}
    for case in [c for c in CASES.values() if c.torch]:
        try:
            case.torch(target("torch"))()
        except Exception as error:
            failures[case.name] = error
    assert not failures


def test_kernels_have_a_torch_peer_unless_it_lacks_the_function():
    lacking = {c.name for c in CASES.values() if c.group in ("kernels", "orders", "eager", "grad") and not c.torch}
    assert lacking == {"cbrt, 1M"}


def test_memory_script_watches_every_phase(tmp_path):
    counts = ["--calls", "200", "--traces", "20", "--compiles", "2", "--allowance", "64"]
    out = run("-m", "benchmarks.memory", *counts, folder=tmp_path)
    assert out.count("flat: ") == 5


def test_report_marks_what_misses_its_target():
    quick, slow, broken = (Case(name, "g", 0.5, lambda x: None) for name in ("quick", "slow", "broken"))
    comparison = Comparison([quick, slow, broken])
    for seconds in (1e-6, 3e-6, 2e-6):
        comparison.add("gradix", {"quick": seconds, "slow": 10 * seconds, "broken": "ValueError: no"})
        comparison.add("jax", {"quick": 10e-6, "slow": 10e-6, "broken": 1e-6})
        comparison.add("torch", {"quick": 5e-6, "slow": "RuntimeError: no"})
    assert comparison.median(quick, "gradix") == 2e-6
    assert comparison.ratio(broken) is comparison.best_ratio(broken) is None
    assert comparison.best_ratio(slow) == pytest.approx(2)
    text = plain(comparison, "machine")
    assert "NO, 4.00x" in text
    assert "gradix: ValueError: no (broken)" in text
    assert text.endswith("1 of 2 targets met")
    assert "| g | quick | 2.00 | 10.0 | – | 5.00 | 0.20 | 0.40 | ≤ 0.5 | yes |" in markdown(comparison, "machine")


def test_tables_of_models_have_the_columns_of_their_page():
    one, two = [
        Case(name, group, 1, lambda x: None) for name, group in (("random normal", "samplers"), ("erf", "special"))
    ]
    comparison = Comparison([one, two])
    comparison.add("gradix", {"random normal": 1e-6, "erf": 3e-6})
    comparison.add("jax", {"random normal": 2e-6, "erf": 2e-6})
    comparison.add("numpy", {"erf": 70e-6})
    text = markdown(comparison, "machine")
    assert "| | Gradix | JAX | NumPy | to JAX |" in text and "| normal | 1.00 | 2.00 | – | 0.50 |" in text
    assert "| | Gradix | JAX | SciPy | to JAX |" in text and "| erf | 3.00 | 2.00 | 70.0 | 1.50 |" in text
    assert text.endswith("1 of 2 targets met. machine.")
