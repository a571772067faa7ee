"""quadax: integrals by adaptive and fixed rules, of a peak, over the half line, and differentiated."""

import jax
import jax.numpy as jnp
import quadax

PACKAGES = ("quadax", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    def peak(x, width):
        return 1 / (1 + ((x - 0.3) / width) ** 2)

    @jax.jit
    def step(width):
        def area(width):
            return quadax.quadgk(peak, jnp.array([0.0, 1.0]), args=(width,), epsabs=1e-5, epsrel=1e-5)[0]

        value, slope = jax.value_and_grad(area)(width)
        tail, _ = quadax.quadgk(lambda x: jnp.exp(-x * x / width), jnp.array([0.0, jnp.inf]), epsabs=1e-4, epsrel=1e-4)
        rough, _ = quadax.romberg(lambda x: jnp.sin(3 * x), jnp.array([0.0, 1.0]), epsabs=1e-4, epsrel=1e-4)
        return width * 0.97, value + 0.01 * slope + tail + rough

    return step, jnp.float32(0.2)
