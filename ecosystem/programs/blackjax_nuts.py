"""blackjax: window adaptation and NUTS on a correlated density, under scan."""

import blackjax
import jax
import jax.numpy as jnp

PACKAGES = ("blackjax", "optax", "jaxopt", "fastprogress", "chex", "toolz", "fastcore")
STEPS = 3


def setup():
    precision = jnp.array([[2.0, 0.8], [0.8, 1.0]])

    def logdensity(x):
        return -0.5 * x @ precision @ x

    @jax.jit
    def step(key):
        key, tuned, sampled = jax.random.split(key, 3)
        warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
        (state, parameters), _ = warmup.run(tuned, jnp.ones(2), num_steps=100)
        kernel = blackjax.nuts(logdensity, **parameters)

        def one(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.acceptance_rate)

        _, (positions, rates) = jax.lax.scan(one, state, jax.random.split(sampled, 100))
        return key, positions.mean() + rates.mean()

    return step, jax.random.key(0)
