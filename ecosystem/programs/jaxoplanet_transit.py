"""jaxoplanet: the light curve of a transit with limb darkening, fitted by gradients."""

import jax
import jax.numpy as jnp
from jaxoplanet.light_curves import limb_dark_light_curve
from jaxoplanet.orbits.keplerian import Body, Central, System

PACKAGES = ("jaxoplanet", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    times = jnp.linspace(-0.1, 0.1, 200)

    def curve(p):
        star = Central(mass=1.0, radius=1.0)
        system = System(star).add_body(
            Body(period=3.0, radius=p[0], impact_param=p[1], eccentricity=0.1, omega_peri=0.3)
        )
        return limb_dark_light_curve(system, p[2:])(times)[:, 0]

    goal = curve(jnp.array([0.1, 0.3, 0.2, 0.3]))

    @jax.jit
    def step(p):
        value, slope = jax.value_and_grad(lambda p: 1e4 * jnp.mean((curve(p) - goal) ** 2))(p)
        return p - 1e-4 * slope, value

    return step, jnp.array([0.12, 0.25, 0.3, 0.2])
