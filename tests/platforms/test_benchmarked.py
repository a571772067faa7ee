"""Every rewrite for speed has a program in the benchmarks that takes it, so that a reason that is lost is seen.

The same programs give the same results without it.
"""

import numpy as np
import pytest

import gradix
from benchmarks import rewrites

pytestmark = pytest.mark.rewritten

ONE_CORE = {"divided_convolutions"}  # asks for several cores


@pytest.mark.parametrize("name", rewrites.names())
def test_a_program_takes_it(name):
    f, args = rewrites.PROGRAMS[name]
    facts = gradix.jit(lambda *args: f(*args)).lower(*args)._module.facts
    assert rewrites.is_taken(name, facts) or name in ONE_CORE and rewrites.cores() == 1


@pytest.mark.parametrize("name", rewrites.names())
def test_its_results_are_those_without_it(name):
    f, args = rewrites.PROGRAMS[name]
    found = {text: run(f, args, text) for text in ("all", f"all,-{name}")}
    for x, y in zip(*found.values(), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        if x.dtype.kind in "fc":
            tolerance = 2e-3 if x.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(y).max())))
        else:
            np.testing.assert_array_equal(x, y)


def run(f, args, selection: str) -> list[np.ndarray]:
    gradix.config.update("gradix_rewrites", selection)
    try:
        return [np.asarray(leaf) for leaf in gradix.tree.leaves(gradix.jit(lambda *args: f(*args))(*args))]
    finally:
        gradix.config.update("gradix_rewrites", "all")


def test_no_program_is_of_a_rewrite_that_is_gone():
    assert set(rewrites.PROGRAMS) == set(rewrites.names())
