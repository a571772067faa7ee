"""Every rewrite for speed has a program in the benchmarks that takes it, so that a reason that is lost is seen."""
import pytest

import gradix
from benchmarks import rewrites

ONE_CORE = {"divided_convolutions"}     # asks for several cores


@pytest.mark.parametrize("name", rewrites.names())
def test_a_program_takes_it(name):
    f, args = rewrites.PROGRAMS[name]
    facts = gradix.jit(lambda *args: f(*args)).lower(*args)._module.facts
    assert rewrites.is_taken(name, facts) or name in ONE_CORE and rewrites.cores() == 1


def test_no_program_is_of_a_rewrite_that_is_gone():
    assert set(rewrites.PROGRAMS) == set(rewrites.names())
