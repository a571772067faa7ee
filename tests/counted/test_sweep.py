"""Public functions over an axis whose size values decide: none is wrong, and what has no form that works is known."""

import pytest

from tests.counted import sweep

NAMES = sweep.functions()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if i % 16 == 5 else pytest.mark.slow) for i, n in enumerate(NAMES)]
)
@pytest.mark.filterwarnings("ignore")
def test_no_function_is_wrong(name):
    found = sweep.outcome(name)
    assert not {form: v for form, v in found.items() if v.startswith("wrong")}
