"""lineax: systems solved by factorisations and by conjugate gradients, and differentiated."""

import jax
import jax.numpy as jnp
import lineax as lx

PACKAGES = ("lineax", "equinox", "jaxtyping", "wadler-lindig")


def setup():
    a = jax.random.normal(jax.random.key(0), (12, 12))
    spd = a @ a.T + 3 * jnp.eye(12)

    def solve(matrix, b):
        dense = lx.linear_solve(lx.MatrixLinearOperator(matrix), b, lx.LU()).value
        tagged = lx.MatrixLinearOperator(matrix, lx.positive_semidefinite_tag)
        return (
            dense
            + lx.linear_solve(tagged, b, lx.CG(1e-5, 1e-5)).value
            + lx.linear_solve(tagged, b, lx.Cholesky()).value
        )

    @jax.jit
    def step(b):
        value, g = jax.value_and_grad(lambda m: jnp.sum(jnp.tanh(solve(m, b))))(spd)
        return jnp.cos(solve(spd, b)) + g.sum(0), value

    return step, jnp.ones(12)
