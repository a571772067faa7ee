"""pgx: random play of many games of Connect Four at a time, with automatic resets."""

import jax
import jax.numpy as jnp
import pgx
from pgx.experimental.wrappers import auto_reset

PACKAGES = ("pgx", "svgwrite", "typing_extensions")


def setup():
    env = pgx.make("connect_four")
    games = 128

    @jax.jit
    def step(carry):
        state, key = carry
        key, chosen, reset = jax.random.split(key, 3)
        logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
        action = jax.random.categorical(chosen, logits)
        state = jax.vmap(auto_reset(env.step, env.init))(state, action, jax.random.split(reset, games))
        return (state, key), state.rewards[:, 0].sum() + state.observation.sum()

    return step, (jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), games)), jax.random.key(1))
