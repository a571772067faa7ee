"""sympy2jax: the numbers in a symbolic formula, fitted to data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy
import sympy2jax

PACKAGES = ("sympy2jax", "sympy", "mpmath", "equinox", "jaxtyping")


def setup():
    t = sympy.symbols("t")
    formula = sympy2jax.SymbolicModule(1.5 * sympy.exp(-0.5 * t) * sympy.cos(2.2 * t) + 0.1 * t**2)
    times = jnp.linspace(0, 4, 100)
    seen = 2.0 * jnp.exp(-0.7 * times) * jnp.cos(2.0 * times)

    def loss(model):
        return ((jax.vmap(lambda x: model(t=x))(times) - seen) ** 2).mean()

    @eqx.filter_jit
    def step(model):
        value, slope = eqx.filter_value_and_grad(loss)(model)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -0.002 * g, slope)), value

    return step, formula
