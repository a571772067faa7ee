"""Drawn chains of operations: values and gradients, in both orders, are those of the true elements."""

import numpy as np
import pytest

from tests.counted.chains import MASKS, X, differences, drawn


@pytest.mark.parametrize("seed", [*range(6), *[pytest.param(i, marks=pytest.mark.slow) for i in range(6, 200)]])
def test_a_chain(seed):
    steps, end = drawn(np.random.default_rng(seed))
    assert differences(steps, end, X, MASKS) == []
