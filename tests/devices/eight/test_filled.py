"""Filled arrays lie where they are asked to."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding


@pytest.fixture
def divided():
    return NamedSharding(gradix.make_mesh((8,), ("x",)), P("x"))


def test_lax_full_and_full_like(divided):
    one = SingleDeviceSharding(gradix.devices()[3])
    for sharding in (divided, one):
        for x in (lax.full((8,), 2.0, sharding=sharding), lax.full_like(jnp.ones(8), 2.0, sharding=sharding)):
            assert x.sharding == sharding and np.array_equal(x, np.full(8, 2))
    key = gradix.random.key(0)
    assert lax.full_like(key, 0, shape=(8,), sharding=divided).sharding == divided


def test_full_like_lies_where_its_example_was_put(divided):
    x = gradix.device_put(jnp.ones(8), divided)
    assert lax.full_like(x, 2.0).sharding == divided
    assert lax.full_like(x, 2.0, shape=(4,)).sharding != divided
    assert lax.full_like(jnp.ones(8), 2.0).sharding == jnp.ones(8).sharding


def test_traced_arrays_lie_nowhere(divided):
    f = gradix.jit(lambda x: (lax.full((8,), 2.0, sharding=divided), lax.full_like(x, 2.0, sharding=divided)))
    assert all(np.array_equal(y, np.full(8, 2)) for y in f(jnp.ones(8)))


@pytest.mark.parametrize("make", [jnp.zeros, jnp.ones, jnp.empty, lambda *a, **k: jnp.full(*a, 2.0, **k), jnp.arange])
def test_one_of_device_and_out_sharding(make, divided):
    with pytest.raises(ValueError, match="Only one of device and out_sharding"):
        make(8, device=gradix.devices()[1], out_sharding=divided)
    assert make(8, device=divided).sharding == divided and make(8, out_sharding=divided).sharding == divided
