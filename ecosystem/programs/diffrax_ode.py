"""diffrax: a stiff and a chaotic system integrated adaptively, an SDE, and gradients through the solver."""

import diffrax
import jax
import jax.numpy as jnp

PACKAGES = ("diffrax", "optimistix", "lineax", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    def lotka(t, y, k):
        return jnp.stack([k[0] * y[0] - k[1] * y[0] * y[1], -k[2] * y[1] + k[3] * y[0] * y[1]])

    ts = jnp.linspace(0, 4, 9)
    rates = jnp.array([1.1, 0.4, 0.4, 0.1])

    def path(k):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lotka),
            diffrax.Tsit5(),
            0.0,
            4.0,
            0.05,
            jnp.array([10.0, 5.0]),
            args=k,
            saveat=diffrax.SaveAt(ts=ts),
            stepsize_controller=diffrax.PIDController(1e-5, 1e-5),
        ).ys

    goal = path(rates)

    @jax.jit
    def step(k):
        value, g = jax.value_and_grad(lambda k: jnp.mean((path(k) - goal) ** 2))(k)
        brownian = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jax.random.key(1))
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, a: -y), diffrax.ControlTerm(lambda t, y, a: 0.3, brownian)
        )
        noisy = diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.05, jnp.float32(1.0)).ys[0]
        return k - 1e-3 * g, value + noisy

    return step, rates * 1.1
