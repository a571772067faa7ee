"""optax: a small network trained with a schedule, clipping and AdamW."""

import jax
import jax.numpy as jnp
import optax

PACKAGES = ("optax", "chex", "toolz")


def setup():
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (64, 8))
    y = jnp.sin(x.sum(1))
    params = {
        "w": jax.random.normal(keys[1], (8, 32)) * 0.3,
        "b": jnp.zeros(32),
        "v": jax.random.normal(keys[2], (32,)) * 0.1,
    }
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 200)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-3))

    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) @ p["v"] - y) ** 2)

    @jax.jit
    def step(state):
        params, opt = state
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt = optimizer.update(grads, opt, params)
        return (optax.apply_updates(params, updates), opt), value

    return step, (params, optimizer.init(params))
