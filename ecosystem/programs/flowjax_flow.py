"""flowjax: a coupling flow of splines trained on samples by maximum likelihood."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow
from paramax import NonTrainable, unwrap

PACKAGES = ("flowjax", "paramax", "optax", "equinox", "jaxtyping", "wadler-lindig", "tqdm", "chex", "absl-py")


def setup():
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (256, 2))
    x = jnp.stack([x[:, 0], x[:, 0] ** 2 + 0.5 * x[:, 1]], 1)
    flow = coupling_flow(
        keys[1],
        base_dist=Normal(jnp.zeros(2)),
        transformer=RationalQuadraticSpline(knots=6, interval=4),
        flow_layers=4,
        nn_width=32,
    )
    params, static = eqx.partition(flow, eqx.is_inexact_array, is_leaf=lambda leaf: isinstance(leaf, NonTrainable))
    optimizer = optax.adam(1e-3)

    def loss(params):
        return -unwrap(eqx.combine(params, static)).log_prob(x).mean()

    @eqx.filter_jit
    def step(carry):
        params, state, key = carry
        key, sampled = jax.random.split(key)
        value, slope = eqx.filter_value_and_grad(loss)(params)
        updates, state = optimizer.update(slope, state, params)
        params = eqx.apply_updates(params, updates)
        samples = unwrap(eqx.combine(params, static)).sample(sampled, (64,))
        return (params, state, key), value + 0.01 * samples.mean()

    return step, (params, optimizer.init(params), keys[2])
