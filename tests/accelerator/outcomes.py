"""A plug-in of pytest that writes each outcome to a file as it comes, so that what has run is known when time is up."""

import json
import os

import pytest

FILE = os.environ.get("GRADIX_TEST_OUTCOMES")
LONGEST = 600  # characters of a reason


def _write(**line):
    if FILE and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _reason(report) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash is not None else str(report.longrepr))[:LONGEST]


def pytest_collection_finish(session):
    if session.items:
        _write(collected=len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    _write(collected=len(ids))


def pytest_collectreport(report):
    if report.failed:
        _write(test=report.nodeid, outcome="failed", reason=str(report.longrepr)[-LONGEST:], seconds=0.0)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        reason = {} if report.passed else {"reason": _reason(report)}
        _write(test=report.nodeid, outcome=report.outcome, seconds=round(report.duration, 3), **reason)
