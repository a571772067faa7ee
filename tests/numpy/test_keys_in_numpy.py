"""Functions of arrays that take random keys too."""

import gradix
import gradix.numpy as jnp


def test_keys_are_close_where_they_are_equal():
    keys = gradix.random.split(gradix.random.key(0), 3)
    assert jnp.isclose(keys, keys[1]).tolist() == [False, True, False]
    assert jnp.allclose(keys, keys)
    assert not gradix.jit(jnp.allclose)(keys, keys[0])
