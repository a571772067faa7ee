"""Gradix against JAX itself, both in this process: slower than the recorded form, and needs JAX installed."""

import pytest

from tests.parity.cases import chunk_cases, chunks, run_case
from tests.parity.namespace import Namespace, target
from tests.parity.outcome import difference

pytest.importorskip("jax")
pytestmark = [pytest.mark.slow, pytest.mark.parity]


@pytest.mark.parametrize("group,number", chunks(), ids=lambda part: str(part))
def test_same_as_jax(group, number):
    ours, theirs, failures = target(), Namespace("jax"), []
    for case in chunk_cases(group, number):
        reason = difference(run_case(group, case, ours), run_case(group, case, theirs), case)
        if reason:
            failures.append(f"{case.id}\n    {reason}")
    assert not failures, f"{len(failures)} cases differ\n" + "\n".join(failures)
