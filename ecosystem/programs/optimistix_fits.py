"""optimistix: a curve fitted by Levenberg-Marquardt, a root by Newton, a minimum by BFGS; the fit differentiated."""

import jax
import jax.numpy as jnp
import optimistix as optx

PACKAGES = ("optimistix", "lineax", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    t = jnp.linspace(0, 2, 20)

    def residual(p, y):
        return p[0] * jnp.exp(-p[1] * t) - y

    def rosenbrock(z, args):
        return jnp.sum((1 - z[:-1]) ** 2 + 100 * (z[1:] - z[:-1] ** 2) ** 2)

    def fitted(y):
        return optx.least_squares(residual, optx.LevenbergMarquardt(1e-6, 1e-6), jnp.array([1.0, 1.0]), args=y).value

    @jax.jit
    def step(c):
        y = (2 + 0.01 * c) * jnp.exp(-1.3 * t)
        p, slope = fitted(y), jax.grad(lambda y: fitted(y)[1])(y)
        root = optx.root_find(lambda x, a: x**3 - a, optx.Newton(1e-6, 1e-6), jnp.float32(1.5), args=p[0]).value
        low = optx.minimise(rosenbrock, optx.BFGS(1e-6, 1e-6), jnp.zeros(3), max_steps=400, throw=False).value
        return c + 1, p.sum() + root + low.sum() + slope.sum()

    return step, jnp.float32(0)
