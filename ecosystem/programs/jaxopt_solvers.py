"""jaxopt: L-BFGS, projected gradient and a fixed point differentiated implicitly."""

import jax
import jax.numpy as jnp
import jaxopt

PACKAGES = ("jaxopt",)


def setup():
    x = jax.random.normal(jax.random.key(0), (40, 5))
    y = x @ jnp.arange(5.0) + 0.1

    def ridge(w, strength):
        return jnp.mean((x @ w - y) ** 2) + strength * jnp.sum(w**2)

    def fitted(strength):
        return jaxopt.LBFGS(ridge, maxiter=30, tol=1e-4).run(jnp.zeros(5), strength).params

    @jax.jit
    def step(strength):
        value, slope = jax.value_and_grad(lambda s: jnp.sum(fitted(s) ** 2))(strength)
        inside = (
            jaxopt.ProjectedGradient(lambda w: ridge(w, 0.0), jaxopt.projection.projection_simplex, maxiter=50)
            .run(jnp.ones(5) / 5)
            .params
        )
        fixed = (
            jaxopt.FixedPointIteration(lambda z, c: jnp.cos(z) * c, maxiter=60)
            .run(jnp.float32(0.5), strength + 0.9)
            .params
        )
        return strength * 0.99, value + inside @ jnp.arange(5.0) + fixed + 1e-3 * slope

    return step, jnp.float32(0.1)
