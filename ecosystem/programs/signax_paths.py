"""signax: signatures and log signatures of paths, and a gradient through them."""

import jax
import jax.numpy as jnp
import signax

PACKAGES = ("signax", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    paths = jnp.cumsum(0.1 * jax.random.normal(jax.random.key(0), (16, 40, 3)), axis=1)
    goal = signax.signature(jnp.flip(paths, axis=1), depth=3)

    @jax.jit
    def step(paths):
        def loss(paths):
            logs = signax.logsignature(paths, depth=3)
            return jnp.mean((signax.signature(paths, depth=3) - goal) ** 2) + jnp.mean(logs**2)

        value, slope = jax.value_and_grad(loss)(paths)
        return paths - 0.5 * slope, value

    return step, paths
