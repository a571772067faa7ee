"""Random integers that are drawn often."""

import numpy as np
import pytest

import gradix
from gradix import random
from gradix._base.bounded import BoundedCache
from gradix.random import draws, integers


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint16", "int64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (8,), (3, 100)])
@pytest.mark.parametrize("bounds", [(0, 9), (-3, 200), (5, 5), (7, -7), (0, 2**31 - 1)])
def test_integers_that_are_drawn_often_are_compiled_and_stay_the_same(bounds, shape, dtype, monkeypatch):
    monkeypatch.setattr(draws, "COMPILE_AFTER", 3)
    monkeypatch.setattr(integers, "_counts", BoundedCache(4096))
    with gradix.enable_x64(dtype == "int64"):
        key = random.key(3)
        first, *others = [random.randint(key, shape, *bounds, dtype=dtype) for _ in range(5)]
        compiled = others[-1]._host is None
        for x in others:
            assert x.aval == first.aval
            np.testing.assert_array_equal(x, first)
    assert compiled is (dtype in ("int32", "uint32", "int64"))
