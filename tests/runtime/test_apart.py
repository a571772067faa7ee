"""Eager operations beside a GPU, whose memory the host does not see: they run where their operands are.

The platform is the CPU, of which dispatch is told that it lies apart.
"""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._runtime import dispatch, policy, xla


@pytest.fixture
def apart(monkeypatch):
    monkeypatch.setattr(dispatch, "is_host_apart", lambda: True)
    monkeypatch.setattr(xla, "default_platform", lambda: "cuda_as_it_were")
    gradix.clear_caches()
    yield
    gradix.clear_caches()


def on_device(shape=(5,)):
    """Numbers of which the host has no copy."""
    x = gradix.jit(lambda: jnp.arange(float(np.prod(shape))).reshape(shape) + 1)()
    assert x._host is None
    return x


FUNCTIONS = {
    "unary": lambda x: jnp.sin(x),
    "binary": lambda x: x + x,
    "with a number": lambda x: 2 * x - 1,
    "reduction": lambda x: x.sum(),
    "replayed": lambda x: jnp.mean(x),
    "several results": lambda x: jnp.linalg.eigh(jnp.outer(x, x))[0],
    "gradient": lambda x: gradix.grad(lambda x: (jnp.tanh(x) ** 2).sum())(x),
    "mapped": lambda x: gradix.vmap(jnp.square)(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_stay_on_the_device(name, apart):
    x, f = on_device(), FUNCTIONS[name]
    for _ in range(20):  # a function is replayed from some call on
        out = f(x)
        assert out._host is None and x._host is None
    np.testing.assert_allclose(out, f(jnp.asarray(np.arange(5.0) + 1)), rtol=2e-3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_values_of_the_host_stay_there(name, apart):
    x = jnp.asarray(np.arange(5.0) + 1)
    for _ in range(20):
        assert FUNCTIONS[name](x)._buffer is None


def test_large_values_go_to_the_device(apart):
    x = jnp.asarray(np.ones(policy.APART_LIMIT, "f"))
    assert (x + 1)._host is None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_a_chosen_device(name, apart):
    """Placed operands, small and known to the host, or on the device alone."""
    device = gradix.devices()[0]
    f, plain = FUNCTIONS[name], jnp.asarray(np.arange(5.0) + 1)
    for x in (gradix.device_put(plain, device), gradix.device_put(on_device(), device)):
        for _ in range(3):
            out = f(x)
            assert out.devices() == {device}
            np.testing.assert_allclose(out, f(plain), rtol=2e-3)


def test_waiting_for_an_array_waits_for_its_buffer(monkeypatch):
    x, waited = gradix.device_put(np.ones(3), gradix.devices()[0]), []

    class Buffer:
        def block_until_ready(self):
            waited.append(self)

    x._buffer = Buffer()
    assert x._host is not None and x.block_until_ready() is x and len(waited) == 1
