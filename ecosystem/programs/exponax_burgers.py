"""exponax: a Burgers equation in two dimensions by exponential time differencing, and its initial state fitted."""

import exponax as ex
import jax
import jax.numpy as jnp

PACKAGES = ("exponax", "equinox", "jaxtyping", "wadler-lindig", "matplotlib")


def setup():
    burgers = ex.stepper.Burgers(2, 1.0, 24, 0.01, diffusivity=0.02)
    start = ex.ic.RandomTruncatedFourierSeries(2, cutoff=4)(24, key=jax.random.key(0))
    start = 0.5 * jnp.concatenate([start, -start])
    aim = ex.repeat(burgers, 5)(0.8 * start)

    def loss(state):
        return jnp.sum((ex.repeat(burgers, 5)(state) - aim) ** 2) + 1e-2 * jnp.mean(ex.derivative(state, 1.0) ** 2)

    @jax.jit
    def step(state):
        value, slope = jax.value_and_grad(loss)(state)
        path = ex.rollout(burgers, 4)(state)
        return state - 0.02 * slope, value + ex.metrics.nRMSE(path[-1], aim)

    return step, start
