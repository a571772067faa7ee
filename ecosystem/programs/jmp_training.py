"""jmp: training in half precision, whose loss is scaled as the gradients are finite or not."""

import jax
import jax.numpy as jnp
import jmp

PACKAGES = ("jmp",)
TOLERANCE = 2e-2


def setup():
    policy = jmp.get_policy("params=float32,compute=float16,output=float32")
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (64, 8))
    y = jnp.sin(x.sum(1))
    params = {"in": 0.3 * jax.random.normal(keys[1], (8, 32)), "out": 0.3 * jax.random.normal(keys[2], (32,))}

    @jax.jit
    def step(state):
        params, scale = state

        def loss(params):
            p, a = policy.cast_to_compute((params, x))
            found = policy.cast_to_output(jnp.tanh(a @ p["in"]) @ p["out"])
            value = ((found - y) ** 2).mean()
            return scale.scale(value), value

        slope, value = jax.grad(loss, has_aux=True)(params)
        slope = scale.unscale(slope)
        finite = jmp.all_finite(slope)
        new = jax.tree.map(lambda a, b: a - 0.05 * b, params, slope)
        return (jmp.select_tree(finite, new, params), scale.adjust(finite)), value

    return step, (params, jmp.DynamicLossScale(jnp.float32(2.0**20), period=10))
