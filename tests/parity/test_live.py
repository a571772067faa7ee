"""Gradix against JAX itself, both in this process: slower than the recorded form, and needs JAX installed."""

import pytest

from tests.parity.cases import chunk_cases, chunks, run_case
from tests.parity.differences import failure
from tests.parity.namespace import Namespace, target

pytest.importorskip("jax")
pytestmark = [pytest.mark.slow, pytest.mark.parity]


@pytest.mark.parametrize("group,number", chunks(), ids=lambda part: str(part))
def test_same_as_jax(group, number):
    ours, theirs, cases = target(), Namespace("jax"), chunk_cases(group, number)
    reports = [failure(group, case, run_case(group, case, ours), run_case(group, case, theirs)) for case in cases]
    failures = [report for report in reports if report]
    assert not failures, f"{len(failures)} cases differ\n" + "\n".join(failures)
