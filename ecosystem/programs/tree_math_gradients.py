"""tree-math: conjugate gradients on vectors that are trees."""

import jax
import jax.numpy as jnp
import tree_math as tm

PACKAGES = ("tree-math",)


def setup():
    matrix = jax.random.normal(jax.random.key(0), (20, 20))
    matrix = matrix @ matrix.T + 20 * jnp.eye(20)

    def apply(v):
        a, b = v.tree["a"], v.tree["b"]
        return tm.Vector({"a": matrix @ a + b.mean(), "b": 3 * b + a.mean()})

    @jax.jit
    def step(right):
        def body(_, carry):
            x, r, p = carry
            ap = apply(p)
            alpha = (r @ r) / (p @ ap + 1e-20)
            new = r - alpha * ap
            return x + alpha * p, new, new + ((new @ new) / (r @ r + 1e-20)) * p

        zero = 0 * right
        x, _, _ = jax.lax.fori_loop(0, 15, body, (zero, right, right))
        return 0.9 * right + 0.1 * x, jnp.sqrt(x @ x)

    return step, tm.Vector({"a": jnp.ones(20), "b": jnp.arange(5.0)})
