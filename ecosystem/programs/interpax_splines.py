"""interpax: smooth interpolation in one and two dimensions, fitted to a curve by gradients."""

import interpax
import jax
import jax.numpy as jnp

PACKAGES = ("interpax", "jaxkd", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    knots, points = jnp.linspace(0, 1, 12), jnp.linspace(0.02, 0.98, 200)
    grid = jnp.sin(6 * knots)[:, None] * jnp.cos(4 * knots)

    def loss(values):
        spline = interpax.CubicSpline(knots, values, bc_type="natural", check=False)
        line = interpax.interp1d(points, knots, values, method="akima")
        plane = interpax.interp2d(points, points, knots, knots, grid * values, method="cubic")
        return jnp.mean((spline(points) - jnp.sin(6 * points)) ** 2 + (line - points) ** 2 + plane**2)

    @jax.jit
    def step(values):
        value, slope = jax.value_and_grad(loss)(values)
        return values - 0.5 * slope, value

    return step, jnp.ones(12)
