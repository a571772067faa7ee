"""haiku: a residual network with batch norm, its state, and dropout."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax

PACKAGES = ("dm-haiku", "jmp", "tabulate", "optax", "chex", "toolz")


def network(images, is_training):
    x = hk.Conv2D(8, 3)(images)
    for i in range(2):
        y = hk.BatchNorm(True, True, 0.9, name=f"norm_{i}")(x, is_training)
        x = x + hk.Conv2D(8, 3, name=f"conv_{i}")(jax.nn.relu(y))
    x = hk.dropout(hk.next_rng_key(), 0.1, x) if is_training else x
    return hk.Linear(10)(x.mean((1, 2)))


def setup():
    model = hk.transform_with_state(network)
    key = jax.random.PRNGKey(0)
    images = jax.random.normal(key, (16, 12, 12, 3))
    labels = jnp.arange(16) % 10
    params, state = model.init(key, images, True)
    optimizer = optax.adam(3e-3)

    def loss(params, state, key):
        logits, state = model.apply(params, state, key, images, True)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), state

    @jax.jit
    def step(everything):
        params, state, opt, key = everything
        key, now = jax.random.split(key)
        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, now)
        updates, opt = optimizer.update(grads, opt)
        return (optax.apply_updates(params, updates), state, opt, key), value

    return step, (params, state, optimizer.init(params), key)
