"""gpjax: the hyperparameters of a Gaussian process fitted to data, and its predictions."""

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import optax
import paramax

PACKAGES = (
    "gpjax",
    "paramax",
    "lineax",
    "equinox",
    "optax",
    "numpyro",
    "multipledispatch",
    "beartype",
    "jaxtyping",
    "tqdm",
)
STEPS = 20


def setup():
    x = jnp.linspace(-3, 3, 100)[:, None]
    data = gpx.Dataset(x, jnp.sin(4 * x) + jnp.cos(2 * x) + 0.1 * jax.random.normal(jax.random.key(0), x.shape))
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF() + gpx.kernels.Matern52())
    posterior = prior * gpx.likelihoods.Gaussian()
    params, static = eqx.partition(posterior, eqx.is_inexact_array)
    optimizer = optax.adam(0.02)

    def loss(params):
        return -gpx.objectives.conjugate_mll(paramax.unwrap(eqx.combine(params, static)), data)

    @jax.jit
    def step(carry):
        params, state = carry
        value, slope = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(slope, state, params)
        params = optax.apply_updates(params, updates)
        fitted = paramax.unwrap(eqx.combine(params, static))
        predicted = fitted.predict(jnp.linspace(-3, 3, 40)[:, None], train_data=data)
        return (params, state), value / 100 + predicted.mean.mean() + jnp.abs(predicted.variance).mean()

    return step, (params, optimizer.init(params))
