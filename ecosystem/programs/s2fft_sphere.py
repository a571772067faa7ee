"""s2fft: harmonic transforms on the sphere, there and back, with a gradient."""

import jax
import jax.numpy as jnp
import s2fft

PACKAGES = ("s2fft",)
STEPS = 20


def setup():
    limit = 16
    parts = jax.random.normal(jax.random.key(0), (2, limit, 2 * limit - 1))
    ell = jnp.arange(limit)[:, None]
    inside = jnp.abs(jnp.arange(2 * limit - 1) - limit + 1) <= ell
    start = jnp.where(inside, parts[0] + 1j * parts[1], 0) / (1 + ell)
    goal = s2fft.inverse(start, limit, method="jax")

    @jax.jit
    def step(flm):
        def loss(flm):
            return jnp.mean(jnp.abs(s2fft.inverse(flm, limit, method="jax") - goal) ** 2)

        value, slope = jax.value_and_grad(loss)(flm)
        again = s2fft.forward(goal, limit, method="jax")
        return flm - 0.5 * jnp.conj(slope), value + jnp.abs(again).mean()

    return step, 0.5 * start
