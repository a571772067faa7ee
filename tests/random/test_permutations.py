"""Random order of arrays whose size is known when the program runs: the same as of arrays of that size."""

import numpy as np
import pytest

import gradix
from gradix import export, random


@pytest.mark.parametrize(
    "make", [lambda x: random.permutation(random.key(3), x), lambda x: random.permutation(random.key(3), x.shape[0])]
)
def test_open_sizes_give_the_same_order(make):
    """From 1626 elements on there are two rounds of sorting."""
    (n,) = export.symbolic_shape("n")
    exported = export.export(gradix.jit(make))(gradix.ShapeDtypeStruct((n,), "float32"))
    for size in (1, 5, 1700):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(exported.call(x), make(x))


def test_a_permutation_has_all_elements():
    assert sorted(random.permutation(random.key(0), 50).tolist()) == list(range(50))
    rows = np.arange(12).reshape(4, 3)
    assert sorted(map(tuple, random.permutation(random.key(1), rows).tolist())) == sorted(map(tuple, rows.tolist()))
