"""traceax: the trace of a kernel's matrix by random vectors, and the kernel's length by its gradient."""

import jax
import jax.numpy as jnp
import lineax as lx
import traceax

PACKAGES = ("traceax", "lineax", "equinox", "jaxtyping")


def setup():
    points = jnp.linspace(0, 1, 64)
    estimators = traceax.HutchinsonEstimator(), traceax.HutchPlusPlusEstimator(), traceax.XTraceEstimator()

    def loss(p, key):
        kernel = jnp.exp(-(((points[:, None] - points) / jnp.exp(p)) ** 2)) + 0.1 * jnp.eye(64)
        squared = lx.MatrixLinearOperator(kernel @ kernel, lx.positive_semidefinite_tag)
        found = [e.estimate(key, squared, 12)[0] for e in estimators]
        return sum(found) / 3000

    @jax.jit
    def step(state):
        p, key = state
        key, own = jax.random.split(key)
        value, slope = jax.value_and_grad(loss)(p, own)
        return (p - 0.05 * slope, key), value

    return step, (jnp.float32(-1.5), jax.random.key(0))
