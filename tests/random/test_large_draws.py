"""Draws large enough for vectorized loops, from keys that are made in the same program: compiled as on the host."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import random

SHAPE = (40, 40)
DRAWS = {
    "uniform": lambda k: random.uniform(k, SHAPE),
    "normal": lambda k: random.normal(k, SHAPE),
    "gamma": lambda k: random.gamma(k, 2.0, SHAPE),
    "binomial": lambda k: random.binomial(k, 9, 0.3, SHAPE),
    "poisson": lambda k: random.poisson(k, 3.0, SHAPE),
    "truncated_normal": lambda k: random.truncated_normal(k, -1, 1, SHAPE),
    "randint": lambda k: random.randint(k, SHAPE, 0, 9),
    "categorical": lambda k: random.categorical(k, jnp.zeros(SHAPE)),
    "permutation": lambda k: random.permutation(k, 1600),
}


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_new_keys(name, impl):
    """The keys are split, folded and drawn from in one program; a function of the results follows in the same loop."""

    def drawn(k):
        return jnp.sqrt(1 + abs(DRAWS[name](random.split(random.fold_in(k, 1))[1])))

    key = random.key(3, impl=impl)
    with gradix.disable_jit():
        wanted = drawn(key)
    np.testing.assert_allclose(gradix.jit(drawn)(key), wanted, rtol=2e-6)


def test_one_number_of_each_of_many_keys():
    def one(k):
        for i in range(3):
            k = random.fold_in(k, i)
        return jnp.exp(random.uniform(random.split(k)[0]) + random.uniform(random.split(k)[1]))

    keys = random.split(random.key(3), 1600)
    found = gradix.jit(gradix.vmap(one))(keys)
    np.testing.assert_allclose(found[:4], [one(k) for k in keys[:4]], rtol=2e-6)


def test_keys_that_random_numbers_make():
    def one(k):
        return jnp.exp(random.normal(random.fold_in(k, random.bits(k))) + random.normal(random.key(random.bits(k))))

    keys = random.split(random.key(3), 1600)
    np.testing.assert_allclose(gradix.jit(gradix.vmap(one))(keys)[:4], [one(k) for k in keys[:4]], rtol=2e-6)


def test_a_loop_that_splits_its_key():
    def body(key, _):
        key, sub = random.split(key)
        return key, jnp.exp(random.normal(random.fold_in(sub, 1)))

    found = gradix.jit(lambda k: gradix.lax.scan(body, k, None, 300)[1])(random.key(3))
    key, wanted = random.key(3), []
    for _ in range(4):
        key, drawn = body(key, None)
        wanted.append(drawn)
    np.testing.assert_allclose(found[:4], wanted, rtol=2e-6)
