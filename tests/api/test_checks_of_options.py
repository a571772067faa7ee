"""The checks that options ask for, around every kind of signature of a jitted function: they combine with its options."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import random
from gradix._base import config
from gradix.errors import KeyReuseError

DEVICE = gradix.devices()[0]
OPTIONS = {
    "plain": {},
    "check": {"check": "index"},
    "donated": {"donate_argnums": 0},
    "on a device": {"device": DEVICE},
    "of open sizes": {"symbolic": "n"},
}


def given(x, name):
    return gradix.device_put(x, DEVICE) if name == "on a device" else x


@pytest.mark.parametrize("name", OPTIONS)
def test_nan_is_told(name):
    f = gradix.jit(lambda x: jnp.log(x) * 2, **OPTIONS[name])
    with config.Setting("jax_debug_nans", "")(True):
        for _ in range(5):  # code is generated for a frequent signature
            np.testing.assert_allclose(f(given(jnp.ones(3), name)), np.zeros(3))
        with pytest.raises(FloatingPointError, match="nan"):
            f(given(-jnp.ones(3), name))
    assert np.isnan(f(given(-jnp.ones(3), name))).all()


@pytest.mark.parametrize("name", [n for n in OPTIONS if n != "of open sizes"])
def test_a_key_that_is_used_twice_is_told(name):
    f = gradix.jit(lambda x, key: x + random.normal(key, x.shape), **OPTIONS[name])
    with config.Setting("jax_debug_key_reuse", "")(True):
        key = random.key(0)
        f(given(jnp.ones(3), name), key)
        with pytest.raises(KeyReuseError):
            f(given(jnp.ones(3), name), key)
        f(given(jnp.ones(3), name), random.key(1))


def test_both_at_once():
    f = gradix.jit(lambda x, key: jnp.log(x) + random.normal(key, x.shape))
    with config.Setting("jax_debug_key_reuse", "")(True), config.Setting("jax_debug_nans", "")(True):
        f(jnp.ones(3), random.key(0))
        with pytest.raises(FloatingPointError):
            f(-jnp.ones(3), random.key(1))
        key = random.key(2)
        f(jnp.ones(3), key)
        with pytest.raises(KeyReuseError):
            f(jnp.ones(3), key)
