"""quax: matrices of low rank in a network that knows nothing of them, and products with units."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import quax
from quax.examples import lora

PACKAGES = (
    "quax",
    "plum-dispatch",
    "beartype",
    "equinox",
    "jaxtyping",
    "wadler-lindig",
    "optax",
    "chex",
    "toolz",
    "rich",
)


def setup():
    keys = jax.random.split(jax.random.key(0), 3)
    mlp = lora.loraify(eqx.nn.MLP(4, 1, 64, 2, key=keys[0]), rank=2, key=keys[1])
    x = jax.random.normal(keys[2], (128, 4))
    y = jnp.sin(x.sum(-1, keepdims=True))
    optimizer = optax.adam(1e-2)

    def loss(mlp):
        return jnp.mean((jax.vmap(quax.quaxify(mlp))(x) - y) ** 2)

    @eqx.filter_jit
    def train(mlp, state):
        value, grads = eqx.filter_value_and_grad(loss)(mlp)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(mlp, updates), state, value

    def step(state):
        mlp, state, value = train(*state)
        return (mlp, state), value

    return step, (mlp, optimizer.init(eqx.filter(mlp, eqx.is_inexact_array)))
