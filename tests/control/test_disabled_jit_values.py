"""Control flow under `disable_jit`: bodies get arrays, so that none of them changes what the caller gave."""

import numpy as np
import pytest

import gradix
from gradix import lax


def grown(x):
    x += 1
    return x


def both(i, x):
    x += 1
    return x


LOOPS = {
    "while_loop": lambda a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, grown(c[1])), (np.array(0), a))[1],
    "fori_loop": lambda a: lax.fori_loop(0, 3, both, a),
    "scan": lambda a: lax.scan(lambda c, x: (both(x, c), x), a, np.ones(3))[0],
    "cond": lambda a: lax.cond(True, grown, lambda x: x, a),
    "switch": lambda a: lax.switch(1, [lambda x: x, grown], a),
    "switch of one": lambda a: lax.switch(0, [grown], a),
    "map": lambda a: lax.map(grown, a[None])[0],
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_callers_array_stays_and_results_are_arrays(name):
    a = np.array([1.0], np.float32)
    with gradix.disable_jit():
        found = LOOPS[name](a)
    assert a.tolist() == [1.0]
    assert isinstance(found, gradix.Array) and found.tolist() == gradix.jit(LOOPS[name])(a).tolist()
