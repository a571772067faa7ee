"""tinygp: a Gaussian process with a sum of kernels, its hyperparameters learned by their likelihood."""

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels, transforms

PACKAGES = ("tinygp", "equinox", "jaxtyping", "wadler-lindig", "scipy")


def setup():
    t = jnp.sort(jax.random.uniform(jax.random.key(0), (120,), maxval=10.0))
    y = jnp.sin(t) + 0.1 * jax.random.normal(jax.random.key(1), (120,))

    def process(p):
        kernel = jnp.exp(p["amp"]) * kernels.Matern32(jnp.exp(p["scale"]))
        kernel += transforms.Linear(jnp.exp(p["rate"]), kernels.ExpSquared()) + kernels.quasisep.Exp(scale=2.0) * 0
        return GaussianProcess(kernel, t, diag=0.01 + jnp.exp(p["noise"]), mean=p["mean"])

    def smooth(p):
        kernel = kernels.quasisep.SHO(omega=jnp.exp(p["rate"]), quality=jnp.exp(p["scale"]), sigma=jnp.exp(p["amp"]))
        return GaussianProcess(kernel, t, diag=0.05, mean=p["mean"])

    def loss(p):
        return -(process(p).log_probability(y) + smooth(p).log_probability(y)) / 120

    @jax.jit
    def step(p):
        value, slope = jax.value_and_grad(loss)(p)
        p = jax.tree.map(lambda a, b: a - 0.05 * b, p, slope)
        predicted = process(p).predict(y, jnp.linspace(0, 10, 50), return_var=True)
        return p, value + predicted[0].mean() + predicted[1].mean()

    return step, {name: jnp.float32(0) for name in ("amp", "scale", "rate", "noise", "mean")}
