"""orthax: orthogonal series evaluated, multiplied, integrated, differentiated and fitted."""

import jax
import jax.numpy as jnp
import orthax

PACKAGES = ("orthax", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    x, w = orthax.legendre.leggauss(32)
    aim = jnp.exp(x) * jnp.sin(3 * x)

    def loss(c):
        fit = orthax.legendre.legval(x, c)
        slope = orthax.chebyshev.chebval(x, orthax.chebyshev.chebder(c))
        return jnp.sum(w * (fit - aim) ** 2) + 1e-3 * jnp.sum(w * slope**2)

    @jax.jit
    def step(c):
        value, slope = jax.value_and_grad(loss)(c)
        product = orthax.legendre.legmul(c, orthax.legendre.legint(c))
        fitted = orthax.hermite.hermfit(x, aim, 5)
        return c - 0.2 * slope, value + 1e-2 * (product.sum() + fitted.sum())

    return step, jnp.zeros(8)
