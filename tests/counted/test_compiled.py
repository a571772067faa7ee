"""Chains and public functions on sizes that values decide, as compiled programs: a sample of what others run on the host."""

import pytest

from tests.counted import sweep
from tests.counted.chains import differences, drawn


@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(i, marks=pytest.mark.slow) for i in range(2, 100)]])
def test_a_compiled_chain(seed):
    assert differences(drawn(seed)) == []


@pytest.mark.parametrize(
    "name", ["numpy.negative", *[pytest.param(n, marks=pytest.mark.slow) for n in sweep.functions()]]
)
@pytest.mark.filterwarnings("ignore")
def test_no_compiled_function_is_wrong(name):
    found = sweep.outcome_together(name)
    assert not {form: v for form, v in found.items() if v.startswith("wrong")}


def test_the_sweep_finds_what_is_wrong_beside_other_forms(monkeypatch):
    """Without the fills of masking, sums of all elements are wrong: the sweep of all forms in one program tells."""
    from gradix._api.counted.masking import Sizes

    monkeypatch.setattr(Sizes, "filled", lambda S, x, *_: x)
    assert sweep.kind_of(sweep.outcome_together("scipy.special.logsumexp", {"some": sweep.MASKS["some"]})) == "wrong"
