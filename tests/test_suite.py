"""What the suite promises of itself."""
import itertools
import os
import random
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import covering

ROOT = Path(__file__).parents[1]
RNG, STATE, OWN = np.random.default_rng(0), np.random.RandomState(0), random.Random(0)


@pytest.mark.parametrize("again", range(2))
def test_the_numbers_a_test_draws_depend_on_its_name_alone(request, again):
    seed = zlib.crc32(request.node.nodeid.encode())
    assert RNG.random(9).tolist() == np.random.default_rng(seed).random(9).tolist()
    fresh = np.random.RandomState(seed).random_sample(9).tolist()
    assert STATE.random_sample(9).tolist() == np.random.random_sample(9).tolist() == fresh
    fresh = random.Random(seed).random()
    assert OWN.random() == random.random() == fresh


@pytest.mark.parametrize("where", [{}, {"CI": "true"}], ids=["here", "CI"])
def test_drawn_programs_are_the_same_in_every_quick_run(where):
    """Also under continuous integration, whose variable changes the defaults of hypothesis."""
    program = textwrap.dedent("""
        import hypothesis, tests.conftest
        for name in "quick", "full":
            profile = hypothesis.settings.get_profile(name)
            print(name, profile.derandomize, profile.deadline, profile.database is None)
    """)
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")} | where
    ran = subprocess.run([sys.executable, "-c", program], env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    quick, full = ran.stdout.splitlines()
    assert quick == "quick True None True" and full.startswith("full False None")


class Drawn:
    """A test with parameters, as `covering` sees it."""

    def __init__(self, **params):
        self.callspec = SimpleNamespace(params=params)

    def iter_markers(self, name):
        assert name == "parametrize"
        return [pytest.mark.parametrize("shape, axis", []).mark, pytest.mark.parametrize("kind", []).mark]


def test_a_sample_meets_every_row_and_every_pair_of_rows():
    shapes, kinds = [((3, 4), 0), ((3, 4), 1), ((5,), 0)], ["a", "b"]
    tests = [Drawn(shape=shape, axis=axis, kind=kind) for (shape, axis), kind in itertools.product(shapes, kinds)]
    chosen = covering(tests, 1)
    assert len(chosen) == 3 and chosen == covering(tests, 1)
    assert {(t.callspec.params["shape"], t.callspec.params["axis"]) for t in chosen} == set(shapes)
    assert {t.callspec.params["kind"] for t in chosen} == set(kinds)
    assert set(covering(tests, 2)) == set(tests)
