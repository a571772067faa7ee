"""cuthbert: a state-space model by Kalman filters, in turn and in parallel, smoothed, its likelihood climbed."""

import cuthbert
import jax
import jax.numpy as jnp
from cuthbert.gaussian import kalman

PACKAGES = ("cuthbert", "cuthbertlib", "numba", "llvmlite")


def setup():
    times = jnp.arange(24)
    seen = jnp.cumsum(0.3 * jax.random.normal(jax.random.key(0), (24, 1)), 0)

    def parts(p):
        def dynamics(inputs):
            return jnp.array([[1.0, 0.1], [0.0, 0.9]]), jnp.zeros(2), jnp.exp(p["move"]) * jnp.eye(2)

        def observation(inputs):
            return jnp.array([[1.0, 0.0]]), jnp.zeros(1), jnp.exp(p["see"]) * jnp.eye(1), seen[inputs]

        return dynamics, observation

    def filtered(p, parallel):
        dynamics, observation = parts(p)
        found = kalman.build_filter(jnp.zeros(2), jnp.eye(2), dynamics, observation)
        return cuthbert.filter(found, times, found.init_prepare(), parallel=parallel)

    def loss(p):
        return -filtered(p, False).log_normalizing_constant[-1] / 24

    @jax.jit
    def step(p):
        value, slope = jax.value_and_grad(loss)(p)
        states = filtered(p, True)
        smooth = cuthbert.smoother(kalman.build_smoother(parts(p)[0]), states, times)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, slope), value + smooth.mean.mean()

    return step, {"move": jnp.float32(-1), "see": jnp.float32(-1)}
