"""jaxmarl: agents that spread over landmarks under random actions, many worlds at a time."""

import jax
import jax.numpy as jnp
import jaxmarl

PACKAGES = ("jaxmarl", "safetensors", "flax", "chex", "toolz", "gymnax", "matplotlib", "pillow", "jaxtyping", "absl-py")


def setup():
    env = jaxmarl.make("MPE_simple_spread_v3")
    worlds = 64

    @jax.jit
    def step(carry):
        state, key = carry
        key, drawn, moved = jax.random.split(key, 3)
        drawn = jax.random.split(drawn, env.num_agents)
        action = {a: jax.random.randint(k, (worlds,), 0, 5) for a, k in zip(env.agents, drawn)}
        seen, state, reward, _, _ = jax.vmap(env.step)(jax.random.split(moved, worlds), state, action)
        return (state, key), sum(jnp.mean(r) for r in reward.values()) + jnp.mean(seen[env.agents[0]])

    _, state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), worlds))
    return step, (state, jax.random.key(1))
