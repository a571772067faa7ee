"""What the suite promises of itself."""
import random
import zlib

import hypothesis
import numpy as np
import pytest

RNG, STATE, OWN = np.random.default_rng(0), np.random.RandomState(0), random.Random(0)


@pytest.mark.parametrize("again", range(2))
def test_the_numbers_a_test_draws_depend_on_its_name_alone(request, again):
    seed = zlib.crc32(request.node.nodeid.encode())
    assert RNG.random(9).tolist() == np.random.default_rng(seed).random(9).tolist()
    fresh = np.random.RandomState(seed).random_sample(9).tolist()
    assert STATE.random_sample(9).tolist() == np.random.random_sample(9).tolist() == fresh
    fresh = random.Random(seed).random()
    assert OWN.random() == random.random() == fresh


def test_drawn_programs_are_the_same_in_every_quick_run():
    quick, full = map(hypothesis.settings.get_profile, ("quick", "full"))
    assert (quick.derandomize, quick.database, full.derandomize) == (True, None, False)
    assert quick.deadline is None and full.deadline is None
