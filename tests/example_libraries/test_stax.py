"""Layers: shapes told are shapes that come, results and parameters are JAX's, and a network learns."""

import numpy as np
import pytest

import gradix
from gradix import numpy as jnp, random
from gradix.example_libraries import optimizers, stax

IMAGES = np.random.RandomState(0).randn(2, 6, 6, 3).astype("f")
NETWORKS = {
    "dense": lambda s: s.serial(s.Flatten, s.Dense(4), s.Relu, s.Dense(2), s.LogSoftmax),
    "convolutions": lambda s: s.serial(
        s.Conv(4, (3, 3), (2, 2), "SAME"),
        s.BatchNorm(),
        s.Relu,
        s.MaxPool((2, 2)),
        s.AvgPool((2, 2), padding="SAME"),
        s.SumPool((1, 1)),
        s.Flatten,
        s.Dense(2),
    ),
    "transposed": lambda s: s.serial(s.ConvTranspose(4, (3, 3), (2, 2), "SAME"), s.Tanh),
    "parallel": lambda s: s.serial(s.FanOut(2), s.parallel(s.Conv(2, (1, 1)), s.Identity), s.FanInConcat(), s.Sigmoid),
    "sum": lambda s: s.serial(
        s.FanOut(2),
        s.parallel(s.serial(s.Conv(3, (1, 1)), s.Gelu), s.Selu),
        s.FanInSum,
        s.Softplus,
        s.Elu,
        s.LeakyRelu,
        s.Exp,
        s.Softmax,
    ),
    "dropout": lambda s: s.serial(s.Dropout(0.5), s.Flatten, s.Dense(3), s.Dropout(0.3)),
    "of the shape": lambda s: s.shape_dependent(lambda shape: s.serial(s.Flatten, s.Dense(shape[-1]))),
    "norm without offset": lambda s: s.BatchNorm(axis=(0, 1), center=False),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_jaxs(name):
    jax = pytest.importorskip("jax")
    from jax.example_libraries import stax as theirs

    (init, apply), (init_jax, apply_jax) = NETWORKS[name](stax), NETWORKS[name](theirs)
    shape, params = init(random.PRNGKey(1), IMAGES.shape)
    shape_jax, params_jax = init_jax(jax.random.PRNGKey(1), IMAGES.shape)
    assert tuple(shape) == tuple(map(int, shape_jax))
    for a, b in zip(gradix.tree.leaves(params), jax.tree.leaves(params_jax)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    out = apply(params, jnp.asarray(IMAGES, float), rng=random.PRNGKey(2))
    wanted = apply_jax(params_jax, jax.numpy.asarray(IMAGES, float), rng=jax.random.PRNGKey(2))
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
    assert out.shape == tuple(shape)


def test_an_open_batch_size_stays_open():
    init, _ = stax.serial(stax.Conv(4, (3, 3)), stax.MaxPool((2, 2), (2, 2)), stax.Flatten, stax.Dense(2))
    shape, _ = init(random.key(0), (-1, 6, 6, 3))
    assert shape == (-1, 2)


def test_a_network_learns():
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    x = jnp.linspace(-1, 1, 32)[:, None]
    opt = optimizers.adam(0.05)

    def loss(params):
        return ((apply(params, x) - jnp.sin(3 * x)) ** 2).mean()

    @gradix.jit
    def step(i, state):
        return opt.update_fn(i, gradix.grad(loss)(opt.params_fn(state)), state)

    state = opt.init_fn(init(random.key(0), (-1, 1))[1])
    for i in range(150):
        state = step(i, state)
    assert float(loss(opt.params_fn(state))) < 0.01


def test_dropout_needs_a_key():
    with pytest.raises(ValueError, match="rng"):
        stax.Dropout(0.5)[1]((), jnp.ones(3))
