"""The generators of XLA: the bits JAX gives for a state, and numbers without one."""

import numpy as np
import pytest

import gradix
from gradix import lax

STATE = np.arange(4, dtype="uint32")
KNOWN = {
    ("RNG_PHILOX", "uint32"): ([0, 1, 4, 3], [895509795, 3230209149, 3834998268]),
    ("RNG_DEFAULT", "uint8"): ([0, 1, 4, 3], [35, 125, 252]),
    ("RNG_THREE_FRY", "uint32"): ([0, 1, 5, 3], [2689575991, 2205648888, 150810639]),
    ("RNG_THREE_FRY", "uint16"): ([0, 1, 5, 3], [44087, 34808, 12303]),
}


@pytest.mark.parametrize("name, dtype", KNOWN)
def test_bits_of_a_state(name, dtype):
    algorithm = lax.RandomAlgorithm[name]
    draw = lambda key: lax.rng_bit_generator(key, (5,), dtype, algorithm)  # noqa: E731
    for run in (draw, gradix.jit(draw)):
        state, bits = run(STATE)
        assert (state.dtype, bits.dtype, bits.shape) == (np.uint32, dtype, (5,))
        assert (state.tolist(), bits[:3].tolist()) == KNOWN[name, dtype]


def test_the_next_state_draws_on():
    state, first = lax.rng_bit_generator(STATE, (4,))
    assert lax.rng_bit_generator(state, (4,))[1].tolist() != first.tolist()


def test_mapped_states_draw_from_the_first():
    keys = np.arange(8, dtype="uint32").reshape(2, 4)
    state, bits = gradix.vmap(lambda k: lax.rng_bit_generator(k, (2,)))(keys)
    assert bits.tolist() == [[895509795, 3230209149], [3834998268, 2007387529]]
    assert state.tolist() == [[0, 1, 3, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("key", [np.arange(2, dtype="uint32"), np.arange(4, dtype="int32"), np.zeros((2, 4), "uint32")])
def test_other_keys_raise(key):
    with pytest.raises(TypeError, match=r"uint32\[4\] or uint64\[2\]"):
        lax.rng_bit_generator(key, (2,))


def test_other_bits_raise():
    with pytest.raises(TypeError, match="float32"):
        lax.rng_bit_generator(STATE, (2,), "float32")


@pytest.mark.parametrize("run", [lambda f: f, gradix.jit], ids=["eager", "compiled"])
def test_numbers_without_a_state(run):
    def draws():
        return lax.rng_uniform(1.0, 3.0, (1000,)), lax.rng_uniform(1.0, 3.0, (1000,)), lax.rng_uniform(2, 9, (1000,))

    first, second, whole = map(np.asarray, run(draws)())
    assert (first >= 1).all() and (first < 3).all() and abs(first.mean() - 2) < 0.1
    assert (first != second).any()
    assert set(whole.tolist()) == set(range(2, 9))


def test_mapped_bounds():
    low = np.array([0.0, 10.0, 20.0], "f4")
    drawn = np.asarray(gradix.vmap(lambda a: lax.rng_uniform(a, np.float32(30), (50,)))(low))
    assert drawn.shape == (3, 50) and (drawn >= low[:, None]).all() and (drawn < 30).all()


def test_bounds_of_numbers_without_a_state():
    with pytest.raises(ValueError, match="scalars"):
        lax.rng_uniform(np.zeros(2, "f4"), np.float32(1), (3,))
    with pytest.raises(ValueError, match="identical dtypes"):
        lax.rng_uniform(0.0, 1, (3,))
