"""`python -m tests.accelerator`: what a platform computes, and how fast, as one report in JSON.

    python -m tests.accelerator [--platform cuda] [--report gpu.json] [--seconds 570] [--jobs 8] [--only EXPRESSION]

Stages, each within its share of the time: the device and its versions; the tests of this folder; groups of benchmarks;
folders of the suite that state nothing of CPUs. What time did not reach is counted. The exit status is 0 if the device
was found and every test of this folder that ran has passed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform as machine
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distributions
from importlib.util import find_spec
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gradix", "jaxlib", "numpy", "scipy", "ml_dtypes", "jax", "pytest")
GROUPS = ("dispatch", "eager", "grad", "solvers", "kernels", "convolutions", "loops")  # the long ones last
# Of the suite, what runs on the default device, whatever it is.
PEERS = ("gradix", *(["jax"] if find_spec("jax") else []))
WIDER = ("tests/transforms/test_grad.py", "tests/control", "tests/linalg", "tests/nn", "tests/random", "tests/ops")
# What these tests state is so on the CPU alone: its name, what is evaluated by NumPy, the bits and the order of its XLA.
OF_CPUS = (
    "tests/control/test_named.py::test_the_platform_chooses",
    "tests/control/test_named.py::test_no_alternative_for_the_platform",
    "tests/linalg/test_decompositions.py::test_singular_tridiagonal_systems",  # the perturbed solution is LAPACK's
    "tests/ops/test_complex_special_values.py::test_special_values[compiled-square-complex64]",  # by fused multiplication
    "tests/ops/test_complex_special_values.py::test_special_values[compiled-square-complex128]",
    "tests/ops/test_sort_ties.py",
    "tests/ops/test_sort.py::test_values_follow_their_keys_stably",  # subnormal numbers, signs of NaN
    "tests/ops/test_structural.py::test_scatter",  # which of several elements for one place is kept
    "tests/control/test_loops.py::test_reduce",  # starts with a number that is not the identity, which a GPU takes more than once
    "tests/random/test_integers.py::test_integers_that_are_drawn_often_are_compiled_and_stay_the_same",
    "tests/random/test_generator.py::test_stateful_generator_draws_what_jax_draws",
    "tests/random/test_truncated.py::test_compiled_as_eager",
    "tests/random/test_distributions.py::test_draws_are_those_of_the_compiled_program",
)
DEVICE = """
import json, gradix
devices = gradix.devices(PLATFORM)
first = devices[0]
print(json.dumps({"count": len(devices), "kind": first.device_kind, "platform": first.platform,
                  "runtime": getattr(first.client, "platform_version", None), "memory": first.memory_stats(),
                  "default": gradix.default_backend()}))
"""


def environment(platform: str) -> dict[str, str]:
    """The variables of every stage: the platform is the default, the CPU beside it, and memory is shared by processes."""
    names = [platform, *(["cpu"] if platform != "cpu" else [])]
    # Of a run of pytest around this one, nothing is to be known.
    around = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return {
        **around,
        "JAX_PLATFORMS": ",".join(names),
        "GRADIX_TEST_PLATFORM": platform,
        "GRADIX_CACHE": "off",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_TRACEBACK_FILTERING": "off",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }


def run(command: list[str], seconds: float, env: dict[str, str]) -> tuple[int | None, str, str]:
    """The exit status, None if time was up, and what the process wrote; all that it started ends with it."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=max(seconds, 1))
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            return None, out, err


def tested(paths: list[str], seconds: float, env: dict[str, str], options: argparse.Namespace) -> dict:
    """The outcomes of tests: how many, and of each that failed or was skipped the reason."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes"
        command = [
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:benchmark",
            "-p",
            "tests.accelerator.outcomes",
            "-q",
            "-m",
            "not slow and not rewritten",
            *paths,
        ]
        command += ["-n", str(options.jobs)] if options.jobs > 1 else []
        command += ["-k", options.only] if options.only else []
        command += [f"--deselect={test}" for test in OF_CPUS] if options.platform != "cpu" else []
        status, out, err = run(command, seconds, {**env, "GRADIX_TEST_OUTCOMES": str(file)})
        lines = (
            [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.endswith("}")]
            if file.exists()
            else []
        )
    return {
        **summary(lines),
        "seconds": round(time.monotonic() - start, 1),
        "ended": status is not None,
        **({"error": (out + err)[-2000:]} if status not in (None, 0, 1, 5) else {}),
    }


def summary(lines: list[dict]) -> dict:
    """The outcomes that the plug-in wrote; a test that failed in any phase has failed."""
    collected = max([line["collected"] for line in lines if "collected" in line], default=0)
    last: dict[str, dict] = {}
    for line in lines:
        if "test" in line and last.get(line["test"], {}).get("outcome") != "failed":
            last[line["test"]] = line
    kinds = {kind: [x for x in last.values() if x["outcome"] == kind] for kind in ("passed", "failed", "skipped")}
    reasons = {kind: {x["test"]: x["reason"] for x in kinds[kind]} for kind in ("failed", "skipped")}
    slowest = sorted(last.values(), key=lambda x: -x["seconds"])[:10]
    return {
        "passed": len(kinds["passed"]),
        **reasons,
        "not_reached": max(collected - len(last), 0),
        "slowest": {x["test"]: x["seconds"] for x in slowest},
    }


def measured(seconds: float, env: dict[str, str], groups: list[str]) -> dict:
    """Seconds of each case by group and library; a group that does not end in its share is left out with the reason."""
    found, start = {}, time.monotonic()
    wanted = list(product(groups, PEERS))
    for number, (group, library) in enumerate(wanted):
        share = (seconds - (time.monotonic() - start)) / (len(wanted) - number)
        command = ["-m", "benchmarks.worker", "--target", library, "--group", group, "--budget", "0.05"]
        status, out, err = run(command, share, env)
        last = (err.strip().splitlines() or [f"exit status {status}"])[-1]
        timed = json.loads(out) if status == 0 else {"error": f"no end in {share:.0f} s" if status is None else last}
        found.setdefault(group, {})[library] = timed
    return found


def compared(cases: dict) -> str:
    """Of a group in one line: how many cases, and the ratios to JAX's times where both have one."""
    ours, theirs = cases["gradix"], cases.get("jax", {})
    if "error" in ours:
        return ours["error"]
    ratios = sorted(
        ours[c] / theirs[c] for c in ours if isinstance(ours[c], float) and isinstance(theirs.get(c), float)
    )
    broken = sum(not isinstance(seconds, float) for seconds in ours.values())
    times = (
        f", {ratios[0]:.2f} to {ratios[-1]:.2f} of JAX's time, median {ratios[len(ratios) // 2]:.2f}" if ratios else ""
    )
    return f"{len(ours)} cases, {broken} failed{times}"


def versions() -> dict[str, str]:
    """Of Python, the packages, the plug-ins and NVIDIA's libraries."""
    installed = {d.name.lower().replace("_", "-"): d.version for d in distributions() if d.name}
    wanted = {
        n: v
        for n, v in sorted(installed.items())
        if n.replace("-", "_") in PACKAGES or n.startswith(("jax-cuda", "nvidia-"))
    }
    return {"python": machine.python_version(), "system": machine.platform(), **wanted}


def driver() -> str | None:
    """What `nvidia-smi` tells of the card and its driver; None where there is none."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=30, check=False).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None


def main() -> int:
    """Run the stages, write the report, and print what it says."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.accelerator", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--platform", default="cuda", help="cuda, or cpu to try the command itself")
    parser.add_argument("--report", type=Path, default=Path("gpu.json"))
    parser.add_argument("--seconds", type=float, default=570, help="of the whole run")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), help="processes of the tests")
    parser.add_argument("--only", default="", help="tests that this expression of pytest's -k chooses")
    parser.add_argument("--groups", nargs="*", default=GROUPS, help="of benchmarks")
    parser.add_argument("--wider", nargs="*", default=WIDER, help="folders of the suite")
    options = parser.parse_args()
    env, end = environment(options.platform), time.monotonic() + options.seconds

    def left(share: float) -> float:
        return (end - time.monotonic()) * share

    report: dict = {
        "platform": options.platform,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": versions(),
        "driver": driver(),
    }
    status, out, err = run(["-c", DEVICE.replace("PLATFORM", repr(options.platform))], min(120, left(0.5)), env)
    report["device"] = (
        json.loads(out.splitlines()[-1])
        if status == 0
        else {"error": (err.strip().splitlines() or ["no end in time"])[-1]}
    )
    if status == 0:
        report["values"] = tested(["tests/accelerator"], left(0.5), env, options)
        report["benchmarks"] = measured(left(0.5), env, list(options.groups))
        if options.wider:
            report["suite"] = tested(list(options.wider), left(0.95), env, options)
    report["seconds"] = round(options.seconds - (end - time.monotonic()), 1)
    options.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(told(report), f"The report is in {options.report}.", sep="\n")
    return int(
        status != 0 or bool(report["values"]["failed"]) or "error" in report["values"] or not report["values"]["passed"]
    )


def told(report: dict) -> str:
    """The report in a few lines."""
    device = report["device"]
    if "error" in device:
        return f"{report['platform']}: {device['error']}"
    lines = [
        f"{report['platform']}: {device['count']} x {device['kind']}, jaxlib {report['versions'].get('jaxlib')}, {report['seconds']} s"
    ]
    for stage in ("values", "suite"):
        if stage in report:
            x = report[stage]
            lines.append(
                f"{stage}: {x['passed']} passed, {len(x['failed'])} failed, {len(x['skipped'])} skipped, {x['not_reached']} not reached"
            )
            lines += [
                f"  {test}: {reason.splitlines()[0][:160] if reason else ''}"
                for test, reason in list(x["failed"].items())[:20]
            ]
            lines += [f"  {x['error'].splitlines()[-1]}"] if x.get("error") else []
    for group, cases in report["benchmarks"].items():
        lines.append(f"benchmarks, {group}: {compared(cases)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
