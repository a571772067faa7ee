"""matfree: log determinants and diagonals of large matrices from products with vectors, and a gradient."""

import jax
import jax.numpy as jnp
from matfree import decomp, funm, stochtrace

PACKAGES = ("matfree",)


def setup():
    size = 64
    root = jax.random.normal(jax.random.key(0), (size, size)) / 8
    matrix = root @ root.T + jnp.eye(size)
    sampler = stochtrace.sampler_signs(jnp.ones(size), num=16)
    integrand = funm.monte_carlo_funm_sym_logdet(decomp.tridiag_sym(12))
    logdet = stochtrace.estimator_monte_carlo(integrand, sampler=sampler)
    diagonal = stochtrace.estimator_monte_carlo(stochtrace.monte_carlo_diagonal(), sampler=sampler)

    @jax.jit
    def step(carry):
        scale, key = carry
        key, first, second = jax.random.split(key, 3)
        value, slope = jax.value_and_grad(lambda s: logdet(lambda v: s * (matrix @ v), first))(scale)
        found = diagonal(lambda v: matrix @ v, second)
        return (scale + 1e-3 * slope, key), value + found.sum()

    return step, (jnp.float32(1), jax.random.key(1))
