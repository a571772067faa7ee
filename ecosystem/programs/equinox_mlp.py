"""equinox: a model that is a tree, trained with filtered transformations; a batch norm with its state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

PACKAGES = ("equinox", "jaxtyping", "wadler-lindig", "optax", "chex", "toolz")


class Model(eqx.Module):
    mlp: eqx.nn.MLP
    norm: eqx.nn.LayerNorm
    scale: float = 0.5

    def __init__(self, key):
        self.mlp = eqx.nn.MLP(4, 1, 32, 2, activation=jax.nn.gelu, key=key)
        self.norm = eqx.nn.LayerNorm(4)

    def __call__(self, x):
        return self.scale * self.mlp(self.norm(x))[0]


def setup():
    key = jax.random.key(0)
    model = Model(key)
    x = jax.random.normal(key, (128, 4))
    y = jnp.prod(jnp.sin(x), -1)
    optimizer = optax.adam(3e-3)

    @eqx.filter_jit
    def step(state):
        model, opt = state
        value, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, opt = optimizer.update(grads, opt, eqx.filter(model, eqx.is_array))
        return (eqx.apply_updates(model, updates), opt), value

    return step, (model, optimizer.init(eqx.filter(model, eqx.is_array)))
