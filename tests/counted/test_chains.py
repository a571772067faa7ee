"""Drawn chains of operations: values and gradients, in both orders, are those of the true elements."""
import numpy as np
import pytest

from tests.counted.chains import differences, drawn

X = np.array([0.3, -0.6, 0.9, -1.1, 0.45, 0.7], np.float32)
MASKS = [np.zeros(6, bool), np.ones(6, bool), X > 0.4, np.arange(6) == 2]


@pytest.mark.parametrize("seed", [*range(6), *[pytest.param(i, marks=pytest.mark.slow) for i in range(6, 200)]])
def test_a_chain(seed):
    steps, end = drawn(np.random.default_rng(seed))
    assert differences(steps, end, X, MASKS) == []
