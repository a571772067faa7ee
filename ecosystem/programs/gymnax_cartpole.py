"""gymnax: cart poles, played by a linear policy, a thousand steps under scan and vmap."""

import gymnax
import jax
import jax.numpy as jnp

PACKAGES = (
    "gymnax",
    "flax",
    "chex",
    "optax",
    "toolz",
    "gymnasium",
    "farama-notifications",
    "matplotlib",
    "seaborn",
    "pandas",
    "pyyaml",
    "msgpack",
    "rich",
    "treescope",
    "orbax-checkpoint",
    "tensorstore",
    "cloudpickle",
)
STEPS = 20


def setup():
    env, params = gymnax.make("CartPole-v1")
    weights = jnp.array([0.1, 0.4, 1.0, 0.8])

    def play(key):
        first, key = jax.random.split(key)
        obs, state = env.reset(first, params)

        def move(carry, key):
            obs, state = carry
            obs, state, reward, done, *_ = env.step(key, state, (obs @ weights > 0).astype(jnp.int32), params)
            return (obs, state), (reward, done)

        _, (rewards, done) = jax.lax.scan(move, (obs, state), jax.random.split(key, 100))
        return rewards.sum() / (1 + done.sum())

    @jax.jit
    def step(key):
        key, now = jax.random.split(key)
        return key, jax.vmap(play)(jax.random.split(now, 16)).mean()

    return step, jax.random.key(0)
