"""kernex: heat by a mapped stencil, a convolution, and a recurrence by a scanned one, fitted."""

import jax
import jax.numpy as jnp
import kernex as kex

PACKAGES = ("kernex",)


def setup():
    hot = jax.random.normal(jax.random.key(0), (24, 24))

    @kex.kmap(kernel_size=(3, 3), padding="same")
    def mean(x):
        return x.mean()

    @kex.kmap(kernel_size=(3, 3), relative=True, padding="same")
    def laplace(x):
        return x[1, 0] + x[-1, 0] + x[0, 1] + x[0, -1] - 4 * x[0, 0]

    @kex.kscan(kernel_size=(3,), padding=((1, 1),))
    def running(x):
        return 0.5 * x[0] + 0.4 * x[1] + 0.1 * x[2]

    def loss(rate):
        x = hot
        for _ in range(3):
            x = x + rate * laplace(x)
        return jnp.mean((x - mean(hot)) ** 2) + 0.1 * jnp.mean(running(x[:, 0]) ** 2)

    @jax.jit
    def step(rate):
        value, slope = jax.value_and_grad(loss)(rate)
        return rate - 0.01 * slope, value

    return step, jnp.float32(0.02)
