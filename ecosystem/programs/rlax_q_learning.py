"""rlax: double Q-learning and V-trace targets over batches of trajectories."""

import jax
import jax.numpy as jnp
import rlax

PACKAGES = (
    "rlax",
    "chex",
    "distrax",
    "dm-env",
    "tfp-nightly",
    "toolz",
    "dm-tree",
    "decorator",
    "cloudpickle",
    "gast",
    "six",
    "wrapt",
)


def setup():
    keys = jax.random.split(jax.random.key(0), 4)
    states = jax.random.normal(keys[0], (32, 9, 5))
    actions = jax.random.randint(keys[1], (32, 8), 0, 3)
    rewards = jax.random.normal(keys[2], (32, 8))
    discounts = jnp.full((32, 8), 0.9)
    weights = jax.random.normal(keys[3], (5, 3)) * 0.1

    def loss(w):
        q = states @ w
        td = jax.vmap(jax.vmap(rlax.double_q_learning))(
            q[:, :-1], actions, rewards, discounts, jax.lax.stop_gradient(q[:, 1:]), q[:, 1:]
        )
        v = q.max(-1)
        trace = jax.vmap(rlax.vtrace_td_error_and_advantage)(
            v[:, :-1], v[:, 1:], rewards, discounts, jnp.ones_like(rewards)
        )
        returns = jax.vmap(rlax.lambda_returns, in_axes=(0, 0, 0, None))(rewards, discounts, v[:, 1:], 0.8)
        return (
            rlax.l2_loss(td).mean() + rlax.huber_loss(trace.errors).mean() + 0.01 * jnp.mean((returns - v[:, :-1]) ** 2)
        )

    @jax.jit
    def step(w):
        value, g = jax.value_and_grad(loss)(w)
        return w - 0.1 * g, value

    return step, weights
