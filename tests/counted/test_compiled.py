"""Chains and public functions on sizes that values decide, as compiled programs: a sample of what others run on the host."""

import pytest

from tests.counted import sweep
from tests.counted.chains import differences, drawn


@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(i, marks=pytest.mark.slow) for i in range(2, 100)]])
def test_a_compiled_chain(seed):
    assert differences(drawn(seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sweep.functions()[::24])
@pytest.mark.filterwarnings("ignore")
def test_no_compiled_function_is_wrong(name):
    found = sweep.outcome(name, {k: sweep.MASKS[k] for k in ("some", "none")})
    assert not {form: v for form, v in found.items() if v.startswith("wrong")}
