"""Gradix against the recorded answers of JAX: values, dtypes, weak types, shapes, and errors raised or not."""

import pytest

from tests.parity.cases import GROUPS, MANY, chunk_cases, chunks, group_cases, run_case
from tests.parity.differences import failure
from tests.parity.namespace import target
from tests.parity.record import load

# What was recorded is so without the options of `make strict`.
pytestmark = [pytest.mark.x32, pytest.mark.promotes]

REPLAYED = ("reductions", "sorting", "manipulation", "wide", "linalg")
# Chains of transformations that take seconds to compile: of three chunks, two are for `make test-full`.
LONG = [part for part in chunks() if part[0] == "grids" and part[1] % 3 or part[0] in MANY and part[1] % 6]


@pytest.fixture(scope="module")
def ns():
    return target()


@pytest.mark.parametrize(
    "group,number", [pytest.param(*part, marks=[pytest.mark.slow] * (part in LONG)) for part in chunks()]
)
def test_same_as_recorded(ns, group, number):
    check_chunk(ns, group, number)


@pytest.mark.slow
@pytest.mark.parametrize("group,number", chunks(), ids=lambda part: str(part))
def test_same_as_recorded_compiled(ns, group, number):
    if ns.name != "gradix":
        pytest.skip("an option of gradix")
    ns.jax.config.update("gradix_eager", "xla")
    check_chunk(ns, group, number)


@pytest.mark.parametrize("group,number", [c for c in chunks() if c[0] in REPLAYED], ids=lambda part: str(part))
def test_same_as_recorded_replayed(ns, group, number, monkeypatch):
    """The second call of a function, by the code that the first wrote."""
    if ns.name != "gradix":
        pytest.skip("a way of gradix to run")
    monkeypatch.setattr("gradix._api.jit.replay._FIRST", 1)
    for case in chunk_cases(group, number):
        run_case(group, case, ns)
    check_chunk(ns, group, number)


def check_chunk(ns, group, number):
    answers, cases = load(group), chunk_cases(group, number)
    reports = [failure(group, case, run_case(group, case, ns), answers[case.id]) for case in cases]
    failures = [report for report in reports if report]
    assert not failures, f"{len(failures)} of {len(cases)} cases differ\n" + "\n".join(failures)


def test_there_are_thousands_of_cases(record_property):
    counts = {group: len(group_cases(group)) for group in GROUPS}
    record_property("cases", sum(counts.values()))
    print(sum(counts.values()), "parity cases:", counts)
    assert sum(counts.values()) >= 3000


@pytest.mark.parametrize("group", GROUPS)
def test_answers_belong_to_the_cases(group):
    assert set(load(group)) == {case.id for case in group_cases(group)}, "run: python -m tests.parity.record " + group
