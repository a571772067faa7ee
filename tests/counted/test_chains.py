"""Drawn chains of operations: values and gradients, in both orders, are those of the true elements."""

import pytest

import gradix
from gradix._core.aval import ShapedArray
from gradix._ops.basis import unbroadcast
from gradix.errors import InconclusiveDimensionOperation
from tests.counted.chains import differences, differences_within, drawn
from tests.counted.on_host import on_host


@pytest.fixture(scope="module", autouse=True)
def _on_host():
    with on_host():
        yield


# the last two have a size in two forms, which are one by its bounds; and a size that is bounded by one which bounds others
FIRST = [*range(25), 860, 7424]


@pytest.mark.parametrize(
    "seed", [*FIRST, *[pytest.param(i, marks=pytest.mark.slow) for i in range(25, 1000) if i not in FIRST]]
)
def test_a_chain(seed):
    assert differences(drawn(seed)) == []


@pytest.mark.parametrize(
    "seed", [10_000, 10_003, *[pytest.param(i, marks=pytest.mark.slow) for i in range(10_004, 10_200)]]
)
def test_a_chain_within_other_programs(seed):
    assert differences_within(drawn(seed)) == []


def test_cotangents_of_sizes_that_are_not_known_to_be_equal_are_refused():
    """Such a cotangent was summed as if its axis had been stretched."""
    have, want = gradix.export.symbolic_shape("a, b")
    with pytest.raises(InconclusiveDimensionOperation, match=r"not known to be one size\. Take .* outside of jit"):
        gradix.eval_shape(
            lambda x: unbroadcast(x, ShapedArray((want,), x.dtype)), gradix.ShapeDtypeStruct((have,), "float32")
        )


def test_sizes_of_many_extrema_are_bounded_soon():
    """The cases of a size that is the larger of others, which are the larger of others, double with each."""
    steps = ["trimmed", "differences", "ends", "checkpoint", "rows of pairs"]
    assert differences(drawn(0)._replace(steps=steps)) == []


@pytest.mark.parametrize(
    "steps", [["apart", "every third of a part"], ["every second from the end", "padded by its sum"]]
)
def test_strides_and_paddings_of_nothing(steps):
    for end in ("sum", "norm"):
        assert differences(drawn(3)._replace(steps=steps, end=end)) == []


def test_chains_find_what_is_not_masked(monkeypatch):
    """Without the fills of masking, chains are wrong: they would tell."""
    from gradix._api.counted.masking import Sizes

    monkeypatch.setattr(Sizes, "filled", lambda S, x, *_: x)
    assert any(differences(drawn(seed)) for seed in range(40))
    assert any(differences_within(drawn(seed)) for seed in range(10_000, 10_010))
