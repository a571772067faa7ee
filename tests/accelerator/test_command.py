"""The command itself, tried on the CPU: its stages, its report, and what it says where there is no such device."""

import json
import subprocess
import sys

import pytest

from tests.accelerator.__main__ import ROOT, summary


def command(tmp_path, *options):
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.accelerator", "--report", str(report), "--jobs", "1", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert report.exists(), done.stderr
    return done, json.loads(report.read_text("utf-8"))


def test_a_run_on_the_cpu(tmp_path):
    done, report = command(
        tmp_path,
        "--platform",
        "cpu",
        "--only",
        "cos or donation",
        "--groups",
        "dispatch",
        "--wider",
        "tests/ops/test_dce_sink.py",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["device"]["platform"] == "cpu" == report["device"]["default"] and "jaxlib" in report["versions"]
    values = report["values"]
    assert values["passed"] >= 4 and not values["failed"] and not values["not_reached"] and values["ended"]
    assert report["suite"]["passed"] == 0 and report["benchmarks"].keys() == {"dispatch"}
    assert "values: " in done.stdout and str(values["passed"]) in done.stdout


def test_without_the_device_the_report_says_why(tmp_path):
    done, report = command(tmp_path, "--platform", "no_such_platform")
    assert (
        done.returncode == 1
        and "no plug-in for it is installed" in report["device"]["error"]
        and "no_such_platform" in done.stdout
    )
    assert "values" not in report


@pytest.mark.parametrize(
    "lines, passed, failed, missing",
    [
        ([], 0, {}, 0),
        ([{"collected": 3}, {"test": "a", "outcome": "passed", "seconds": 1.0}], 1, {}, 2),
        (
            [
                {"collected": 2},
                {"test": "a", "outcome": "passed", "seconds": 1.0},
                {"test": "a", "outcome": "failed", "reason": "r", "seconds": 0.0},
                {"test": "b", "outcome": "failed", "reason": "s", "seconds": 0.0},
                {"test": "b", "outcome": "passed", "seconds": 0.0},
            ],
            0,
            {"a": "r", "b": "s"},
            0,
        ),
        (
            [{"test": "folder", "outcome": "failed", "reason": "SyntaxError", "seconds": 0.0}],
            0,
            {"folder": "SyntaxError"},
            0,
        ),
    ],
)
def test_outcomes_are_counted(lines, passed, failed, missing):
    found = summary(lines)
    assert (found["passed"], found["failed"], found["not_reached"]) == (passed, failed, missing)
