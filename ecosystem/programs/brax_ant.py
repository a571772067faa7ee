"""brax: the ant walks under random torques, several bodies at a time, on the positional pipeline."""

import jax
import jax.numpy as jnp
from brax import envs

PACKAGES = (
    "brax",
    "mujoco",
    "mujoco-mjx",
    "flax",
    "optax",
    "ml-collections",
    "etils",
    "jaxopt",
    "trimesh",
    "dm-env",
    "mujoco-core",
    "mujoco-studio",
    "jinja2",
    "markupsafe",
    "glfw",
    "pyopengl",
)
STEPS = 20


def setup():
    env = envs.get_environment("ant", backend="positional")
    reset = jax.jit(jax.vmap(env.reset))

    @jax.jit
    def step(carry):
        state, key = carry
        key, drawn = jax.random.split(key)
        action = jax.random.uniform(drawn, (8, env.action_size), minval=-0.3, maxval=0.3)
        state = jax.vmap(env.step)(state, action)
        return (state, key), state.reward.mean() + 0.01 * jnp.abs(state.obs).mean()

    return step, (reset(jax.random.split(jax.random.key(0), 8)), jax.random.key(1))
