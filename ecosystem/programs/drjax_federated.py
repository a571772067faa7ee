"""drjax: federated averaging by map and reduce over clients, differentiated through both."""

import drjax
import jax
import jax.numpy as jnp

PACKAGES = ("drjax", "absl-py")


def setup():
    x = jax.random.normal(jax.random.key(0), (6, 40, 5))
    y = jnp.einsum("nki,i->nk", x, jnp.arange(5.0)) + 0.1 * jax.random.normal(jax.random.key(1), (6, 40))

    def loss(w, data):
        return jnp.mean((data[0] @ w - data[1]) ** 2)

    @drjax.program(placements={"clients": 6})
    def averaged(w, rate, x, y):
        def own(start, data):
            w, rate = start
            for _ in range(3):
                w = w - rate * jax.grad(loss)(w, data)
            return w

        ws = drjax.map_fn(own, (drjax.broadcast((w, rate)), (x, y)))
        after = drjax.reduce_mean(ws)
        return after, drjax.reduce_mean(drjax.map_fn(loss, (drjax.broadcast(after), (x, y))))

    @jax.jit
    def step(state):
        w, rate = state
        (value, after), slope = jax.value_and_grad(lambda r: averaged(w, r, x, y)[::-1], has_aux=True)(rate)
        return (after, rate - 1e-4 * slope), value

    return step, (jnp.zeros(5), jnp.float32(0.02))
