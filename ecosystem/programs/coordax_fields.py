"""coordax: fields over named coordinates, smoothed, mapped over axes by name, and fitted."""

import coordax as cx
import jax
import jax.numpy as jnp
import numpy as np

PACKAGES = ("coordax", "treescope")


def setup():
    x = cx.LabeledAxis("x", np.linspace(0, 1, 32))
    y = cx.LabeledAxis("y", np.linspace(0, 2, 48))
    rough = cx.field(jax.random.normal(jax.random.key(0), (32, 48)), x, y)

    def smoothed(field, weights):
        row = cx.cmap(lambda v: jnp.convolve(v, weights, mode="same"))(field.untag(y)).tag(y)
        return cx.cmap(lambda v: v - v.mean())(row.untag(x)).tag(x)

    def loss(weights):
        field = smoothed(rough, weights) * cx.field(jnp.linspace(1, 2, 32), x) + rough.isel(x=0)
        ends = field.order_as(y, x).data[:, 0]
        return jnp.mean(field.data**2) + 0.1 * jnp.sum(ends**2)

    @jax.jit
    def step(weights):
        value, slope = jax.value_and_grad(loss)(weights)
        return weights - 0.02 * slope, value

    return step, jnp.array([0.2, 0.6, 0.2])
